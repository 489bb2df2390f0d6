"""A question on a hidden target comes in; a true answer goes out, from packaged tables, offline.

`city` knows 100 cities (Guess My City), `objects` 157 everyday things (Twenty Questions). Start
with `base`: both have the same functions in their `oracle` (`targets`, `oracle`, `questions`).
"""
