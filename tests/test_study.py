"""The study: its configs are valid, and its comparisons are paired and pooled as said."""

from pathlib import Path

import pandas as pd
import pytest
from scripts.study import ARMS, VANILLA, load_study, results

from aria_dvc.errors import AriaError


@pytest.mark.parametrize("name", ["cpu", "paper"])
def test_configs_change_the_shipped_parameters(name):
    study = load_study(Path(f"configs/study/{name}.yaml"), Path("unused"))
    assert study.params.games == ["bargaining", "negotiation"]
    assert study.params.collect.game("bargaining").grid == "glee48"
    assert study.params.evaluate.game("negotiation").episodes % 24 == 0
    assert len(study.seeds) == 3


def test_an_unknown_key_is_named(tmp_path):
    config = tmp_path / "study.yaml"
    config.write_text("study: {seeds: [0], rounds: 1, opponents: []}\npolicy: {epoch: 1}\n")
    with pytest.raises(AriaError, match=r"policy\.epoch: unknown key \(did you mean epochs\?\)"):
        load_study(config, tmp_path)


def outcomes(arm, seed, won):
    return pd.DataFrame(
        {
            "seed": seed, "game": "bargaining", "role": "alice", "opponent": "scripted:fair",
            "episode": [f"e{i}" for i in range(len(won))], "arm": arm, "won": won,
            "no_deal": False, "failure_kind": "",
        }
    )  # fmt: skip


def test_arms_are_compared_game_by_game():
    arms = {VANILLA: [0, 0, 1, 1], "behaviour_cloning": [0] * 4, "discounted": [0, 1, 0, 1]}
    arms["aria"] = [0, 1, 1, 1]
    tables = [outcomes(arm, seed, list(map(bool, won))) for arm, won in arms.items()
              for seed in (0, 1)]  # fmt: skip
    found = results(pd.concat(tables).sample(frac=1, random_state=0))["bargaining"]["alice"]
    assert set(found["win_rate"]) == {VANILLA, *ARMS}
    assert found["win_rate"]["aria"]["rate"] == 0.75
    assert found["win_rate"]["aria"]["episodes"] == 8
    assert found["aria_minus_discounted"]["mean"] == 0.25
    assert found["aria_minus_discounted"]["pairs"] == 8
    assert found["by_seed"]["0"][VANILLA] == 0.5
