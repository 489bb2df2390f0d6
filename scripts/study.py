"""A study: one DVC experiment a seed, all variants in each, and one table of what came out.

    python scripts/study.py run configs/study/credit.yaml --seeds 0 1
    python scripts/study.py results configs/study/credit.yaml

`run` is `dvc exp run --temp --name credit-seed-0 -S seed=0 -S ...` for every seed, with the file's
settings; `dvc exp show` lists the experiments, `dvc exp apply` brings one back. A seed that has
its experiment is not run again; one that was killed goes on from its journals and checkpoints. An
experiment belongs to its commit: on another one a seed is run again, which takes from DVC's cache
what neither code nor settings have changed.
What no variant can change (opponents, rewards) a study compares by `arms`: one experiment each.

`results` writes metrics/study/NAME/ and prints its table. Seeds that were run elsewhere stay there
as they are, so that several machines, or evenings, can share a study: experiments.csv has the
commit of each, and a hash of what the study's file said. Seeds of other commits are in the table,
which names the commits; seeds of other settings are not, nor variants that the file has no more.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dvc.api
import pandas as pd
from dvc.exceptions import DvcException, InvalidArgumentError
from dvc.utils.hydra import apply_overrides

from aria_dvc.cache.folder import VARIABLE, cache_folder
from aria_dvc.errors import AriaError
from aria_dvc.failures import one_line
from aria_dvc.files import write_csv, write_json, write_parquet
from aria_dvc.params import check_params
from aria_dvc.pipeline import paths
from aria_dvc.report.evaluation import broken_off
from aria_dvc.report.study import (
    COSTS,
    PAIR,
    at_equal_tokens,
    commit_named,
    compared,
    learning,
    minutes,
    table,
    within,
)
from aria_dvc.report.study_file import Place, Study, load_study
from aria_dvc.yaml_file import load_yaml, read_yaml

OUTCOME = ["won", "winnable", "no_deal", "failure_kind", "broken_off"]
GAME_COLUMNS = ["variant", *PAIR, "config", *OUTCOME, *COSTS]
PARAMS = "params.yaml"
OR_BACK = "give the study's file back what it said, or"

Blocks = Mapping[str, Any]  # what a params.yaml says


def run(study: Study, seeds: Sequence[int]) -> None:
    """Run those experiments of the seeds that there are not yet.

    Raises:
        AriaError: a seed is not one of the study's; an experiment's settings do not load, or lack
            what the study compares; or there is one of its name with other settings. Nothing has
            been run then.
    """
    if strange := set(seeds).difference(study.seeds):
        raise AriaError(
            f"--seeds: the study {study.name} has no seed {min(strange)}: "
            f"its seeds are {', '.join(map(str, study.seeds))}"
        )
    experiments = study.of(seeds).experiments()
    wanted = {name: _checked(study, name, settings) for name, settings in experiments.items()}
    done = {name: _params_of(name) for name in _experiments_here() if name in wanted}
    for name, params in done.items():
        if blocks := _differing(params, wanted[name]):
            raise AriaError(_of_other_settings(name, blocks))
    for name, settings in experiments.items():
        if name not in done:
            options = [part for text in settings for part in ("-S", text)]
            _dvc("exp", "run", "--temp", "--name", name, *options)


def results(study: Study, out: Path) -> str:
    """Write games.parquet (one row an evaluation game), curves.csv (one an iteration, log and role
    of what was trained online), experiments.csv (of which commit and settings they are) and
    results.json; returns the table of the results, as Markdown.

    The tables also keep what the table leaves out; of seeds that is told on standard error.

    Raises:
        AriaError: no seed of the study has been run, here or in what `out` has; or an experiment
            cannot be read.
    """
    done = _done(study)
    seeds = [seed for seed in study.seeds if study.of([seed]).hashes().keys() <= done.keys()]
    here = study.of(seeds)
    places = here.places()
    trained = [p for p in places if p.variant in done[p.experiment]["online"]["variants"]]
    games = _kept(out / "games.parquet", here, [_evaluation(place) for place in places])
    curves = _kept(out / "curves.csv", here, [_curve(place) for place in trained])
    ran = _kept(out / "experiments.csv", here, [_experiments(here)])
    return _tell(study, out, _commits(study, games, ran), games, curves)


def _done(study: Study) -> dict[str, Blocks]:
    """Params of the study's experiments here by name, without those of other settings.

    Settings change params.yaml as the commit has it, or as it was in the working tree then.
    """
    experiments = study.experiments()
    found = {name: _params_of(name) for name in _experiments_here() if name in experiments}
    tree, commit = Path(PARAMS).read_text("utf-8"), _git("show", f"HEAD:./{PARAMS}")
    done = {}
    for name, params in found.items():
        of_tree, of_commit = (params_under(experiments[name], text) for text in (tree, commit))
        if params in (of_tree, of_commit):
            done[name] = params
        else:
            _leave_out(_of_other_settings(name, _differing(params, of_tree)))
    return done


def _tell(
    study: Study, out: Path, commits: Mapping[int, str], games: pd.DataFrame, curves: pd.DataFrame
) -> str:
    """Write results.json of the seeds of `commits`; returns the table."""
    games, curves = (
        rows[rows["seed"].isin(commits) & rows["variant"].isin(study.labels)]
        for rows in (games, curves)
    )
    if games.empty:
        raise AriaError(f"no seed of the study {study.name} has been run as it is: {study.command}")
    found: dict[str, Any] = {"command": study.command, **compared(games, study.reference)}
    found["commits"] = {str(seed): commit for seed, commit in commits.items()}
    found["within"] = within(games, study.reference)
    if not curves.empty:
        found["learning"] = learning(curves, study.reference)
        found["at_equal_tokens"] = at_equal_tokens(curves, study.reference)
        found["minutes"] = minutes(curves)
    write_json(out / "results.json", found)
    return table(found, study.reference)


def _commits(study: Study, games: pd.DataFrame, ran: pd.DataFrame) -> dict[int, str]:
    """Seed -> commit of the seeds that are of the study as it is; ran: rows of experiments.csv."""
    if games.empty:
        return {}
    commits, apart = {}, _apart(games)
    for seed in map(int, games["seed"].unique()):
        rows = ran[ran["seed"] == seed].to_dict("records")
        commit = rows[0]["commit"] if rows else ""
        settings = {row["experiment"]: row["settings"] for row in rows}
        variants = set(games["variant"][games["seed"] == seed])
        if why := _unlike(study.of([seed]), settings, variants) or apart.get(seed):
            _leave_out(
                f"seed {seed} ({commit_named(commit)}) {why} run it again ({study.command} "
                f"--seeds {seed})"
            )
        else:
            commits[seed] = commit
    return commits


def _unlike(seed: Study, settings: Mapping[str, str], variants: Set[str]) -> str:
    """Why rows are not what the study of one seed says now, and what else helps than to run it
    again; "" if they are.

    settings: experiment -> hash of what the file said then. variants: of the rows.
    """
    if not settings:
        return "has no line in experiments.csv:"
    if not settings.items() >= seed.hashes().items():
        return f"was run with other settings than the study has now: {OR_BACK}"
    lacking = ", ".join(name for name in seed.labels if name not in variants)
    return f"has no games of {lacking}: {OR_BACK}" if lacking else ""


def _apart(games: pd.DataFrame) -> dict[int, str]:
    """Seeds whose games are not those of most seeds, since a game's rules have changed, with why.

    Games without configurations ("") say nothing.
    """
    known = games[games["config"] != ""].groupby("seed")["config"]
    judged = {int(seed): set(found) for seed, found in known}
    most = min(
        judged.values(), key=lambda one: sum(map(one.isdisjoint, judged.values())), default=()
    )
    why = "was judged in none of the configurations that most other seeds were:"
    return {seed: why for seed, own in judged.items() if own.isdisjoint(most)}


def _leave_out(what: str) -> None:
    print(f"left out: {what}", file=sys.stderr)


def _of_other_settings(experiment: str, blocks: str) -> str:
    """What is wrong with an experiment whose params differ in those blocks, and the remedy."""
    return (
        f"the experiment {experiment} ({commit_named(_head())}) was run with other settings "
        f"({blocks}) than the study has now: remove it (dvc exp remove {experiment}; dvc exp "
        "branch keeps it) and run the seed again"
    )


def _kept(path: Path, here: Study, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows of the seeds that are here, and those of other seeds in the file, which is written."""
    earlier = _earlier(path)
    parts = [*parts, earlier[~earlier["seed"].isin(here.seeds)]]
    if not (filled := [part for part in parts if not part.empty]):
        return earlier
    rows = pd.concat(filled)
    order = [name for name in ("seed", "variant") if name in rows]
    rows = rows.sort_values(order, kind="stable", ignore_index=True)
    (write_parquet if path.suffix == ".parquet" else write_csv)(path, rows)
    return rows


