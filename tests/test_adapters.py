"""The adapters: credits at run time, from a folder and from a server, at the right tokens."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from starlette.responses import Response
from tests.fault_server import FaultServer, serve
from tests.test_exports import log_file
from tests.test_serve import chat, fit, serving
from tiny_models import tiny_model, tiny_tokenizer

from aria_dvc.adapters.credits import at_turn_ends, centred, credits_of, over_turns, spoken
from aria_dvc.adapters.prime_rl import credit_traces
from aria_dvc.adapters.trl import TurnCredits, with_turn_credits
from aria_dvc.adapters.verl import estimate, register, turn_scores
from aria_dvc.credit.fitted import load_fit
from aria_dvc.errors import AriaError
from aria_dvc.serving.serve import credit_app

MASK = torch.tensor([[1, 1, 0, 0, 1, 0], [0, 1, 1, 1, 0, 0]])
VALUES = [[0.5, -1.0], [2.0]]


def test_a_turn_is_a_run_of_sampled_tokens():
    assert over_turns(MASK, VALUES).tolist() == [
        [0.5, 0.5, 0.0, 0.0, -1.0, 0.0],
        [0.0, 2.0, 2.0, 2.0, 0.0, 0.0],
    ]
    assert at_turn_ends(MASK, VALUES).tolist() == [
        [0.0, 0.5, 0.0, 0.0, -1.0, 0.0],
        [0.0, 0.0, 0.0, 2.0, 0.0, 0.0],
    ]
    with pytest.raises(AriaError, match="response 1 has 1 turns but 2 credits"):
        over_turns(MASK, [[0.5, -1.0], [2.0, 1.0]])


def test_the_baseline_is_one_number_a_group():
    found = centred([[1.0, 2.0], [3.0], [10.0]], ["a", "a", "b"])
    assert found == [[-1.0, 0.0], [1.0], [0.0]]


def test_a_folder_and_a_server_give_the_same_credits(tmp_path):
    folder = fit(log_file(tmp_path))
    chats = [chat("hello", "60?", "I take it"), chat("hello")]
    own = credits_of(folder, "alice")(chats)
    assert [len(row) for row in own] == [2, 1]
    with serving(credit_app(load_fit(folder))) as served:
        assert credits_of(served.url, "alice")(chats) == own
        with pytest.raises(AriaError, match=r"HTTP 422.*agent is missing"):
            credits_of(served.url)(chats)
    with pytest.raises(AriaError, match="no answer"):
        credits_of(served.url, "alice", deadline_s=0.2)(chats)
    with pytest.raises(AriaError, match="the fitted roles are alice, bob"):
        credits_of(folder)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:geheimnis@127.0.0.1:9", "carries credentials"),
        ("http://127.0.0.1:9/?key=geheimnis", "carries credentials"),
        ("http://", "must look like http://host:port"),
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(url, said):
    with pytest.raises(AriaError, match=said) as caught:
        credits_of(url)
    assert "geheimnis" not in str(caught.value)


def test_chats_of_a_batch_know_nothing_of_each_others_names(tmp_path):
    folder = fit(log_file(tmp_path))
    chats = [chat("hello", "60?", "I take it") for _ in range(2)]
    for number, name in enumerate(("Sam", "sam")):
        chats[number] = [
            {**message, "name": name} if message["role"] == "user" else message
            for message in chats[number]
        ]
    credits = credits_of(folder, "alice")
    assert credits(chats) == [*credits(chats[:1]), *credits(chats[1:])]


def test_every_message_of_the_assistant_has_its_credit_or_the_chat_is_named(tmp_path):
    folder = fit(log_file(tmp_path))
    named = chat("hello", "60?", "I take it")
    named[0]["name"] = "bot"
    other = chat("hello", "60?", "I take it")
    other[2]["name"] = "bob"
    with serving(credit_app(load_fit(folder))) as served:
        for source in (folder, served.url):
            assert len(credits_of(source, "alice")([named])[0]) == 2
            with pytest.raises(AriaError, match="chat 1 has 2 messages of the assistant but 1"):
                credits_of(source, "alice")([named, other])
    as_role = [{**m, "role": {"assistant": "alice"}.get(m["role"], "bob")} for m in other]
    assert len(credits_of(folder, "alice")([as_role])[0]) == 2


def test_a_chat_that_cannot_be_read_is_named_by_its_place_in_the_batch(tmp_path):
    folder = fit(log_file(tmp_path))
    good, bad, half = chat("hello", "60?"), chat("hello", "60?"), chat("a\ud800")
    bad[0]["content"] = [{"type": "thinking", "thinking": "x"}]
    with serving(credit_app(load_fit(folder))) as served:
        for source in (folder, served.url):
            with pytest.raises(AriaError, match=r"chat 19: messages\[\d\] ") as caught:
                credits_of(source, "alice")([good] * 19 + [bad])
            assert "check the address" not in str(caught.value)
            with pytest.raises(AriaError, match=r"^chat 17.*half of a character"):
                credits_of(source, "alice")([good] * 17 + [half])


@pytest.mark.parametrize("scores", [[], [["x"]], {"a": 1}, [1.0], None])
def test_a_server_that_answers_otherwise_is_named(scores):
    server = FaultServer()
    server.whole = lambda body: json.dumps({"scores": scores})
    with serve(server) as url, pytest.raises(AriaError, match=f"{url} does not answer like"):
        credits_of(url)([chat("hello", "60?", "I take it")])


@contextmanager
def full_at_first(app, times: int):
    """A server of `app` that has no room for the first requests."""
    left = [times]

    async def door(scope, receive, send):
        if scope["type"] == "http" and left[0] > 0:
            left[0] -= 1
            response = Response(status_code=503, headers={"retry-after": "0"})
            return await response(scope, receive, send)
        return await app(scope, receive, send)

    with serving(door) as served:
        yield served


def test_a_batch_of_any_size_is_scored_by_a_server_that_is_full_at_times(tmp_path):
    folder = fit(log_file(tmp_path))
    chats = [chat("hello", "60?", "I take it"), chat("hello")] * 200  # over what one request takes
    with full_at_first(credit_app(load_fit(folder)), 3) as served:
        assert credits_of(served.url, "alice")(chats) == credits_of(folder, "alice")(chats)


def test_a_model_under_training_may_say_nothing(tmp_path):
    folder = fit(log_file(tmp_path))
    chats = [chat("hello", "60?", text) for text in ("", " \n", "(empty)")]
    found = credits_of(folder, "alice")(chats)
    assert found[0] == found[1] == found[2]
    with serving(credit_app(load_fit(folder))) as served:
        assert credits_of(served.url, "alice")(chats) == found
    called = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]}
    assert spoken([called]) == [called]


def nothing(name: str = "") -> dict:
    """A message that calls what has no name, as a model under training may."""
    calls = [{"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


@pytest.mark.parametrize(
    "said",
    [
        {"content": []},
        {"content": [{"type": "text", "text": ""}]},
        {"content": [{"type": "output_text", "text": " "}, {"type": "text", "text": "\n"}]},
        {"content": None, "function_call": {}},
        nothing(),
        nothing(" "),
        nothing() | {"tool_calls": [None]},
        nothing() | {"tool_calls": [{"function": {"name": "f", "arguments": 3}}]},
    ],
)
def test_whatever_says_nothing_is_scored_as_empty(tmp_path, said):
    folder = fit(log_file(tmp_path))
    chats = [
        chat("hello", "60?", "(empty)"),
        [*chat("hello", "60?"), {"role": "assistant", **said}],
    ]
    with serving(credit_app(load_fit(folder))) as served:
        for source in (folder, served.url):
            found = credits_of(source, "alice")(chats)
            assert found[0] == found[1]


def test_calls_that_are_none_are_left_out_beside_words_and_calls():
    call = nothing("f")["tool_calls"]
    made = nothing() | {"content": "Let me see.", "tool_calls": [*nothing()["tool_calls"], *call]}
    assert spoken([made]) == [made | {"tool_calls": call}]
    assert spoken([nothing() | {"content": "No."}])[0]["content"] == "No."
    image = {"role": "user", "content": [{"type": "image_url"}]}
    assert spoken([image]) == [image]


def test_no_chats_have_no_credits(tmp_path):
    folder = fit(log_file(tmp_path))
    with serving(credit_app(load_fit(folder))) as served:
        assert credits_of(folder, "alice")([]) == credits_of(served.url, "alice")([]) == []


def test_a_response_that_is_left_out_has_no_numbers():
    mask = torch.tensor([[1, 1, 0], [0, 0, 0]])
    assert over_turns(mask, [[2.0], [5.0]]).tolist() == [[2.0, 2.0, 0.0], [0.0, 0.0, 0.0]]


def test_verl_s_penalty_in_the_reward_is_kept():
    rewards = at_turn_ends(MASK, VALUES) - 0.1 * MASK
    _, returns = estimate(rewards, MASK)
    np.testing.assert_allclose(returns, over_turns(MASK, [[0.3, -1.1], [1.7]]), rtol=1e-6)


def test_verl_s_estimator_spreads_what_stands_at_the_ends(tmp_path):
    rewards = at_turn_ends(MASK, VALUES)
    advantages, returns = estimate(rewards, MASK, np.array(["p", "p"], dtype=object))
    np.testing.assert_allclose(returns, over_turns(MASK, VALUES))
    np.testing.assert_allclose(advantages, over_turns(MASK, [[0.0, -1.5], [1.5]]))
    score = turn_scores(fit(log_file(tmp_path)), agent="alice")
    chats = [chat("hello", "60?", "I take it"), chat("hello")]
    found = score(chats, MASK)
    own = credits_of(tmp_path / "fitted", "alice")(chats)
    np.testing.assert_allclose(found, at_turn_ends(MASK, own), rtol=1e-6)


def test_verl_calls_the_estimator():
    pytest.importorskip("verl.trainer.ppo.core_algos")
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn

    register()
    register()
    rewards, uid = at_turn_ends(MASK, VALUES), np.array(["p", "p"], dtype=object)
    options = {"token_level_rewards": rewards, "response_mask": MASK, "config": None, "index": uid}
    advantages, returns = get_adv_estimator_fn("aria")(**options)
    assert advantages.shape == returns.shape == MASK.shape
    assert (advantages[MASK == 0] == 0).all()


def test_verl_s_trainer_gives_its_batch_the_advantages():
    trainer = pytest.importorskip("verl.trainer.ppo.ray_trainer", exc_type=ImportError)
    from verl import DataProto

    register()
    rewards, uid = at_turn_ends(MASK, VALUES), np.array(["p", "p"], dtype=object)
    tensors = {"token_level_rewards": rewards, "response_mask": MASK}
    batch = DataProto.from_dict(tensors=tensors, non_tensors={"uid": uid})
    found = trainer.compute_advantage(batch, "aria").batch["advantages"]
    np.testing.assert_allclose(found, over_turns(MASK, [[0.0, -1.5], [1.5]]))


def test_trl_s_texts_without_turns_are_one_line(tmp_path):
    credits = TurnCredits(fit(log_file(tmp_path)), agent="bob")
    with pytest.raises(AriaError, match="train on messages, which have turns"):
        credits(["hello"], ["no"])
    with pytest.raises(AriaError, match="completion 0 has no turn of the assistant"):
        credits([[{"role": "user", "content": "hello"}]], [[]])


def test_trl_s_grpo_takes_a_credit_a_turn(tmp_path):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    credits = TurnCredits(fit(log_file(tmp_path)), agent="bob")
    prompts = [[{"role": "user", "content": "hello"}], [{"role": "user", "content": "no"}]]
    data = datasets.Dataset.from_dict({"prompt": prompts * 2})
    config = trl.GRPOConfig(
        output_dir=str(tmp_path / "out"),
        max_steps=1,
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=8,
        learning_rate=1e-2,
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
    )
    seen = []

    class Watched(with_turn_credits(trl.GRPOTrainer, credits)):
        def _compute_loss(self, model, inputs):
            seen.append(inputs["advantages"])
            return super()._compute_loss(model, inputs)

    credits._credits = lambda chats: [[0.25 * i - 0.3] for i, _ in enumerate(chats)]
    model = tiny_model()
    before = [p.detach().clone() for p in model.parameters()]
    trainer = Watched(
        model=model,
        reward_funcs=[credits],
        args=config,
        train_dataset=data,
        processing_class=tiny_tokenizer(),
    )
    assert math.isfinite(trainer.train().training_loss)
    assert seen[0].dim() == 2
    assert seen[0].shape[0] == 4
    assert set(seen[0].abs().max(dim=1).values.round(decimals=4).tolist()) == {0.125}
    assert any(
        not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True)
    )


SPREAD = """
import sys
from pathlib import Path
import torch
from accelerate import PartialState
from aria_dvc.adapters import trl

