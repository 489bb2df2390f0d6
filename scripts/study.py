"""Four policies from the same base: vanilla, behaviour cloning, discounted REINFORCE, ARIA.

    PYTHONPATH=src python scripts/study.py configs/study/cpu.yaml --out metrics/study

Every arm is trained on the same games with the same seed and meets the same configurations,
opponents and seeds, so that arms compare in pairs. The opponents of the evaluation play no part in
training, which is self-play. A study that was killed goes on where it stopped: games are in
journals and trainings in checkpoints under --work.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
from ruamel.yaml import YAML

from aria_dvc.arena.evaluate import evaluate_game
from aria_dvc.arena.sessions import collect_session
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, write_csv, write_json
from aria_dvc.games.dialogues import scripted_dialogues
from aria_dvc.games.registry import get_game
from aria_dvc.learning.base_model import materialise
from aria_dvc.learning.examples import GameFrames
from aria_dvc.learning.own_actions import without_reasked
from aria_dvc.learning.policy import train_policy
from aria_dvc.models.quiet import quiet_libraries
from aria_dvc.models.source import ModelSource
from aria_dvc.params import Params, check_params
from aria_dvc.pipeline.online import OnlineGames
from aria_dvc.pipeline.progress import progress_bar
from aria_dvc.records.episodes import Episode
from aria_dvc.records.tables import episodes_table, turns_table
from aria_dvc.report.intervals import paired_difference, rate

CATEGORY = "adversarial"
VANILLA, DISCOUNTED, ARIA = "vanilla", "discounted", "aria"
ARMS: dict[str, dict[str, str]] = {
    "behaviour_cloning": {"method": "behaviour_cloning"},
    DISCOUNTED: {"credit": "discounted"},
    ARIA: {"credit": "aggregated"},
}
PAIR = ["seed", "game", "role", "opponent", "episode"]


@dataclass(frozen=True)
class Study:
    """params: params.yaml with the study's overrides; work: where it keeps what it may resume."""

    params: Params
    seeds: list[int]
    rounds: int
    opponents: list[str]
    work: Path

    def base_model(self) -> Path:
        """The warm-started model that every arm and seed starts from."""
        made_of = [self.params.base_model.model_dump(), self.params.games, self.params.seed]
        name = hashlib.sha256(orjson.dumps(made_of)).hexdigest()[:12]
        folder = self.work / f"base_model-{name}"
        if not (folder / "metrics.json").is_file():
            with progress_bar("warm start") as progress:
                materialise(
                    self.params.base_model,
                    self.params.games,
                    folder,
                    seed=self.params.seed,
                    dialogues=scripted_dialogues,
                    progress=progress,
                )
        return folder

    def run(self, seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
        """One row per evaluation game of every arm, and what the trainings measured."""
        params, base = self.params.model_copy(update={"seed": seed}), self.base_model()
        games, measured = [], {}
        for arm, change in ARMS.items():
            policy = params.policy.model_copy(update=change)
            changed = params.model_copy(update={"policy": policy})
            adapter, measured[arm] = self._train(changed, arm, base)
            games.append(self._evaluate(changed, arm, base, adapter))
        return pd.concat(games).drop_duplicates([*PAIR, "arm"], ignore_index=True), measured

    def _train(self, params: Params, arm: str, base: Path) -> tuple[Path, dict[str, Any]]:
        """The adapter of the last round, and its metrics and those of its credit."""
        adapter, played = None, dict[str, list[Episode]]()
        for number in range(self.rounds):
            for game, newest in self._collect(params, number, base, adapter).items():
                played.setdefault(game, []).extend(newest)
            frames = _credited(params, base, played)
            sampled = [replace(f, rewards=without_reasked(f.rewards, f.episodes)) for f in frames]
            adapter = self.work / f"seed-{params.seed}" / f"{arm}-{number}"
            with progress_bar(f"seed {params.seed}, {arm}, round {number}") as progress:
                metrics = train_policy(
                    params.policy,
                    sampled,
                    ModelSource(base, params.base_model.trust_remote_code),
                    adapter,
                    seed=params.seed,
                    progress=progress,
                )
        assert adapter is not None
        return adapter, {"policy": metrics, "credit": {f.game: _variances(f) for f in frames}}

    def _collect(
        self, params: Params, number: int, base: Path, adapter: Path | None
    ) -> dict[str, list[Episode]]:
        """The games of one round of self-play; those of the first round are every arm's."""
        settings = params.collect.settings.model_copy(
            update={"adapter": str(adapter) if adapter else None}
        )
        dealt = params.model_copy(
            update={
                "seed": params.seed + 1_000_003 * number,
                "collect": params.collect.model_copy(update={"settings": settings}),
            }
        )
        played = {g: collect_session(dealt, g, base).play(dealt) for g in params.games}
        for episodes in played.values():
            for episode in episodes:
                episode.episode_id = f"{number}/{episode.episode_id}"
        return played

    def _evaluate(self, params: Params, arm: str, base: Path, adapter: Path) -> pd.DataFrame:
        """The arm and the vanilla policy against every opponent (the latter from its journal)."""
        tables = []
        for game in params.games:
            for opponent in self.opponents:
                facing = _against(params, game, opponent)
                table = evaluate_game(facing, game, base, adapter)
                table["arm"] = table["variant"].replace("aria", arm)
                tables.append(table.assign(seed=params.seed, opponent=opponent))
        return pd.concat(tables)


def _credited(params: Params, base: Path, played: dict[str, list[Episode]]) -> list[GameFrames]:
    turns = {game: turns_table(episodes) for game, episodes in played.items()}
    rewards = OnlineGames(params, CATEGORY, base).aggregate(turns)
    return [GameFrames(g, turns[g], episodes_table(e), rewards[g]) for g, e in played.items()]


def _variances(frames: GameFrames) -> dict[str, float]:
    rewards, said = frames.rewards, frames.turns[frames.turns["is_action"]]
    finals = said.groupby(["episode_id", "role"])["reward"].first()
    return {
        "episodes": int(rewards["episode_id"].nunique()),
        "actions": len(rewards),
        "singleton_share": float((rewards["cell_size"] == 1).mean()),
        "reward_variance_before": float(rewards["return"].var(ddof=0)),
        "reward_variance_after": float(rewards["reward"].var(ddof=0)),
        "mean_final_reward": float(finals.mean()),
    }


def _against(params: Params, game: str, opponent: str) -> Params:
    """`params` with `opponent` on the other side of every role of `game`."""
    block = params.evaluate.game(game)
    assert block is not None
    roles = dict.fromkeys(get_game(game).roles, opponent)
    changed = {game: block.model_copy(update={"opponents": roles})}
    return params.model_copy(update={"evaluate": params.evaluate.model_copy(update=changed)})


def results(games: pd.DataFrame) -> dict[str, Any]:
    """Win rates with 95 % intervals, pooled over seeds and opponents, and paired differences."""
    out: dict[str, Any] = {}
    for (game, role), rows in games.groupby(["game", "role"], sort=True):
        out.setdefault(game, {})[role] = _compared(rows)
    out["all"] = _compared(games)
    return out


def _compared(rows: pd.DataFrame) -> dict[str, Any]:
    won = rows.pivot(index=PAIR, columns="arm", values="won").astype(bool)
    return {
        "win_rate": {arm: rate(won[arm].to_numpy()) for arm in (VANILLA, *ARMS)},
        "by_seed": won.groupby("seed").mean().rename(index=str).to_dict("index"),
        "by_opponent": won.groupby("opponent").mean().to_dict("index"),
        "no_deal_rate": rows.groupby("arm")["no_deal"].mean().to_dict(),
        "failed_rate": (rows["failure_kind"] != "").groupby(rows["arm"]).mean().to_dict(),
        f"{ARIA}_minus_{DISCOUNTED}": paired_difference(
            won[ARIA].to_numpy(), won[DISCOUNTED].to_numpy()
        ),
        f"{ARIA}_minus_{VANILLA}": paired_difference(won[ARIA].to_numpy(), won[VANILLA].to_numpy()),
    }


def load_study(config: Path, work: Path) -> Study:
    """params.yaml with the overrides of `config`.

    Raises:
        AriaError: a file is missing, or a key is unknown.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        overrides = yaml.load(config.read_text("utf-8"))
        own = overrides.pop("study")
        params = check_params(
            _merged(yaml.load(Path("params.yaml").read_text("utf-8")), overrides), str(config)
        )
        return Study(params, own["seeds"], own["rounds"], own["opponents"], work)
    except FileNotFoundError as error:
        raise AriaError(f"{error.filename} is missing: run from the repository's root") from None
    except KeyError as error:
        raise AriaError(f"{config}: {error} is missing: see configs/study/cpu.yaml") from None


def _merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: _merged(base.get(key), value) for key, value in over.items()}
    return over


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("config", type=Path, help="overrides of params.yaml, and `study`")
    parser.add_argument("--out", type=Path, default=Path("metrics/study"))
    parser.add_argument("--work", type=Path, default=Path(".aria_cache/study"))
    arguments = parser.parse_args()
    quiet_libraries()
    try:
        study = load_study(arguments.config, arguments.work)
        tables, measured = [], {}
        for seed in study.seeds:
            start = time.monotonic()
            table, numbers = study.run(seed)
            tables.append(table)
            measured[str(seed)] = {**numbers, "seconds": time.monotonic() - start}
            games = pd.concat(tables, ignore_index=True)
            write_csv(arguments.out / "games.csv", games[[*PAIR, "arm", "won", "utility"]])
            write_json(
                arguments.out / "results.json",
                {
                    "command": f"python scripts/study.py {arguments.config}",
                    "seeds": study.seeds[: len(tables)],
                    "rounds": study.rounds,
                    "opponents": study.opponents,
                    "base_model": read_json(study.base_model() / "metrics.json"),
                    "evaluation": results(games),
                    "training": measured,
                },
            )
    except AriaError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
