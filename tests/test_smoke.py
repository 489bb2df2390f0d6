"""The real pipeline with the real models on tiny sizes, in a fresh clone (`make smoke`).

Of the category `adversarial`: a small model's guessing games last for all their twenty turns, and
`test_pipeline_dag.py` takes own logs of them through all stages, with a tiny model.
"""

import subprocess

import pytest
from dag import ROOT, Workspace, stages_in
from ruamel.yaml import YAML

GAMES = ("bargaining", "negotiation")
LIMIT_S = 1500  # of a slow machine
TINY = {
    "categories": ["adversarial"],
    "base_model.games": list(GAMES),
    "base_model.warm_start_settings.episodes": 6,
    "base_model.warm_start_settings.by_game": {},
    "policy.epochs": 1,
    "policy.gradient_batches": 2,
    "online.variants": ["aria"],
    "online.iterations": 1,
    "online.games": 8,
    "online.updates": 1,
    "online.repeats": 1,
    "online.by_category": {},
    "online.credit": "reward_model",
    "online.refresh_every": 1,
    "reward_model.epochs": 1,
    **{f"evaluate.games.{game}.episodes": 2 for game in GAMES},
}


@pytest.mark.smoke
@pytest.mark.timeout(LIMIT_S + 300)
def test_from_a_fresh_clone_to_an_evaluated_policy(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    workspace = Workspace(clone)
    logs = YAML(typ="safe").load(clone / "params.yaml")["logs"]
    workspace.set_params({**TINY, "logs": {game: {**logs[game], "episodes": 4} for game in GAMES}})
    ran, _ = stages_in(workspace.run("dvc", "repro", timeout=LIMIT_S))
    trained = {f"{stage}@aria-adversarial" for stage in ("policy", "online", "evaluate")}
    assert trained | {"code", "base_model", "evaluate@vanilla-adversarial", "report"} <= ran
    assert set(workspace.read_json("metrics/credit.json")) == set(GAMES)
    evaluation = workspace.read_json("metrics/details/evaluation.json")
    assert evaluation["bargaining"]["by_role"]["bob"]["aria"]["episodes"] == 4  # two opponents
    assert "rate" in evaluation["negotiation"]["by_role"]["alice"]["vanilla"]
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
