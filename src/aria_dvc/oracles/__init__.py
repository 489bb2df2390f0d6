"""Oracles of the guessing games: they know every target and answer from packaged tables, offline.

`city` knows 100 cities (Guess My City), `objects` 157 everyday things (Twenty Questions). Both have
the same doors in their module `oracle` (`targets`, `oracle`, `questions`; see base.py).
"""
