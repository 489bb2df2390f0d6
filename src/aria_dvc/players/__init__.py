"""A turn of a game comes in (`Request`); a text goes out (`Reply`).

Start with `base` and `registry`, which makes players from their names. `policy` plays with a model
in this process (`engine`), `endpoint` with a server's, `scripted` without any.
"""
