"""Returns and labels of a log come in; a fitted credit of actions goes out.

Start with `base` (what a method is) and `registry` (their names). `aria` is the paper's; `constant`
and `turn_index` are the baselines that every other is compared with.
"""
