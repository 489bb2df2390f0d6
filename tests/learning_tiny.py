"""A tiny random chat model with a byte-level tokenizer, and made-up games to train it on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from settings import pace

from aria_dvc.learning.examples import LogFrames
from aria_dvc.models.source import ModelSource
from aria_dvc.settings.dialogues import WarmStart
from aria_dvc.settings.online import OnlineParams
from aria_dvc.settings.training import Lora, PolicyParams, ProgressParams, RewardModelParams

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = ("I take it", "no", "you get four", "my price is ten", "half each", "deal")


def tiny_tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: index for index, token in enumerate(alphabet)}
    raw = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<|pad|>"]
    raw.add_special_tokens([AddedToken(token, special=True) for token in special])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=special[0], eos_token=special[1], pad_token=special[2]
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def tiny_model(seed: int = 0, layers: int = 2) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tiny_tokenizer()),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def save_tiny_base(folder: Path, seed: int = 0) -> ModelSource:
    tiny_model(seed).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return ModelSource(folder)


def made_up_game(
    game: str = "bargaining", episodes: int = 6, turns: int = 3, seed: int = 0
) -> LogFrames:
    """Two-player dialogues of random words, Alice winning every other one."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for episode in range(episodes):
        length = 2 * int(rng.integers(1, turns + 1))
        for position in range(length):
            role = ("alice", "bob")[position % 2]
            final = float((episode + position) % 2)
            turn = position // 2 + 1
            rows.append(
                {
                    "game": game,
                    "episode_id": f"{game}-{episode}",
                    "position": position,
                    "role": role,
                    "is_action": True,
                    "turn": turn,
                    "turns": length // 2,
                    "text": str(rng.choice(WORDS)),
                    "reward": final,
                    "return": final * 0.95 ** (length // 2 - turn),
                }
            )
    table = pd.DataFrame(rows)
    rewards = table[["episode_id", "position", "role", "turn", "return"]].copy()
    rewards["label"] = 0
    rewards["cell"] = [f"{r.role}{r.turn}" for r in rewards.itertuples()]
    rewards["cell_size"] = rewards.groupby("cell")["cell"].transform("count")
    rewards["pool"] = rewards["cell"].factorize()[0]
    rewards["reward"] = rewards.groupby("cell")["return"].transform("mean")
    rewards["value"] = rewards.groupby(["role", "turn"])["return"].transform("mean")
    prompts = table[["game", "episode_id", "role"]].drop_duplicates()
    prompts = prompts.assign(system_prompt=lambda t: "You are " + t["role"] + ".", info="{}")
    return LogFrames(game, table.drop(columns="return"), prompts, rewards)


LORA = Lora(
    rank=4, alpha=8, dropout=0.0, target_modules=["q_proj", "k_proj", "v_proj"], layers=None
)
PACE = pace(checkpoint_every=2)


def online_params(**changes: Any) -> OnlineParams:
    settings: dict[str, Any] = {
        "variants": ["aria"],
        "iterations": 1,
        "games": 2,
        "repeats": 1,
        "updates": 2,
        "batch_size": 4,
        "learning_rate": 1e-3,
        "schedule": "constant",
        "credit": "games",
        "refresh_every": 2,
        "replay": 1,
        "rollouts": "in_process",
        "scorer": "in_process",
    }
    return OnlineParams(**{**settings, **changes})


def policy_params(**changes: Any) -> PolicyParams:
    settings: dict[str, Any] = {
        "method": "reinforce",
        "credit": "aria",
        "advantage": "return",
        "kl": 0.0,
        "learning_rate": 1e-3,
        "epochs": 2,
        "max_episodes": None,
        "batch_size": 4,
        "max_tokens": 512,
        "gradient_batches": 0,
        "lora": LORA,
        "clip": {"low": 0.2, "high": 0.2},
        "ppo": {"lam": 0.95, "grounding": 0.0},
        "grpo": {"keep": 1.0},
        "spag": {"decay": 0.8, "beta": 0.2, "sft": 0.5},
        "dpo": {"beta": 0.1},
    }
    return PolicyParams(**{**settings, **changes})


def reward_params(**changes: Any) -> RewardModelParams:
    settings: dict[str, Any] = {
        "train": "used",
        "backbone": "base",
        "learning_rate": 1e-3,
        "epochs": 2,
        "max_episodes": None,
        "batch_size": 8,
        "max_tokens": 512,
        "held_out": 0.3,
        "weighting": "none",
        "lora": LORA,
    }
    return RewardModelParams(**{**settings, **changes})


def progress_params(**changes: Any) -> ProgressParams:
    settings: dict[str, Any] = {
        "train": True,
        "objective": "prefix",
        "folds": 2,
        "learning_rate": 1e-2,
        "epochs": 2,
        "batch_size": 8,
        "max_tokens": 512,
    }
    return ProgressParams(**{**settings, **changes})


def tiny_scorer(folder: Path, backbone: ModelSource | None = None, **changes: Any) -> Any:
    from aria_dvc.learning.scorer import RewardScorer

    settings = {"max_tokens": 4096, "tokens_per_batch": 4096, "precision": "float32"}
    return RewardScorer(ModelSource(folder), backbone, **{**settings, **changes})


def warm_start_settings(**changes: Any) -> WarmStart:
    settings: dict[str, Any] = {
        "episodes": 2,
        "by_game": {},
        "epochs": 1,
        "learning_rate": 1e-3,
        "batch_size": 2,
        "max_tokens": 2048,
        "layers": None,
    }
    return WarmStart(**{**settings, **changes})
