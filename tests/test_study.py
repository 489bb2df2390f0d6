"""The study: its files change what is shipped, and its comparisons are paired and over seeds."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from dvc.utils.hydra import apply_overrides
from scripts.study import load_study

from aria_dvc.errors import AriaError
from aria_dvc.params import load_params
from aria_dvc.report.study import compared


@pytest.mark.parametrize("name", ["cpu", "paper"])
def test_the_settings_are_what_dvc_takes_and_params_allow(name, tmp_path):
    study = load_study(Path(f"configs/study/{name}.yaml"))
    shutil.copy("params.yaml", tmp_path)
    apply_overrides(tmp_path / "params.yaml", [*study.settings, f"seed={study.seeds[-1]}"])
    params = load_params(tmp_path / "params.yaml")
    assert set(study.variants) <= set(params.variants)
    assert study.reference in study.variants
    assert params.categories == study.categories
    assert list(params.logs) == ["bargaining", "negotiation"]
    assert params.evaluate.games["negotiation"].episodes % 24 == 0
    assert params.evaluate.games["bargaining"].facing("bob") == [
        "scripted:fair",
        "scripted:conceding",
    ]


def test_a_missing_key_is_named(tmp_path):
    config = tmp_path / "study.yaml"
    config.write_text("seeds: [0]\n")
    with pytest.raises(AriaError, match=r"missing .*'reference'.*see configs/study/cpu\.yaml"):
        load_study(config)


def outcomes(variant, seed, won):
    return pd.DataFrame(
        {
            "seed": seed, "game": "bargaining", "role": "alice", "opponent": "scripted:fair",
            "episode": [f"e{i}" for i in range(len(won))], "variant": variant, "won": won,
            "no_deal": False, "failure_kind": "",
        }
    )  # fmt: skip


def test_variants_are_compared_game_by_game_with_intervals_over_seeds():
    won = {
        "vanilla": ([0, 0, 1, 1], [0, 0, 1, 1]),
        "discounted": ([0, 1, 0, 1], [0, 1, 0, 1]),
        "aria": ([0, 1, 1, 1], [1, 1, 1, 1]),
    }
    tables = [
        outcomes(variant, seed, list(map(bool, games)))
        for variant, seeds in won.items()
        for seed, games in enumerate(seeds)
    ]
    found = compared(pd.concat(tables).sample(frac=1, random_state=0), "discounted")
    assert found["seeds"] == [0, 1]
    numbers = found["games"]["bargaining"]["alice"]
    assert numbers["win_rate"]["aria"]["rate"] == 0.875
    assert numbers["win_rate"]["aria"]["episodes"] == 8
    assert numbers["by_seed"]["1"]["aria"] == 1.0
    gain = numbers["aria_minus_discounted"]
    assert gain["mean"] == 0.375
    assert gain["count"] == 2
    half = 12.706204736432095 * 0.125  # t with one degree of freedom times the standard error
    assert (gain["low"], gain["high"]) == pytest.approx((0.375 - half, 0.375 + half))
    assert set(numbers) >= {"aria_minus_vanilla", "discounted_minus_vanilla"}
