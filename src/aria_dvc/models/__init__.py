"""A source (packaged weights, an id, a folder) comes in; a model ready for use goes out.

Start with `loading` for language models and `sentences` for embeddings; `lora` puts adapters on,
`saving` writes, `fingerprint` names the weights that a result depends on.
"""
