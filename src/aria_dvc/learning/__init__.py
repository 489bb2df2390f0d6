"""The tables of a category come in; a reward model and policies go out (paper sec. 3.5, 5.3).

Start with `policy` and `reward_model`: `examples` has what they learn from, `objective` the loss,
`trainer` the loop. `base_model` comes before them; `online` plays, credits and updates after them.
"""
