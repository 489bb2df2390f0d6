"""A study: one DVC experiment a seed, all variants in each, and one table of what came out.

    python scripts/study.py run configs/study/cpu.yaml --seeds 0 1
    python scripts/study.py results configs/study/cpu.yaml

`run` is `dvc exp run --temp --name cpu-seed-0 -S seed=0 -S ...` for every seed, with the file's
settings; `dvc exp show` lists the experiments, `dvc exp apply` brings one back. A seed that has
its experiment is not run again; one that was killed goes on from its journals and checkpoints. An
experiment belongs to its commit: on another one a seed is run again, which takes from DVC's cache
what neither code nor settings have changed.
What no variant can change (opponents, rewards) a study compares by `arms`: one experiment each.

`results` writes metrics/study/NAME/ and prints its table. Seeds that were run elsewhere stay there
as they are, so that several machines, or evenings, can share a study.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dvc.api
import pandas as pd

from aria_dvc.cache.folder import VARIABLE, cache_folder
from aria_dvc.errors import AriaError
from aria_dvc.files import write_csv, write_json
from aria_dvc.pipeline import paths
from aria_dvc.report.study import COSTS, PAIR, compared, learning, minutes, table
from aria_dvc.settings.training import VANILLA
from aria_dvc.yaml_file import read_yaml

OUTCOME = ["won", "winnable", "no_deal", "failure_kind"]
GAME_COLUMNS = ["variant", *PAIR, *OUTCOME, *COSTS]


@dataclass(frozen=True)
class Place:
    """Where the results of one policy are; `arm` is "" in a study without arms."""

    experiment: str
    arm: str
    seed: int
    variant: str
    category: str

    @property
    def label(self) -> str:
        """What the policy is called in the tables."""
        return self.arm if self.arm and self.variant != VANILLA else self.variant


@dataclass(frozen=True)
class Study:
    """settings: as `dvc exp run -S` takes them. reference: the variant, or the arm, compared with.

    arms: further settings by arm, each an experiment of its own. Then one variant beside vanilla
    is trained, which the tables call by its arm; vanilla is that of the arm `reference`.
    sizes: by name, settings that come after the others where that size is asked for. size: the one
    that is, or "".
    """

    name: str
    seeds: Sequence[int]
    reference: str
    categories: Sequence[str]
    variants: Sequence[str]
    settings: Sequence[str]
    arms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sizes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    size: str = ""

    @property
    def title(self) -> str:
        """What experiments and results are called by."""
        return f"{self.name}-{self.size}" if self.size else self.name

    @property
    def command(self) -> str:
        """What runs it."""
        command = f"python scripts/study.py run configs/study/{self.name}.yaml"
        return f"{command} --size {self.size}" if self.size else command

    def sized(self, size: str) -> Study:
        """This study with the settings of a size.

        Raises:
            AriaError: it has no such size.
        """
        if size not in self.sizes:
            known = ", ".join(self.sizes) or "none"
            raise AriaError(f"--size: the study {self.name} has no size {size}: it has {known}")
        return replace(self, size=size, settings=[*self.settings, *self.sizes[size]])

    def experiments(self) -> dict[str, list[str]]:
        """Name -> settings of every experiment, seed by seed."""
        return {
            _experiment(self.title, arm, seed): [f"seed={seed}", *self.settings, *more]
            for seed in self.seeds
            for arm, more in (self.arms or {"": []}).items()
        }

    def places(self) -> list[Place]:
        """Every policy of the study."""
        return [
            Place(_experiment(self.title, arm, seed), arm, seed, variant, category)
            for seed in self.seeds
            for arm in self.arms or [""]
            for category in self.categories
            for variant in self.variants
            if variant != VANILLA or arm in ("", self.reference)
        ]


def _experiment(study: str, arm: str, seed: int) -> str:
    return "-".join([study, *([arm] if arm else []), "seed", str(seed)])


def load_study(config: Path) -> Study:
    """Read a file of configs/study/.

    Raises:
        AriaError: the file is missing or not YAML, lacks a key, or compares with what it does not
            train.
    """
    try:
        study = Study(config.stem, **read_yaml(config))
    except TypeError as error:
        raise AriaError(f"{config}: {error}: see configs/study/cpu.yaml") from None
    trained = list(study.arms or study.variants)
    if VANILLA not in study.variants:
        raise AriaError(f"{config}: variants: no {VANILLA}, which all are compared with: add it")
    if study.reference not in trained:
        known = ", ".join(trained)
        raise AriaError(f"{config}: reference: {study.reference} is none of {known}: name one")
    return study


def run(study: Study, seeds: Sequence[int]) -> None:
    """Run those experiments of the seeds that there are not yet.

    Raises:
        AriaError: a seed is not one of the study's.
    """
    if strange := set(seeds).difference(study.seeds):
        raise AriaError(
            f"--seeds: the study {study.name} has no seed {min(strange)}: "
            f"its seeds are {', '.join(map(str, study.seeds))}"
        )
    done = _experiments_here()
    # experiments run in folders of their own and share this one's cache
    environment = {VARIABLE: str(cache_folder().resolve())}
    for name, settings in replace(study, seeds=seeds).experiments().items():
        if name not in done:
            options = [part for text in settings for part in ("-S", text)]
            command = ["dvc", "exp", "run", "--temp", "--name", name, *options]
            subprocess.run(command, check=True, env={**os.environ, **environment})


def results(study: Study, out: Path) -> str:
    """Write games.csv (one row an evaluation game), curves.csv (one an iteration, log and role of
    what was trained online) and results.json; returns the table of the results, as Markdown.

    Raises:
        AriaError: no seed of the study has been run, here or in what `out` has.
    """
    done = set(_experiments_here())
    seeds = [s for s in study.seeds if done >= replace(study, seeds=[s]).experiments().keys()]
    here = replace(study, seeds=seeds)
    places = here.places()
    trained = [place for place in places if place.variant in _online_variants(place.experiment)]
    games = _kept(out / "games.csv", here, [_evaluation(place) for place in places])
    if games.empty:
        raise AriaError(f"no seed of the study {study.name} has been run: {study.command}")
    found: dict[str, Any] = {"command": study.command, **compared(games, study.reference)}
    curves = _kept(out / "curves.csv", here, [_curve(place) for place in trained])
    if not curves.empty:
        found["learning"] = learning(curves, study.reference)
        found["minutes"] = minutes(curves)
    write_json(out / "results.json", found)
    return table(found, study.reference)


def _kept(path: Path, here: Study, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows of the seeds that are here, and those of other seeds in the file, which is written."""
    earlier = pd.read_csv(path, keep_default_na=False) if path.exists() else pd.DataFrame()
    if not earlier.empty:
        parts = [*parts, earlier[~earlier["seed"].isin(here.seeds)]]
    rows = pd.concat(parts) if parts else earlier
    if not rows.empty:
        rows = rows.sort_values(["seed", "variant"], kind="stable", ignore_index=True)
        write_csv(path, rows)
    return rows


