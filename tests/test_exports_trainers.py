"""The exported files in the trainers themselves, where one is installed (docs/exports.md).

None of them is a dependency: each test is skipped where its package is absent.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from agent_logs import SCHEMA, lines, trajectories
from learning_tiny import save_tiny_base, tiny_model, tiny_tokenizer
from test_exports import credit_of, export, lines_of, log_file
from test_exports_tools import TEMPLATE, with_schemas

PRINTED = [chr(sign) for sign in range(33, 127)]


def moved(before: dict[str, torch.Tensor], model: torch.nn.Module) -> bool:
    return any(not torch.equal(before[name], p) for name, p in model.named_parameters())


def read_by_trl(path: Path):
    """The lines of an exported file as TRL's trainers get them."""
    datasets = pytest.importorskip("datasets")
    cache = str(path.parent / "cache")
    return datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=cache)


@pytest.mark.parametrize(
    ("target", "calls"), [("kto", False), ("dpo", False), ("kto", True)], ids=str
)
def test_trl_trains_a_step(tmp_path, target, calls):
    trl = pytest.importorskip("trl")
    log, role = (with_schemas, "assistant") if calls else (partial(log_file, roles=1), "alice")
    data = read_by_trl(export(log(tmp_path), target) / f"{role}.jsonl")
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TEMPLATE if calls else tokenizer.chat_template
    kind = {"kto": ("KTOConfig", "KTOTrainer"), "dpo": ("DPOConfig", "DPOTrainer")}[target]
    config = getattr(trl, kind[0])(
        output_dir=str(tmp_path / "out"),
        max_steps=1,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        max_length=4096,
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
    )
    model = tiny_model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    trainer = getattr(trl, kind[1])(
        model=model,
        ref_model=tiny_model(),
        args=config,
        train_dataset=data,
        processing_class=tokenizer,
    )
    found = trainer.train()
    assert math.isfinite(found.training_loss)
    assert moved(before, trainer.model)


@pytest.mark.parametrize("target", ["kto", "dpo"])
def test_trl_renders_calls_replies_and_schemas(tmp_path, target):
    """What its trainers tokenize of each line: the template has objects for arguments."""
    pytest.importorskip("trl")
    from trl.data_utils import apply_chat_template

    entries = trajectories()
    for entry in entries:  # other arguments in every run, which Arrow must not make alike
        function = entry["traj"][5]["tool_calls"][0]["function"]
        function["arguments"] = json.dumps({f"key{entry['task_id']}": [entry["trial"], "x"]})
        entry["traj"][6]["content"] = "the same"
    for entry in entries if target == "dpo" else ():
        entry["traj"] = entry["traj"][:6]
    log = lines(tmp_path / "log.jsonl", *({**entry, "tools": [SCHEMA]} for entry in entries))
    data = read_by_trl(export(log, target) / "assistant.jsonl")
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TEMPLATE
    ends = set()
    for row in data:
        names = {"kto": ("prompt", "completion"), "dpo": ("prompt", "chosen", "rejected")}[target]
        example = {name: row[name] for name in names}
        found = apply_chat_template(example, tokenizer, tools=json.loads(row["tools"]))
        assert found["prompt"].startswith("<|im_start|>tools\n{")
        assert '"arguments": {"to": "SEA", "n": 2}}</tool_call>\n<tool_call>' in found["prompt"]
        replies = "<tool_response>[]</tool_response>\n<tool_response></tool_response>"
        assert replies in found["prompt"]
        assert "null" not in found["prompt"]
        ends |= {found[name] for name in names[1:]}
    if target == "dpo":
        called = '<tool_call>{"name": "book", "arguments": {"key0": [0, "x"]}}</tool_call>'
        assert f"I try it.\n{called}<|im_end|>\n" in ends


