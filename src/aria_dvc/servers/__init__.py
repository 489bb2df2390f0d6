"""A request for a server of params.yaml comes in; its checked answer goes out, after retries.

Start with `client`; `embeddings` and `adapters` ask it for vectors and for a LoRA adapter to be
loaded, `faults` decides what is tried again, `answers` bounds what is read, `keys` keeps keys out
of every output; `door` is the other side: bounds for the server that we run ourselves.
"""