folder, number = Path(sys.argv[1]), int(sys.argv[2])
torch.distributed.init_process_group("gloo", f"file://{folder}/store", rank=number, world_size=2)
assert PartialState(cpu=True).num_processes == 2


class Trainer:
    '''What the adapter takes of GRPOTrainer, with one completion in this process.'''

    def _generate_and_score_completions(self, inputs):
        prompts = [[{"role": "user", "content": "same" if inputs == "one" else f"own {number}"}]]
        credits(prompts, [[{"role": "assistant", "content": "x"}]])
        return {"completion_mask": torch.ones(1, 2), "advantages": torch.zeros(1)}


trl.credits_of = lambda *options: lambda chats: [[float(number)] for _ in chats]
credits = trl.TurnCredits("fitted")
trainer = trl.with_turn_credits(Trainer, credits)()
found = [trainer._generate_and_score_completions(p)["advantages"].tolist() for p in ("one", "two")]
(folder / f"{number}.json").write_text(repr(found))
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""


def test_trl_s_group_is_one_over_all_processes(tmp_path):
    pytest.importorskip("accelerate")
    source = Path(__file__).parent.parent / "src"
    told = {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    told |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SPREAD, str(tmp_path), str(number)],
            env={**os.environ, **told, "RANK": str(number), "LOCAL_RANK": str(number)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in (0, 1)
    ]
    for process in started:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error[-2000:]
    found = [json.loads((tmp_path / f"{number}.json").read_text()) for number in (0, 1)]
    assert found == [[[[-0.5, -0.5]], [[0.0, 0.0]]], [[[0.5, 0.5]], [[0.0, 0.0]]]]