def test_swift_s_template_weighs_calls_by_our_floats(tmp_path):
    pytest.importorskip("swift.template")
    from swift import get_processor, get_template
    from swift.dataset import load_dataset

    path = export(with_schemas(tmp_path), "swift") / "assistant.jsonl"
    folder = str(save_tiny_base(tmp_path / "model").folder)
    processor = get_processor(folder, model_type="llama")
    template = get_template(
        processor, template_type="chatml", agent_template="hermes", is_binary_loss_scale=False
    )
    template.set_mode("train")
    data, _ = load_dataset(str(path), num_proc=1)
    for row, line in zip(data, lines_of(path), strict=True):
        found = template.encode(dict(row))
        said: dict[float, str] = defaultdict(str)
        for token, weight in zip(found["input_ids"], found["loss_scale"], strict=True):
            said[round(weight, 4)] += template.tokenizer.decode([token])
        for message in line["messages"]:
            if (weight := message.get("loss_scale", 1.0)) != 1.0:
                assert message["content"] in said[round(weight, 4)]
        text = template.tokenizer.decode(found["input_ids"])
        assert "Flights to a place." in text
        call = '<tool_call>\n{"name": "search", "arguments": {"to": "SEA", "n": 2}}\n</tool_call>'
        assert call in text
        assert "<tool_response>\n[]\n</tool_response>" in text


def test_swift_s_loss_scale_has_our_floats(tmp_path):
    pytest.importorskip("swift.loss_scale")
    from swift.loss_scale import get_loss_scale
    from swift.template import ContextType

    chat = lines_of(export(log_file(tmp_path, roles=1), "swift") / "alice.jsonl")[0]
    messages = [m for m in chat["messages"] if m["role"] != "system"]
    kinds = {"user": ContextType.OTHER, "assistant": ContextType.RESPONSE}
    contexts = [m["content"] for m in messages]
    found = get_loss_scale("default")(contexts, [kinds[m["role"]] for m in messages], messages)
    assert found[1] == [m.get("loss_scale", 0.0) for m in messages]


def test_swift_trains_a_step_on_our_floats(tmp_path, monkeypatch):
    trainers = pytest.importorskip("swift.trainers.seq2seq_trainer")
    from safetensors.torch import load_file
    from swift import sft_main

    seen = []
    compute_loss = trainers.Seq2SeqTrainer.compute_loss

    def watched(self, model, inputs, *args, **more):
        seen.append(set(inputs["loss_scale"].flatten().tolist()))
        return compute_loss(self, model, inputs, *args, **more)

    monkeypatch.setattr(trainers.Seq2SeqTrainer, "compute_loss", watched)
    path = export(log_file(tmp_path, roles=1), "swift") / "alice.jsonl"
    options = {
        "model": save_tiny_base(tmp_path / "model").folder,
        "model_type": "llama",
        "template": "chatml",
        "dataset": path,
        "is_binary_loss_scale": "false",  # else every weight is taken for 1
        "torch_dtype": "float32",
        "tuner_type": "lora",
        "max_steps": 1,
        "per_device_train_batch_size": len(lines_of(path)),
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "output_dir": tmp_path / "out",
        "report_to": "none",
        "dataset_num_proc": 1,
        "dataloader_num_workers": 0,
    }
    sft_main([part for name, value in options.items() for part in (f"--{name}", str(value))])
    weights = {
        m["loss_scale"] for row in lines_of(path) for m in row["messages"] if "loss_scale" in m
    }
    # what the template puts around a reply weighs 1, other people's words 0
    assert sorted(seen[0] - {0.0, 1.0}) == pytest.approx(sorted(weights - {1.0}))
    (adapter,) = (tmp_path / "out").rglob("adapter_model.safetensors")
    assert any(bool(w.any()) for name, w in load_file(adapter).items() if "lora_B" in name)


def tinker_data(tmp_path, *options):
    """The exported file as Tinker's own objects, and the tiny model's folder."""
    tinker = pytest.importorskip("tinker")
    base = save_tiny_base(tmp_path / "model")
    path = export(log_file(tmp_path, roles=1), "tinker", "--model", base.folder, *options)
    for row in lines_of(path / "alice.jsonl"):
        inputs = {name: tinker.TensorData(**value) for name, value in row["loss_fn_inputs"].items()}
        chunks = [tinker.EncodedTextChunk(**chunk) for chunk in row["model_input"]["chunks"]]
        yield tinker.Datum(model_input=tinker.ModelInput(chunks=chunks), loss_fn_inputs=inputs)


