"""A tiny causal model with a chat template, made in a fraction of a second for tests."""

from __future__ import annotations

from typing import Any

import torch

TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def tiny_tokenizer() -> Any:
    """Every byte is a token; <|end|> ends a turn."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<|start|>", "<|end|>", *letters])}
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|end|>", pad_token="<|end|>", bos_token="<|start|>"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def tiny_model(vocabulary: int = 258, seed: int = 0, context: int = 2048) -> Any:
    """Two layers of 32, four heads over two key/value heads, float32, evaluation mode."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return LlamaForCausalLM(config).eval()
