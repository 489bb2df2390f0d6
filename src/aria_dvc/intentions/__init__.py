"""Texts come in; embeddings, and clusters of them at every k (the intentions), go out.

Start with `log` (a log as arrays), `space` (what is clustered) and `cuts` (one merge tree, cut at
every k). `ward` and `average` build the tree, `indices` judge the cuts (paper sec. 3.2).
"""