def log_probabilities(model, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(..., T) log-probability of each target after the tokens up to its own place."""
    scores = torch.log_softmax(model(input_ids=tokens).logits, -1)
    return scores.gather(-1, targets[..., None])[..., 0]


def weighted_loss(data, model) -> torch.Tensor:
    total = torch.zeros(())
    for datum in data:
        tokens = torch.tensor(datum.model_input.to_ints())
        target, weights = (datum.loss_fn_inputs[n].to_torch() for n in ("target_tokens", "weights"))
        total = total - (log_probabilities(model, tokens[None], target[None])[0] * weights).sum()
    return total


def test_tinker_s_data_train_a_step(tmp_path):
    """By its loss cross_entropy as documented, sum(-log p * weight): its own runs at Tinker."""
    data, model = list(tinker_data(tmp_path, "--signed")), tiny_model()
    for datum in data:
        assert datum.model_input.length == len(datum.loss_fn_inputs["weights"].to_torch())
    assert any((datum.loss_fn_inputs["weights"].to_torch() < 0).any() for datum in data)
    before = weighted_loss(data, model)
    before.backward()
    torch.optim.SGD(model.parameters(), 1e-3).step()
    assert weighted_loss(data, model) < before


def test_verifiers_validates_every_episode(tmp_path):
    pytest.importorskip("verifiers.v1")
    from verifiers.v1 import WireEpisode

    for line in (export(log_file(tmp_path), "traces") / "bob.jsonl").open():
        episode = WireEpisode.model_validate(json.loads(line))
        (trace,) = episode.traces
        assert len(trace.info["turn_rewards"]) == sum(node.sampled for node in trace.nodes)


def test_art_reads_the_groups(tmp_path):
    logging = pytest.importorskip("art.utils.trajectory_logging")
    log = log_file(tmp_path, roles=1)
    path, table = export(log, "art") / "alice.parquet", credit_of(log)
    groups = logging.read_trajectory_groups_parquet(path)
    assert len(groups) == table["group_id"].nunique()
    rewards = sorted(t.reward for group in groups for t in group.trajectories)
    assert rewards == pytest.approx(sorted(table["advantage"]))
    assert pq.read_table(path).num_rows == len(rewards)


def trained_at_the_end(trajectory, tokenizer) -> None:
    """Make its last message the only one that ART trains: a choice, sampled by nobody knows whom.

    Where a log-probability is NaN, ART's loss takes the present policy's.
    """
    from openai.types.chat.chat_completion import Choice

    message, unknown = trajectory.messages_and_choices[-1], {"logprob": math.nan}
    ids = tokenizer.encode(message["content"], add_special_tokens=False)
    tokens = [{"token": f"token_id:{i}", "top_logprobs": [], **unknown} for i in ids]
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    found = Choice.model_validate({**choice, "logprobs": {"content": tokens}})
    trajectory.messages_and_choices[-1] = found


def test_art_s_loss_trains_a_step_on_the_last_messages(tmp_path, monkeypatch):
    logging = pytest.importorskip("art.utils.trajectory_logging")
    from art.loss import loss_fn
    from art.preprocessing.pack import packed_tensors_from_tokenized_results
    from art.preprocessing.tokenize import tokenize_trajectory_groups
    from art.transformers import patches
    from transformers import masking_utils

    # what ART puts in its place takes an argument that transformers 5 no longer gives
    name = "_preprocess_mask_arguments"
    monkeypatch.setattr(masking_utils, name, getattr(patches, name))
    tokenizer, model = tiny_tokenizer(), tiny_model()
    # ART marks a reply by its last token that no text has; behind ASCII a token here is half a sign
    monkeypatch.setattr(type(tokenizer), "vocab_size", len(PRINTED))
    path = export(log_file(tmp_path, roles=1), "art") / "alice.parquet"
    groups = logging.read_trajectory_groups_parquet(path)
    for trajectory in (trajectory for group in groups for trajectory in group.trajectories):
        trained_at_the_end(trajectory, tokenizer)
    found = list(tokenize_trajectory_groups(tokenizer, groups, False, scale_rewards=False))
    for result in found:
        said = [t for t, of in zip(result.token_ids, result.assistant_mask, strict=True) if of]
        last = result.trajectory.messages_and_choices[-1]
        assert tokenizer.decode(said).removesuffix("<|im_end|>") == last.message.content
    packed = packed_tensors_from_tokenized_results(
        found, 256, tokenizer.pad_token_id, pack_results=False
    )
    tokens = packed["tokens"]
    said = log_probabilities(model, tokens, tokens.roll(-1, 1))
    loss = loss_fn(packed, said, None, None, {}).policy_loss
    assert math.isfinite(loss.item())
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    loss.backward()
    torch.optim.SGD(model.parameters(), 1e-2).step()
    assert moved(before, model)
