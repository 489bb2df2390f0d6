"""`aria plan`: what a training method needs of a machine, before anything is trained on it.

`shapes` counts a model's parameters, `batch` lays out what is trained at once, `estimate` has the
formulas (docs/plan.md), `measured` holds them against a few real steps.
"""
