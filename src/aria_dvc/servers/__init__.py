"""A request for a server of params.yaml comes in; its checked answer goes out, after retries.

Start with `client`; `embeddings` and `adapters` ask it for vectors and for a LoRA adapter to be
loaded, `keys` reads the key from the environment and keeps it out of every output.
"""
