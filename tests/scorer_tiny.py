"""A whole tiny reward model on disk, as `aria serve-reward-model` takes it."""

from __future__ import annotations

from pathlib import Path

from tests.tiny_models import tiny_model, tiny_tokenizer

from aria_dvc.learning.reward_head import Scale, note_scale
from aria_dvc.models.loading import load_model
from aria_dvc.models.source import ModelSource


def tiny_reward_model(folder: Path) -> Path:
    tiny_model().save_pretrained(folder / "base")
    tiny_tokenizer().save_pretrained(folder / "base")
    scored = load_model(ModelSource(folder / "base"), head="score")
    scored.save_pretrained(folder / "scored")
    tiny_tokenizer().save_pretrained(folder / "scored")
    note_scale(folder / "scored", Scale(0.5, 0.25), 1024)
    return folder / "scored"
