"""The model that everything starts from: materialised once, warm-started on game dialogues.

A model of 135 M parameters knows English but not the games (the paper's 1.5 B model barely gained
from ARIA). Supervised fine-tuning on scripted dialogues of winners teaches it the moves first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aria_dvc.chat import Renderer
from aria_dvc.errors import AriaError
from aria_dvc.files import write_json, written_aside
from aria_dvc.learning.batches import Paired, global_batches
from aria_dvc.learning.checkpoints import RunFolder, finish, run_key, training_errors
from aria_dvc.learning.examples import Dialogue, Example, build_examples, digest
from aria_dvc.learning.objective import policy_collate
from aria_dvc.learning.policy import PolicyTrainer
from aria_dvc.learning.trackers import NOWHERE, RESULT, Tracking
from aria_dvc.learning.trainer import (
    FitSettings,
    MicroBatchTrainer,
    Progress,
    fit,
    fit_figures,
    history,
    make_deterministic,
    write_history,
)
from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import top_layers
from aria_dvc.models.saving import save_model
from aria_dvc.models.source import ModelSource

if TYPE_CHECKING:
    from aria_dvc.games.base import Match
    from aria_dvc.settings.dialogues import BaseModelParams, WarmStart
    from aria_dvc.settings.machine import Pace

STAGE = "base_model"
DTYPE = torch.bfloat16
SOLVED = 1.0
DialogueSource = Callable[[str, int, int, str], "list[Match]"]


def materialise(
    params: BaseModelParams,
    pace: Pace,
    out_dir: str | Path,
    *,
    seed: int,
    dialogues: DialogueSource,
    cache: Path | None = None,
    progress: Progress | None = None,
    tracking: Tracking = NOWHERE,
) -> dict[str, Any]:
    """Write the configured model, warm-started if `params.warm_start`, to `out_dir`.

    Weights are stored as bfloat16 safetensors (half the disk of float32; players sample in it),
    with tokenizer, chat template, `metrics.json` and, after a warm start, `history.csv`.
    A warm start resumes and restores like `train_policy`.

    Args:
        dialogues: `dialogues(game, n, seed, grid)` gives n finished scripted matches.

    Returns:
        The metrics: parameters, and with a warm start dialogues, tokens, steps, final_loss,
        gradient_norm (mean), entropy_per_action (at the last step, in nats).

    Raises:
        AriaError: the source cannot be loaded, or the warm start fails.
    """
    make_deterministic(seed)
    source = ModelSource(params.source, params.trust_remote_code)
    model, tokenizer = load_model(source), load_tokenizer(source)
    Renderer(tokenizer)  # a model without a chat template is refused before it costs anything
    if params.warm_start and params.games:
        settings = params.warm_start_settings
        examples = warm_start_examples(settings, params.games, dialogues, Renderer(tokenizer), seed)
        more: Any = {"seed": seed, "cache": cache, "progress": progress, "tracking": tracking}
        more["base"] = fingerprint(source)
        with training_errors(STAGE):
            return warm_start(settings, pace, model, tokenizer, examples, out_dir, **more)
    with training_errors(STAGE):
        return _as_it_is(model, tokenizer, out_dir)


def _as_it_is(model: Any, tokenizer: Any, out_dir: str | Path) -> dict[str, Any]:
    metrics = {"parameters": model.num_parameters()}
    with written_aside(out_dir) as aside:
        aside.mkdir(parents=True)
        _save(model, tokenizer, aside)
        write_json(aside / "metrics.json", metrics)
    return metrics


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    save_model(model.to(DTYPE), folder)
    tokenizer.save_pretrained(folder)


def warm_start_examples(
    settings: WarmStart,
    games: Sequence[str],
    dialogues: DialogueSource,
    renderer: Renderer,
    seed: int,
) -> list[Example]:
    """Dialogues of each game as `settings` counts them, seen by the roles that did not lose.

    Only dialogues that fit whole into `settings.max_tokens` are taken: a token of a long one
    costs as much and teaches the same moves.

    Raises:
        AriaError: no role of any match is worth imitating.
    """
    found: list[Dialogue] = []
    for game in games:
        episodes, grid = settings.lessons(game)
        for number, match in enumerate(dialogues(game, episodes, seed, grid)):
            found += _winning_views(game, f"{game}-{number}", match)
    whole = build_examples(found, renderer, sys.maxsize).items
    examples = [example for example in whole if len(example) <= settings.max_tokens]
    if not examples:
        raise AriaError(
            f"base_model.warm_start: none of {len(found)} won dialogues has at most "
            f"{settings.max_tokens} tokens: raise episodes or max_tokens in "
            "base_model.warm_start_settings"
        )
    return examples


def _winning_views(game: str, episode_id: str, match: Match) -> list[Dialogue]:
    """The match as each role saw it that did not lose, single-agent failures left out.

    No role lost if none has more than another, whatever the reward rule pays for that.
    """
    rewards = match.outcome.rewards if match.outcome else {}
    enough = max(rewards.values(), default=1.0) if len(match.roles) > 1 else SOLVED
    views = []
    for role in match.roles:
        if rewards.get(role, 0.0) >= enough:
            messages = match.messages(role)
            positions = [i for i, (speaker, _) in enumerate(match.lines) if speaker == role]
            views.append(Dialogue(game, episode_id, role, messages, positions))
    return views


def warm_start(
    settings: WarmStart,
    pace: Pace,
    model: Any,
    tokenizer: Any,
    examples: Sequence[Example],
    out_dir: str | Path,
    *,
    base: str,
    seed: int,
    cache: Path | None = None,
    progress: Progress | None = None,
    tracking: Tracking = NOWHERE,
) -> dict[str, Any]:
    """Fine-tune `model` on the actions of `examples` and write it to `out_dir`.

    base: fingerprint of the model with its tokenizer, template and generation settings, which are
    delivered with the weights.

    Embeddings stay as they are (the head shares them, and its gradient alone would cost a fifth
    of a step); `settings.layers` limits training to the layers nearest the output.
    """
    data = [(example, np.ones(len(example.keys), dtype=np.float32)) for example in examples]
    made_of = {"settings": settings.model_dump(), "seed": seed}
    key = run_key(STAGE, digest(data).hexdigest(), base, made_of)
    run = RunFolder(STAGE, key, cache, pace.precision)

    def train() -> None:
        freeze_all_but(model, settings.layers)
        trainer = _imitate(settings, pace, model, tokenizer, data, run, seed, progress, tracking)
        metrics = {
            "parameters": model.num_parameters(),
            "dialogues": len(data),
            "tokens": sum(len(example) for example in examples) * settings.epochs,
            **fit_figures(trainer),
            **_entropy(trainer),
        }
        with run.writing() as folder:
            write_history(trainer, folder)
            _save(model, tokenizer, folder)
            write_json(folder / "metrics.json", metrics)
        tracking.tell(run.path, RESULT, metrics, trainer.state.global_step)

    return finish(run, out_dir, train)


def _imitate(
    settings: WarmStart,
    pace: Pace,
    model: Any,
    tokenizer: Any,
    data: Sequence[Paired],
    run: RunFolder,
    seed: int,
    progress: Progress | None,
    tracking: Tracking,
) -> MicroBatchTrainer:
    """Train `model` in place, from the run's last checkpoint if there is one."""
    return fit(
        PolicyTrainer,
        model,
        data,
        global_batches(len(data), settings.batch_size, settings.epochs, seed),
        policy_collate(tokenizer.pad_token_id, model=model),
        run.path,
        FitSettings(learning_rate=settings.learning_rate, seed=seed, pace=pace, schedule="linear"),
        progress=progress,
        resume=run.last_checkpoint(),
        tracking=tracking,
    )


def _entropy(trainer: MicroBatchTrainer) -> dict[str, float]:
    """How undecided the model is at the last step: entropy_per_action, in nats."""
    return {"entropy_per_action": float(history(trainer.state)["entropy_per_action"].iloc[-1])}


def freeze_all_but(model: Any, layers: int | None) -> None:
    """Leave only the top `layers` transformer blocks (None: all of them) trainable."""
    kept = top_layers(model, layers)
    model.requires_grad_(False)
    for index, block in enumerate(model.get_decoder().layers):
        if kept is None or index in kept:
            block.requires_grad_(True)
