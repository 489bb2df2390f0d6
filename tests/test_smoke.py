"""The real pipeline with the real models on tiny sizes, in a fresh clone (`make smoke`)."""

import subprocess

import pytest
from dag import ROOT, Workspace, stages_in

GAMES = ("bargaining", "negotiation", "twenty_questions", "guess_my_city")
TINY = {
    "base_model.warm_start_settings.episodes": 6,
    "policy.epochs": 1,
    "policy.gradient_batches": 2,
    "policy.online.iterations": 1,
    "policy.online.games": 4,
    "policy.online.updates": 1,
    "policy.online.refresh_every": 1,
    "reward_model.epochs": 1,
    **{f"collect.{game}.episodes": 4 for game in GAMES},
    **{f"evaluate.{game}.episodes": 2 for game in GAMES},
}


@pytest.mark.smoke
def test_from_a_fresh_clone_to_an_evaluated_policy(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    workspace = Workspace(clone)
    workspace.set_params(TINY)
    ran, _ = stages_in(workspace.run("dvc", "repro", timeout=1500))
    assert {f"evaluate@{game}" for game in GAMES} | {"base_model", "report"} <= ran
    assert set(workspace.read_json("metrics/credit.json")) == set(GAMES)
    evaluation = workspace.read_json("metrics/evaluation.json")
    assert evaluation["bargaining"]["bob"]["aria"]["episodes"] == 2
    online = workspace.read_json("metrics/learning.json")["adversarial"]["policy"]["online"]
    assert online["updates"] == 1
    assert "success_rate" in evaluation["twenty_questions"]["agent"]["vanilla"]
    assert "up to date" in workspace.run("dvc", "repro")