def _earlier(path: Path) -> pd.DataFrame:
    """A table that was written before; without rows where there is none."""
    if not path.exists():
        return pd.DataFrame(columns=["seed", "variant"])
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    texts = {"commit": "", "settings": ""}  # digits alone are no number
    read = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(texts, str))
    return read.fillna({name: text for name, text in texts.items() if name in read})


def _config_key(game: str, config: str) -> str:
    """A few digits for a configuration, of which evaluation tables have the JSON."""
    return hashlib.sha256(f"{game} {config}".encode()).hexdigest()[:8]


def _experiments(study: Study) -> pd.DataFrame:
    columns = ["seed", "experiment", "settings"]
    rows = [
        (seed, *written) for seed in study.seeds for written in study.of([seed]).hashes().items()
    ]
    return pd.DataFrame(rows, columns=columns).assign(commit=_head())


def _evaluation(place: Place) -> pd.DataFrame:
    from aria_dvc.pipeline.report import with_winnable  # it imports what draws pictures

    raw = _content(place.experiment, paths.evaluation(place.variant, place.category))
    games = with_winnable(pd.read_parquet(io.BytesIO(raw)))
    pairs = zip(games["game"], games["config"], strict=True)
    games = games.assign(
        seed=place.seed,
        variant=place.label,
        config=[_config_key(game, config) for game, config in pairs],
        broken_off=broken_off(games),
    )
    return games[GAME_COLUMNS]


