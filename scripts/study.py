"""A study: one DVC experiment a seed, all variants in each, and one table of what came out.

    python scripts/study.py run configs/study/cpu.yaml
    python scripts/study.py results configs/study/cpu.yaml --out metrics/study

`run` is `dvc exp run --temp --name cpu-seed-0 -S seed=0 -S ...` for every seed, with the file's
settings; `dvc exp show` lists the experiments, `dvc exp apply` brings one back. A seed that has
its experiment is not run again; one that was killed goes on from its journals and checkpoints.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dvc.api
import pandas as pd
from ruamel.yaml import YAML

from aria_dvc.errors import AriaError
from aria_dvc.files import write_csv, write_json
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.report import with_winnable
from aria_dvc.report.study import compared, learning

CACHE = "ARIA_CACHE"  # experiments run in folders of their own and share this one's cache


@dataclass(frozen=True)
class Study:
    """settings: as `dvc exp run -S` takes them. reference: the variant compared with."""

    name: str
    seeds: Sequence[int]
    reference: str
    categories: Sequence[str]
    variants: Sequence[str]
    settings: Sequence[str]

    def experiment(self, seed: int) -> str:
        return f"{self.name}-seed-{seed}"


def load_study(config: Path) -> Study:
    """Read a file of configs/study/.

    Raises:
        AriaError: the file or one of its keys is missing.
    """
    try:
        return Study(config.stem, **YAML(typ="safe", pure=True).load(config.read_text("utf-8")))
    except FileNotFoundError:
        raise AriaError(f"{config} is missing: run from the repository's root") from None
    except TypeError as error:
        raise AriaError(f"{config}: {error}: see configs/study/cpu.yaml") from None


def run(study: Study) -> None:
    """Run the experiments that there are not yet."""
    done = _dvc("exp", "list", "--name-only").split()
    environment = {CACHE: os.environ.get(CACHE, str(Path(".aria_cache").resolve()))}
    for seed in study.seeds:
        if study.experiment(seed) not in done:
            settings = [part for text in study.settings for part in ("-S", text)]
            name = study.experiment(seed)
            command = ["exp", "run", "--temp", "--name", name, "-S", f"seed={seed}", *settings]
            subprocess.run(["dvc", *command], check=True, env={**os.environ, **environment})


def results(study: Study, out: Path) -> None:
    """Write games.csv (one row an evaluation game), curves.csv (one an iteration, log and role of
    what was trained online) and results.json."""
    places = [
        (study.experiment(seed), seed, variant, category)
        for seed in study.seeds
        for category in study.categories
        for variant in study.variants
    ]
    games = with_winnable(pd.concat([_evaluation(*place) for place in places]))
    write_csv(out / "games.csv", games)
    found: dict[str, Any] = {
        "command": f"python scripts/study.py run configs/study/{study.name}.yaml",
        **compared(games, study.reference),
    }
    trained = [place for place in places if place[2] in _online_variants(place[0])]
    if trained:
        curves = pd.concat([_curve(*place) for place in trained])
        write_csv(out / "curves.csv", curves)
        found["learning"] = learning(curves, study.reference)
    write_json(out / "results.json", found)


def _evaluation(experiment: str, seed: int, variant: str, category: str) -> pd.DataFrame:
    raw = dvc.api.read(str(paths.evaluation(variant, category)), rev=experiment, mode="rb")
    return pd.read_parquet(io.BytesIO(raw)).assign(seed=seed)


def _curve(experiment: str, seed: int, variant: str, category: str) -> pd.DataFrame:
    path = paths.online(variant, category) / "online.csv"
    text = dvc.api.read(str(path), rev=experiment)
    return pd.read_csv(io.StringIO(text)).assign(seed=seed, variant=variant)


def _online_variants(experiment: str) -> list[str]:
    found: list[str] = dvc.api.params_show("params.yaml", rev=experiment)["online"]["variants"]
    return found


def _dvc(*arguments: str) -> str:
    return subprocess.run(["dvc", *arguments], check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("run", "results"))
    parser.add_argument("config", type=Path, help="a file of configs/study/")
    parser.add_argument("--out", type=Path, default=Path("metrics/study"))
    arguments = parser.parse_args()
    try:
        study = load_study(arguments.config)
        run(study) if arguments.action == "run" else results(study, arguments.out)
    except AriaError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None


if __name__ == "__main__":
    main()
