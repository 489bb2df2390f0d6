"""An agent's log through the stages up to what the policy is trained on, and folds by group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import stages.collect
from agent_logs import NAMED, TAU, call, lines
from pydantic import ValidationError
from stored_log import NAME, STAGES, params_of
from tests.credit_dialogues import dialogues
from tiny_models import tiny_tokenizer

from aria_dvc.chat import Renderer
from aria_dvc.credit.logs import log_of_entries
from aria_dvc.credit.methods.base import episode_folds
from aria_dvc.intentions.log import Log, joined
from aria_dvc.learning.examples import frames_examples
from aria_dvc.params import Params
from aria_dvc.pipeline.frames import category_frames
from aria_dvc.pipeline.paths import files_of
from aria_dvc.records.schemas import EPISODES, TURNS, read_table
from aria_dvc.settings.dialogues import LogSource


def trials(tasks: int = 4, count: int = 3) -> list[dict]:
    """tau-bench trials whose messages carry vectors."""
    found = []
    for number in range(tasks * count):
        rng = np.random.default_rng(number)
        said = [
            {**message, "embedding": rng.normal(size=3).round(3).tolist()}
            if message["role"] != "system"
            else message
            for message in TAU["traj"]
        ]
        said[2] = {**said[2], "tool_calls": [call("search", f'{{"to": "SEA", "n": {number % 2}}}')]}
        task, trial = divmod(number, count)
        entry = {"task_id": task, "trial": trial, "reward": float(number % 2), "traj": said}
        found.append(entry)
    return found


def params_with(source, **more) -> Params:
    params = params_of(source)
    own = params.logs[NAME].model_copy(update=more)
    return params.model_copy(update={"logs": {NAME: own}})


def test_an_agents_log_reaches_the_policy(tmp_path, monkeypatch):
    log = lines(tmp_path / "log", *trials())
    monkeypatch.chdir(tmp_path)
    params = params_with(log, agent="assistant")
    for module in STAGES.values():
        module.main(params, NAME)
    turns = read_table(files_of(params, NAME).turns, TURNS)
    assert turns["group_id"].nunique() == 4
    assert set(turns.loc[turns["is_action"], "role"]) == {"assistant"}
    (frames,) = category_frames(params, "adversarial", None, "aria")
    renderer = Renderer(tiny_tokenizer())
    built = frames_examples([frames], renderer, 4096)
    assert len(built.items) == 12
    text = renderer.tokenizer.decode(built.items[0].input_ids)
    assert 'search(n=0, to="SEA")' in text
    assert "(empty)" in text
    assert text.count("Help with flights.") == 1


def test_who_is_credited_and_what_is_a_group_are_knobs(tmp_path, monkeypatch):
    entry = {**NAMED, "info": {"scenario": {"a": 1}}}
    log = lines(tmp_path / "log", entry, {**entry, "rewards": {"planner": 0.5}})
    monkeypatch.chdir(tmp_path)
    params = params_with(log, agent=["planner"], group_by="info.scenario")
    stages.collect.main(params, NAME)
    STAGES["prepare"].main(params, NAME)
    episodes = read_table(files_of(params, NAME).episodes, EPISODES)
    assert episodes["role"].tolist() == ["planner", "planner"]
    assert episodes["group_id"].nunique() == 1
    assert len(episodes["group_id"].iloc[0]) == 16


def test_the_knobs_are_for_logs_of_ones_own(tmp_path):
    params = params_of(tmp_path / "log")
    played = LogSource(source="data/base_model", category="adversarial", episodes=4, agent="alice")
    raw = params.model_dump() | {"logs": {"bargaining": played.model_dump()}}
    with pytest.raises(ValidationError, match=r"logs\.bargaining: agent: for logs of your own"):
        Params.model_validate(raw)


def grouped(sizes: list[int]) -> Log:
    """A log of one-action episodes in groups of the given sizes, in a mixed order."""
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    said = [{"role": "a", "content": "Hi."}]
    entries = [{"messages": said, "rewards": {"a": 1}, "group_id": f"g{g}"} for g in groups]
    return log_of_entries(entries, 1.0)


def test_a_group_is_never_on_both_sides_of_a_fold():
    log = grouped([3, 1, 4, 2, 5, 1])
    fold = episode_folds(log, 3, seed=0)
    assert log.group is not None
    for group in np.unique(log.group):
        assert len(np.unique(fold[log.group == group])) == 1
    assert set(fold) == {0, 1, 2}
    groups_in = [len(np.unique(log.group[fold == f])) for f in range(3)]
    assert groups_in == [2, 2, 2]
    assert set(episode_folds(log, 20, seed=0)) == set(range(6))


def test_without_groups_and_within_one_the_episodes_are_dealt():
    plain = dialogues()
    alone = replace(plain, group=np.arange(plain.episodes))
    np.testing.assert_array_equal(episode_folds(plain, 5, 3), episode_folds(alone, 5, 3))
    one = replace(plain, group=np.zeros(plain.episodes, np.int64))
    np.testing.assert_array_equal(episode_folds(plain, 5, 3), episode_folds(one, 5, 3))
    assert log_of_entries(
        [{"messages": [{"role": "a", "content": "Hi."}], "rewards": {"a": 1}}] * 3, 1.0
    ).group is None  # fmt: skip


def test_groups_follow_their_episodes():
    log = grouped([2, 2, 3])
    part = log.where(log.episode >= 4)
    np.testing.assert_array_equal(part.group, log.group[4:])
    both = joined([log, part, replace(log, group=None)])
    assert len(np.unique(both.group)) == 3 + len(np.unique(part.group)) + log.episodes
    assert pd.Series(both.group[:7]).factorize()[0].tolist() == pd.factorize(log.group)[0].tolist()
