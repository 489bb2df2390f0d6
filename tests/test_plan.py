"""`aria plan`: counts are those of real models, bytes those that autograd saves."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
import yaml
from torch.utils.flop_counter import FlopCounterMode

from aria_dvc.__main__ import main
from aria_dvc.errors import AriaError
from aria_dvc.learning.objective import PolicyCollate
from aria_dvc.learning.objectives.registry import METHODS as OBJECTIVES
from aria_dvc.learning.packing import cut_trees
from aria_dvc.models.lora import add_lora, cast_by_autocast
from aria_dvc.params import load_params
from aria_dvc.plan.batch import Load, load_of, values_of
from aria_dvc.plan.cli import Work, work_of
from aria_dvc.plan.estimate import (
    METHODS,
    PROGRESS,
    REWARD_MODEL,
    Estimator,
    Machine,
    Training,
    saved_per_token,
)
from aria_dvc.plan.shapes import SHAPES, ModelShape, shape_of
from aria_dvc.settings.training import Lora, PolicyMethod

PARAMS = Path(__file__).parent.parent / "params.yaml"
MACHINE = Machine(8, 80 * 2**30, 312.0, 0.35)
TINY = ModelShape("tiny", 2, 72, 6, 2, 12, 200, 1_000, tied=True)
SOME, ALL = ("q_proj", "k_proj", "v_proj"), tuple(TINY.linear)
TOKENS = 50


def lora_of(*modules: str, layers: int | None = None) -> Lora:
    return Lora(rank=8, alpha=16, dropout=0.0, target_modules=list(modules), layers=layers)


def model_of(shape: ModelShape, dtype: torch.dtype = torch.float32):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(shape.config(), dtype=dtype)


def saved(shape: ModelShape, lora: Lora | None, arithmetic: str) -> int:
    """Bytes that autograd saves of a forward pass of the decoder, weights and their casts left
    out."""
    model = model_of(shape, torch.bfloat16 if arithmetic == "narrow" else torch.float32)
    decoder = model.model
    if lora:
        model = add_lora(model, lora, "policy")
        if arithmetic == "narrow":
            cast_by_autocast(model)
        decoder = model.base_model.model.model
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and TOKENS in tensor.shape:
            kept[storage.data_ptr()] = tensor
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    ids = torch.randint(0, shape.vocabulary, (1, TOKENS))
    narrow = torch.autocast("cpu", torch.bfloat16, enabled=arithmetic != "float32")
    with hooks, narrow:
        decoder(input_ids=ids, use_cache=False)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.parametrize("arithmetic", ["float32", "narrow", "cast"])
@pytest.mark.parametrize("lora", [None, lora_of(*SOME), lora_of(*ALL)], ids=["full", "qkv", "all"])
def test_a_layer_keeps_what_the_formula_says(arithmetic, lora):
    three, four = (saved(replace(TINY, layers=n), lora, arithmetic) for n in (3, 4))
    assert four - three == TOKENS * saved_per_token(TINY, lora, arithmetic)


def test_parameters_are_those_of_the_real_model():
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    assert SHAPES["llama-3-8b"].parameters() == 8_030_261_248
    assert SHAPES["smollm2-135m"].parameters() == 134_515_008
    with torch.device("meta"):
        for shape in (*SHAPES.values(), TINY, replace(TINY, tied=False, biased=True)):
            model = AutoModelForCausalLM.from_config(shape.config())
            assert model.num_parameters() == shape.parameters()
            config = shape.config()
            config.num_labels = 1
            scoring = AutoModelForSequenceClassification.from_config(config)
            assert scoring.num_parameters() == shape.parameters(scores=True)


def test_a_built_in_shape_is_that_of_the_packaged_weights():
    import gguf

    from aria_dvc.models.packaged import LANGUAGE_MODELS, packaged_path

    shape = SHAPES["smollm2-135m"]
    tensors = gguf.GGUFReader(packaged_path("smollm2-135m-instruct", LANGUAGE_MODELS)).tensors
    assert sum(int(tensor.n_elements) for tensor in tensors) == shape.parameters()


@pytest.mark.parametrize("layers", [None, 1])
def test_trained_parameters_are_those_of_peft(layers):
    lora = lora_of("q_proj", "v_proj", "down_proj", layers=layers)
    model = add_lora(model_of(TINY), lora, "policy")
    planned = plan_of(lora=lora).trained
    assert planned == sum(p.numel() for p in model.parameters() if p.requires_grad)


def plan_of(method: str = "reinforce", lora: Lora | None = None, **changes) -> Estimator:
    machine = replace(MACHINE, **changes.pop("machine", {}))
    training = Training(
        METHODS[method], lora, **{"bfloat16": True, "checkpointing": False} | changes
    )
    return Estimator(TINY, training, machine, Load(2, 100, 0.25))


def test_every_method_of_a_policy_is_planned():
    assert METHODS.keys() == {*get_args(PolicyMethod), REWARD_MODEL, PROGRESS} - {"none"}
    assert all(
        objective.scores_first == (METHODS[name].reads > 0)
        for name, objective in OBJECTIVES.items()
    )
    assert all(
        objective.exact_kl == METHODS[name].exact_kl for name, objective in OBJECTIVES.items()
    )


def test_all_weights_take_sixteen_bytes_a_parameter_of_which_sharding_leaves_its_share():
    """ZeRO (Rajbhandari et al. 2020): 2 + 2 + 12 bytes."""
    count = TINY.parameters()
    alone = plan_of(machine={"gpus": 1}, bfloat16=False).memory()
    assert alone.weights + alone.gradients + alone.optimiser == 16 * count
    sharded = plan_of(machine={"sharding": "zero3"}).memory()
    gathered = sharded.weights - 2 * count / 8
    reduced = sharded.gradients - 2 * count / 8
    assert gathered == reduced == 2 * count  # the model is smaller than DeepSpeed's buffers
    assert sharded.optimiser == 12 * count / 8
    assert plan_of(machine={"sharding": "fsdp"}).peak() < plan_of().peak()


def test_operations_are_six_a_weight_for_all_and_four_under_an_adapter():
    """Kaplan et al. 2020: 2 forward, 4 backward; a frozen matrix has no gradient of its own."""
    weights = TINY.layers * TINY.linear_of_layer
    attention = TINY.layers * 4 * TINY.query * 100
    head = 2 * TINY.embedding * plan_of().load.trained / 200
    assert plan_of().flops_per_token() == 6 * weights + 3 * attention + 3 * head
    lora = lora_of(*SOME)
    adapted = plan_of(lora=lora)
    known = 4 * weights + 3 * attention + 2 * head + 6 * adapted.trained
    # to what goes into the first layer no gradient is passed, but for checkpoints
    lowest = sum(2 * TINY.hidden * (TINY.linear[name][1] + lora.rank) for name in SOME)
    assert adapted.flops_per_token() == known - lowest
    again = plan_of(lora=lora, checkpointing=True).flops_per_token() - known
    assert again == 2 * weights + attention
    read = plan_of("grpo", lora=lora).flops_per_token(0.5) - adapted.flops_per_token()
    assert read == 0.5 * (2 * weights + attention + head)


@pytest.mark.parametrize("layers", [None, 1])
@pytest.mark.parametrize(
    "modules",
    [None, SOME, ALL, ("q_proj",), ("v_proj",), ("k_proj", "up_proj"), ("o_proj",), ("down_proj",)],
)
def test_operations_are_those_that_torch_counts(modules, layers):
    """Of a step of a real model with all scores of attention, each of whose tokens is trained."""
    lora = None if modules is None else lora_of(*modules, layers=layers)
    load = Load(2, 48, 1.0)
    assert load.trained == load.tokens
    model = model_of(TINY)
    model.set_attn_implementation("eager")
    if lora:
        model = add_lora(model, lora, "policy")
    ids = torch.randint(0, TINY.vocabulary, (load.dialogues, load.length))
    with FlopCounterMode(display=False) as counted:
        model(input_ids=ids, use_cache=False).logits.sum().backward()
    planned = replace(plan_of(lora=lora), load=load).flops_per_token()
    assert counted.get_total_flops() == planned * load.tokens


def test_checkpoints_save_memory_and_a_frozen_copy_costs_it():
    assert plan_of(checkpointing=True).memory().activations < plan_of().memory().activations
    assert plan_of(kl=True).memory().reference == 4 * TINY.parameters()
    assert plan_of(kl=True, lora=lora_of(*SOME)).memory().reference == 0
    assert plan_of("grpo", kl=True).memory().reference == 0


def test_a_load_is_what_the_trainer_would_cut():
    load = load_of(1_000, 200, 0.25)
    examples = load.examples(5)
    assert load.dialogues == 5
    assert cut_trees(examples, 1_000) == [sorted(range(5), key=lambda i: examples[i].input_ids[0])]
    inputs = PolicyCollate(0, packed=True)(values_of(examples), 1)
    assert len(inputs["rows"]) == load.trained
    assert inputs["tree_sees"].shape == astuple(load.reads())
    assert load_of(1_000, 300, 0.25, pairs=True).dialogues == 2
    assert load_of(100, 300, 0.25).dialogues == 1


@pytest.mark.parametrize("own", [0.01, 0.25, 0.9])
@pytest.mark.parametrize("length", [*range(1, 70), 127, 129])
def test_made_up_actions_have_room_in_their_dialogue(length, own):
    load = Load(3, length, own)
    for example in load.examples(3):
        turns, tokens = np.unique(example.action[example.action >= 0], return_counts=True)
        assert turns.tolist() == list(range(len(example.keys)))
        assert 3 * tokens.sum() == load.trained <= load.tokens


SIZES = {
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "vocab_size": 100,
}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{", "broken JSON"),
        ("[]", "describes no model"),
        ('{"model_type": "gpt2"}', "the type 'gpt2' is not known here"),
        ('{"model_type": "llama", "hidden_size": 8}', "'num_attention_heads' is missing"),
        (json.dumps({**SIZES, "num_attention_heads": 0}), "every size is at least 1"),
        (json.dumps({**SIZES, "num_hidden_layers": -2}), "every size is at least 1"),
        (json.dumps({**SIZES, "num_key_value_heads": 8}), "share the key-value heads evenly"),
    ],
)
def test_a_wrong_config_is_one_line(tmp_path, config, said):
    file = tmp_path / "config.json"
    file.write_text(config)
    for given in (file, tmp_path):
        with pytest.raises(AriaError, match=said):
            shape_of(str(given))


def test_a_config_is_read_as_transformers_reads_it(tmp_path):
    for shape in (SHAPES["llama-3-8b"], replace(TINY, biased=True, tied=False)):
        shape.config().save_pretrained(tmp_path)
        assert shape_of(str(tmp_path)) == replace(shape, name=tmp_path.name)


def plan(capsys, *options: str) -> str:
    assert main(["plan", "--params", str(PARAMS), *options]) == 0
    return capsys.readouterr().out


def test_the_command_prints_one_row_a_method(capsys):
    lines = plan(capsys).splitlines()
    assert lines[0] == "llama-3-8b: 8,030,261,248 parameters, bfloat16"
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0] in METHODS]
    assert [row[0] for row in rows] == list(METHODS)
    assert all("yes" in row for row in rows)
    full = plan(capsys, "--full", "--methods", "ppo").splitlines()
    assert "no" in next(line for line in full if line.startswith("ppo ")).split()


def test_a_module_that_is_named_twice_is_adapted_once(capsys):
    options = ("--methods", "ppo", "--modules", "q_proj")
    once, twice = plan(capsys, *options), plan(capsys, *options, "q_proj")
    assert once == twice


def test_the_progress_estimator_trains_on_every_dialogue_once_a_fold_but_its_own():
    params, many = load_params(PARAMS), 40
    small = params.model_copy(
        update={"progress": params.progress.model_copy(update={"folds": 5, "epochs": 3})}
    )
    training = Training(METHODS[PROGRESS], None, bfloat16=False, checkpointing=False)
    plan = Estimator(TINY, training, Machine(1, 0.0, 1.0, 1.0), load_of(64, 64, 0.25, pairs=False))
    assert work_of(small, plan, many) == Work(40 * 4 * 3, 40)
    every = {name: log.episodes for name, log in params.logs.items()}
    sides = {"bargaining": 2, "negotiation": 2}
    shown = sum(count * sides.get(name, 1) for name, count in every.items())
    assert work_of(small, plan, None) == Work(shown * 4 * 3, 0.0)


def test_how_long_a_log_of_ones_own_is_must_be_said(capsys, tmp_path):
    raw = yaml.safe_load(PARAMS.read_text())
    raw["logs"]["bargaining"] = {"source": "log.jsonl", "category": "adversarial"}
    own = tmp_path / "params.yaml"
    own.write_text(yaml.safe_dump(raw))
    command = ["plan", "--params", str(own), "--methods", "ppo"]
    assert main(command) == 1
    assert "logs.bargaining is a log of your own: say by --episodes" in capsys.readouterr().err
    assert main([*command, "--episodes", "100"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--model llama-3-8", "--model llama-3-8: neither a config.json"),
        ("--methods ppoo", "there is no ppoo (did you mean ppo?)"),
        ("--modules qproj", "the model has no qproj (did you mean q_proj?)"),
        ("--full --rank 4", "--full trains all weights"),
        ("--measure --sharding fsdp", "whatever --sharding says: leave it out"),
        ("--measure --gpus 4", "whatever --gpus says: leave it out"),
        ("--measure --episodes 4", "whatever --episodes says: leave it out"),
    ],
)
def test_a_wrong_option_is_one_line(capsys, options, said):
    assert main(["plan", "--params", str(PARAMS), *options.split()]) == 1
    assert said in capsys.readouterr().err


def test_real_steps_are_measured(capsys, tmp_path):
    """Every method trains a model of no size in a process of its own."""
    TINY.config().save_pretrained(tmp_path)
    small = f"--model {tmp_path} --measure --tokens 64 --dialogue 64 --precision float32"
    shown = plan(capsys, *small.split(), "--methods", "trajectory_dpo", "progress")
    assert "this machine: a " in shown
    assert shown.splitlines()[-1].startswith("progress ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("reinforce", ()),
        ("reinforce", ("--full",)),
        ("trajectory_dpo", ()),
        ("reward_model", ()),
        ("progress", ()),
    ],
)
def test_the_estimate_is_near_what_the_default_model_takes(capsys, method, options):
    small = "--model smollm2-135m --measure --tokens 512 --dialogue 256 --methods"
    row = plan(capsys, *small.split(), method, *options).splitlines()[-1].split()
    assert float(row[1]) == pytest.approx(float(row[2]), rel=0.15)
