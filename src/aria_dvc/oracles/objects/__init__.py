"""A question on one of 157 things comes in; yes, no or "Invalid question." goes out.

Start with `oracle`. `question` brings what was asked into a plain form, `claims` reads it by its
frame (is, has, made of, used for, ...) and looks its words up in `table`: 400 properties, each
with the objects that have it.
"""