def _curve(place: Place) -> pd.DataFrame:
    path = paths.online(place.variant, place.category) / "online.csv"
    curve = pd.read_csv(io.BytesIO(_content(place.experiment, path)))
    return curve.assign(seed=place.seed, variant=place.label, category=place.category)


def params_under(settings: Sequence[str], text: str) -> Blocks:
    """What a params.yaml, of which `text` is the content, says with an experiment's settings.

    Raises:
        AriaError: one of them cannot be applied.
    """
    with TemporaryDirectory() as folder:
        changed = Path(folder, PARAMS)
        changed.write_text(text, encoding="utf-8")
        try:
            apply_overrides(changed, list(settings))
        except InvalidArgumentError as error:
            why = error.__cause__ or error
            raise AriaError(f"settings: {why}: mend the study's file") from None
        blocks: Blocks = read_yaml(changed)
        return blocks


def _checked(study: Study, name: str, settings: Sequence[str]) -> Blocks:
    """What an experiment would be run with; it loads, and has what the study compares."""
    blocks = params_under(settings, Path(PARAMS).read_text("utf-8"))
    params = check_params(blocks, f"{name}: {PARAMS} with the study's settings")
    for block, wanted, known in (
        ("variants", study.variants, params.variants),
        ("categories", study.categories, params.categories),
    ):
        if lacking := ", ".join(name for name in wanted if name not in known):
            raise AriaError(f"{name}: {block}: no {lacking} in {PARAMS}: add it by a setting")
    return blocks


def _differing(one: Blocks, other: Blocks) -> str:
    """The blocks of params.yaml that are not the same in both, as text."""
    return ", ".join(sorted(k for k in {*one, *other} if one.get(k) != other.get(k)))


def _params_of(experiment: str) -> Blocks:
    blocks: Blocks = load_yaml(_content(experiment, PARAMS).decode(), f"{experiment}: {PARAMS}")
    return blocks


def _content(experiment: str, path: str | Path) -> bytes:
    try:
        content: bytes = dvc.api.read(str(path), rev=experiment, mode="rb")
    except (DvcException, OSError) as error:
        raise AriaError(
            f"{path} of the experiment {experiment} cannot be read ({error}): fetch it, or remove "
            f"the experiment (dvc exp remove {experiment}): rows of it in metrics/study/ stay"
        ) from None
    return content


def _experiments_here() -> list[str]:
    return _dvc("exp", "list", "--name-only", stdout=subprocess.PIPE).split()


def _head() -> str:
    """The commit that the experiments here are of."""
    return _git("rev-parse", "HEAD").strip()


def _git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], text=True)


def _dvc(*arguments: str, stdout: int | None = None) -> str:
    """What DVC prints, where a pipe is asked for; what it complains of is seen on standard error.

    It is the DVC of this Python, which its stages find too, whatever PATH says. Experiments run in
    folders of their own and share this one's cache.
    """
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        VARIABLE: str(cache_folder().resolve()),
    }
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, check=True, env=environment, stdout=stdout, text=True)
    return done.stdout or ""


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
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None
    except (Exception, KeyboardInterrupt) as error:
        line = AriaError(str(error)) if isinstance(error, DvcException) else one_line(error)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