def _evaluation(place: Place) -> pd.DataFrame:
    from aria_dvc.pipeline.report import with_winnable  # it imports what draws pictures

    path = str(paths.evaluation(place.variant, place.category))
    raw = dvc.api.read(path, rev=place.experiment, mode="rb")
    games = with_winnable(pd.read_parquet(io.BytesIO(raw)))
    return games.assign(seed=place.seed, variant=place.label)[GAME_COLUMNS]


def _curve(place: Place) -> pd.DataFrame:
    path = paths.online(place.variant, place.category) / "online.csv"
    text = dvc.api.read(str(path), rev=place.experiment)
    return pd.read_csv(io.StringIO(text)).assign(seed=place.seed, variant=place.label)


def _experiments_here() -> list[str]:
    return _dvc("exp", "list", "--name-only").split()


def _online_variants(experiment: str) -> list[str]:
    found: list[str] = dvc.api.params_show("params.yaml", rev=experiment)["online"]["variants"]
    return found


def _dvc(*arguments: str) -> str:
    """What DVC prints; what it complains of is seen on standard error."""
    command = ["dvc", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("run", "results"))
    parser.add_argument("config", type=Path, help="a file of configs/study/")
    parser.add_argument("--seeds", type=int, nargs="+", help="run: only these of the study's")
    parser.add_argument("--size", help="one of the file's `sizes` (the size of two cores)")
    parser.add_argument("--out", type=Path, help="results: a folder (metrics/study/NAME)")
    arguments = parser.parse_args()
    try:
        study = load_study(arguments.config)
        if arguments.size:
            study = study.sized(arguments.size)
        if arguments.action == "run":
            run(study, arguments.seeds or study.seeds)
        elif arguments.seeds:
            raise AriaError("--seeds: results are of all seeds that have been run: leave it out")
        else:
            print(results(study, arguments.out or Path("metrics/study") / study.title))
    except AriaError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None


if __name__ == "__main__":
    main()