def node(role: str, text: str, parent: int | None, tokens: int = 0) -> SimpleNamespace:
    message = SimpleNamespace(role=role, content=text)
    message.model_dump = lambda **_: {"role": role, "content": text}
    mask = [False, *([True] * tokens)]
    return SimpleNamespace(
        message=message, parent=parent, sampled=tokens > 0, mask=mask, advantages=None
    )


def test_traces_get_an_advantage_for_every_sampled_token():
    traces = [
        SimpleNamespace(
            nodes=[
                node("user", "hello", None),
                node("assistant", "a", 0, 2),
                node("user", "b", 1),
                node("assistant", "c", 2, 3),
            ],
            info={},
        ),
        SimpleNamespace(nodes=[node("user", "hello", None), node("assistant", "d", 0, 1)], info={}),
    ]
    credit_traces(traces, lambda chats: [[1.0, 3.0], [2.0]])
    assert [n.advantages for n in traces[0].nodes] == [None, [-1.0, -1.0], None, [1.0, 1.0, 1.0]]
    assert traces[1].nodes[1].advantages == [0.0]
    assert traces[0].info["turn_rewards"] == [1.0, 3.0]


def test_replies_that_no_model_call_made_are_no_part_of_the_baseline():
    nodes = [
        node("user", "hello", None),
        node("assistant", "given", 0),
        node("user", "b", 1),
        node("assistant", "c", 2, 2),
        node("user", "d", 3),
        node("assistant", "e", 4, 1),
    ]
    trace = SimpleNamespace(nodes=nodes, info={})
    credit_traces([trace], lambda chats: [[9.0, 1.0, 3.0]])
    assert [n.advantages for n in nodes] == [None, None, None, [-1.0, -1.0], None, [1.0]]
    assert trace.info["turn_rewards"] == [1.0, 3.0]


def test_every_branch_of_a_trace_is_credited_and_what_they_share_once():
    nodes = [
        node("user", "hello", None),
        node("assistant", "a", 0, 2),
        node("user", "b", 1),
        node("assistant", "c", 2, 1),
        node("user", "d", 1),
        node("assistant", "e", 4, 1),
        node("user", "nobody answers", 0),
    ]
    asked = []

    def credits(chats):
        asked.extend([m["content"] for m in one] for one in chats)
        return [[3.0, 0.0], [3.0, 6.0]]

    trace = SimpleNamespace(nodes=nodes, info={})
    credit_traces([trace], credits)
    assert asked == [["hello", "a", "b", "c"], ["hello", "a", "d", "e"]]
    assert [n.advantages for n in nodes] == [None, [0.0, 0.0], None, [-3.0], None, [3.0], None]
    assert trace.info["turn_rewards"] == [3.0, 0.0, 6.0]
