"""A question on one of 100 cities comes in; a sentence that never names the city goes out.

Start with `oracle`. `question` brings what was asked into a plain form; `reading` takes it apart,
once for all cities. Of one city `claims` judges yes and no, `open_answers` says the rest, both from
the tables of `data/`. A judgement is True, False or None, and None is said as it is.
"""
