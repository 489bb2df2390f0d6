"""The benchmark's two ways of playing: the same greedy games, and where they would part."""

from __future__ import annotations

import copy

import pytest
import torch
from benchmarks.engine import (
    OURS,
    SERVER,
    TRANSFORMERS,
    Job,
    Run,
    arguments,
    gaps,
    measure,
    medians,
    partings,
)
from learning_tiny import tiny_model, tiny_tokenizer
from tests.fault_server import FaultServer, serve


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("model")
    model = tiny_model()
    model.config.tie_word_embeddings = False  # tied, it would repeat the prompt's last newline
    model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    sizes = ["--max-new-tokens", "6", "--questions", "2", "--cache-gib", "0.01"]
    return ["--model", str(folder), *sizes, "--batch-tokens", "256"]


def test_greedy_games_are_equal_and_a_forged_one_is_found(words):
    args = arguments(words)
    ours, theirs = (
        measure(Job(way, 3, 0.0, "float32", args)).games for way in (OURS, TRANSFORMERS)
    )
    assert all(game.record.generations for game in ours)
    assert list(partings(ours, theirs)) == []
    forged = copy.deepcopy(theirs)
    forged[1].info["generations"][0]["token_ids"][2] ^= 1
    (found,) = partings(ours, forged)
    assert found.common == ours[1].record.generations[0].token_ids[:2]
    assert found.nexts[0] == found.nexts[1] ^ 1
    assert gaps(args.model, [found])[0] > 0


def test_a_server_plays_the_same_games(words):
    server = FaultServer()
    server.say = lambda body: "Is it an animal?"
    with serve(server) as url:
        args = arguments([*words, "--endpoint", url])
        run = measure(Job(SERVER, 2, 0.7, "float32", args))
    assert [len(game.utterances) for game in run.games] == [4, 4]


def test_ratios_are_ours_over_theirs():
    runs = {
        (8, TRANSFORMERS): [Run(100, 10, 20, 4.0), Run(300, 30, 40, 4.0), Run(200, 20, 30, 4.0)],
        (8, OURS): [Run(400, 50, 60, 1.0)],
    }
    found = medians(runs)
    assert found["transformers_8_episodes_per_hour"] == 200
    assert found["engine_over_transformers_8_tokens_per_cpu_second"] == 2
    assert found["engine_over_transformers_8_peak_gib"] == 0.25
