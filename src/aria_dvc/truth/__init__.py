"""A log that was played comes in; true values of its actions go out, by playing on from there.

`turns` draws turns, `branching` plays what may follow them (in the arena), `values` makes Q, V and
A of it, `table` does all three; `scores` judges a credit by the result.
"""
