"""The real pipeline with the real models on tiny sizes, in a fresh clone (`make smoke`)."""

import subprocess

import pytest
from dag import ROOT, Workspace, stages_in

GAMES = ("bargaining", "negotiation", "twenty_questions", "guess_my_city")
CATEGORIES = ("adversarial", "single_agent")
TINY = {
    "base_model.warm_start_settings.episodes": 6,
    "base_model.warm_start_settings.by_game": {},
    "policy.epochs": 1,
    "policy.gradient_batches": 2,
    "online.variants": ["aria"],
    "online.iterations": 1,
    "online.games": 12,
    "online.updates": 1,
    "online.repeats": 1,
    "online.by_category": {},
    "online.credit": "reward_model",
    "online.refresh_every": 1,
    "reward_model.epochs": 1,
    **{f"logs.{game}.episodes": 4 for game in GAMES},
    **{f"evaluate.games.{game}.episodes": 2 for game in GAMES},
}


@pytest.mark.smoke
def test_from_a_fresh_clone_to_an_evaluated_policy(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    workspace = Workspace(clone)
    workspace.set_params(TINY)
    ran, _ = stages_in(workspace.run("dvc", "repro", timeout=1500))
    trained = {
        f"{stage}@aria-{c}" for stage in ("policy", "online", "evaluate") for c in CATEGORIES
    }
    vanilla = {f"evaluate@vanilla-{category}" for category in CATEGORIES}
    assert trained | vanilla | {"code", "base_model", "report"} <= ran
    assert set(workspace.read_json("metrics/credit.json")) == set(GAMES)
    evaluation = workspace.read_json("metrics/details/evaluation.json")
    assert evaluation["bargaining"]["by_role"]["bob"]["aria"]["episodes"] == 4  # two opponents
    assert "rate" in evaluation["twenty_questions"]["by_role"]["agent"]["vanilla"]
    learning = workspace.read_json("metrics/details/learning.json")["adversarial"]
    assert learning["online"]["aria"]["updates"] == 1
    numbers = [n for name in ("credit", "learning", "evaluation") for n in leaves(workspace, name)]
    assert len(numbers) <= 30
    assert "up to date" in workspace.run("dvc", "repro")


def leaves(workspace, name):
    pending = [workspace.read_json(f"metrics/{name}.json")]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
        else:
            yield value
