"""A finished policy for others: `aria card` (the adapter, alone) and `aria merge` (one model).

`finished` gathers what is known of a policy's folder from dvc.lock and metrics/; `card` makes a
model card of it; `folder` writes what loads from anywhere.
"""
