"""The exported files in the trainers themselves, where one is installed (docs/exports.md).

None of them is a dependency: each test is skipped where its package is absent.
"""

from __future__ import annotations

import json
import math

import pyarrow.parquet as pq
import pytest
import torch
from learning_tiny import save_tiny_base, tiny_model, tiny_tokenizer
from tests.test_exports import credit_of, export, lines_of, log_file


def moved(before: dict[str, torch.Tensor], model: torch.nn.Module) -> bool:
    return any(not torch.equal(before[name], p) for name, p in model.named_parameters())


@pytest.mark.parametrize("target", ["kto", "dpo"])
def test_trl_trains_a_step(tmp_path, target):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    path = export(log_file(tmp_path, roles=1), target) / "alice.jsonl"
    data = datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    kind = {"kto": ("KTOConfig", "KTOTrainer"), "dpo": ("DPOConfig", "DPOTrainer")}[target]
    config = getattr(trl, kind[0])(
        output_dir=str(tmp_path / "out"),
        max_steps=1,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
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
        processing_class=tiny_tokenizer(),
    )
    found = trainer.train()
    assert math.isfinite(found.training_loss)
    assert moved(before, trainer.model)


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


def test_tinker_takes_every_datum(tmp_path):
    tinker = pytest.importorskip("tinker")
    base = save_tiny_base(tmp_path / "model")
    log = log_file(tmp_path, roles=1)
    for row in lines_of(export(log, "tinker", "--model", base.folder) / "alice.jsonl"):
        inputs = {name: tinker.TensorData(**value) for name, value in row["loss_fn_inputs"].items()}
        chunks = [tinker.EncodedTextChunk(**chunk) for chunk in row["model_input"]["chunks"]]
        datum = tinker.Datum(model_input=tinker.ModelInput(chunks=chunks), loss_fn_inputs=inputs)
        assert datum.model_input.length == len(row["loss_fn_inputs"]["weights"]["data"])


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
