"""The oracle of Twenty Questions: yes, no, or "Invalid question." where the table is silent.

`question` brings what was asked into one plain form; `claims` reads it by its frame (is, has, made
of, used for, ...) with the help of `compose`, `compare`, `names` and `spelling`, and looks its
words up in `table`: 400 properties, each with the objects that have it. `words` makes the forms
of a word equal, `targets` lists the objects. The doors are in `oracle`.
"""
