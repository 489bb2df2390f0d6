"""The oracle of Guess My City, from its question to a sentence that never names the city.

`question` brings what was asked into one plain form; yes/no claims are judged by `claims` with
the help of `places`, `water`, `country` and `topics`, open questions by `open_answers`; all of
them read the tables of `data/` through `targets`, `facts`, `lists` and `gazetteer`. Judgements
are True, False or None, and None is said as it is. The doors are in `oracle`.
"""
