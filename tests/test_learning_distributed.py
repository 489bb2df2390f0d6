"""Two processes take the steps of one; the launch configurations are sound."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from learning_tiny import (
    LORA,
    made_up_game,
    policy_params,
    save_tiny_base,
    tiny_model,
    tiny_tokenizer,
)
from safetensors.torch import load_file
from settings import pace

from aria_dvc.chat import Renderer
from aria_dvc.learning import trainer as trainer_module
from aria_dvc.learning.batches import make_plan
from aria_dvc.learning.examples import frames_examples
from aria_dvc.learning.objective import policy_collate, selected_logits, weighted_nll
from aria_dvc.learning.packing import cut_padded
from aria_dvc.learning.policy import train_policy
from aria_dvc.learning.trackers import NOWHERE
from aria_dvc.learning.trainer import FitSettings, _checkpointing
from aria_dvc.models.lora import add_lora

TESTS = Path(__file__).parent
CONFIGS = TESTS.parent / "configs" / "accelerate"
GAMES = [made_up_game(episodes=8, turns=3)]
PARAMS = policy_params(epochs=2, batch_size=8, learning_rate=3e-3)
PACE = pace(tokens_per_batch=500)

SCRIPT = """
import sys
from pathlib import Path
from test_learning_distributed import GAMES, PACE, PARAMS
from aria_dvc.learning.policy import train_policy
from aria_dvc.learning.trainer import world
from aria_dvc.models.source import ModelSource

folder = Path(sys.argv[1])
base = ModelSource(folder / "base")
train_policy(PARAMS, PACE, GAMES, base, folder / "two", seed=0, cache=folder / "cache2")
(folder / f"rank{world()[1]}-of-{world()[0]}").touch()
"""


def launch(script: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "accelerate.commands.launch"]
    return [*command, "--num_machines", "1", "--mixed_precision", "no", *options, str(script)]


def test_two_processes_take_the_steps_of_one(tmp_path):
    base = save_tiny_base(tmp_path / "base")
    train_policy(PARAMS, PACE, GAMES, base, tmp_path / "one", seed=0, cache=tmp_path / "cache1")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{TESTS.parent / 'src'}{os.pathsep}{TESTS}",
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",  # with --cpu the launcher starts one process without MPI
    }
    command = launch(script, "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
    result = subprocess.run(
        [*command, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert (tmp_path / "rank1-of-2").exists()
    one, two = (pd.read_csv(tmp_path / run / "history.csv") for run in ("one", "two"))
    np.testing.assert_allclose(one["loss"], two["loss"], rtol=1e-3)
    weights = [load_file(tmp_path / r / "adapter_model.safetensors") for r in ("one", "two")]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=1e-3, atol=1e-5)


def test_selected_logits_and_gradients_survive_fsdp_sharding(tmp_path):
    """The hook on the head works where the model's weights are shards (one CPU process)."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    collate = policy_collate(0)
    examples = frames_examples(GAMES, Renderer(tiny_tokenizer()), 512).items
    inputs = collate([(e, np.ones(len(e.keys), np.float32)) for e in examples], 1)
    plain, sharded = (add_lora(tiny_model(), LORA, "policy") for _ in range(2))
    store = f"file://{tmp_path}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        for layer in sharded.base_model.model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(sharded, mesh=mesh)
        torch.manual_seed(0)
        losses = []
        for model in (plain, sharded):
            loss = weighted_nll(selected_logits(model, inputs), inputs)
            loss.backward()
            losses.append(loss.detach())
        torch.testing.assert_close(losses[1], losses[0])
        gradients = {n: p.grad for n, p in sharded.named_parameters() if p.grad is not None}
        for name, parameter in plain.named_parameters():
            if parameter.grad is not None and "lora_B" in name:
                torch.testing.assert_close(gradients[name].full_tensor(), parameter.grad)
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("name", ["ddp", "fsdp8", "zero3_8"])
def test_launch_configurations_are_read_by_accelerate(name, monkeypatch):
    from accelerate.commands.config.config_args import ClusterConfig

    config = ClusterConfig.from_yaml_file(str(CONFIGS / f"{name}.yaml"))
    assert config.num_processes == 8
    assert config.mixed_precision == "bf16"
    kinds = {"ddp": "MULTI_GPU", "fsdp8": "FSDP", "zero3_8": "DEEPSPEED"}
    assert config.distributed_type.value == kinds[name]


def test_configurations_name_no_unknown_option():
    from accelerate.commands.launch import launch_command_parser

    options = {
        option.lstrip("-")
        for action in launch_command_parser()._actions
        for option in action.option_strings
    }
    from ruamel.yaml import YAML

    checked = 0
    for file in sorted(CONFIGS.glob("*.yaml")):
        document = YAML(typ="safe").load(file.read_text())
        for block in ("fsdp_config", "deepspeed_config"):
            for key in document.get(block) or {}:
                assert key in options, f"{file.name}: {key}"
                checked += 1
    assert checked > 10


def test_fsdp_plugin_takes_the_configuration(monkeypatch):
    """What `accelerate launch` exports for FSDP becomes the plugin we meant."""
    from accelerate import FullyShardedDataParallelPlugin
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import prepare_multi_gpu_env

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    arguments = ["--config_file", str(CONFIGS / "fsdp8.yaml"), "stages/policy.py"]
    parsed, _, _ = _validate_launch_command(launch_command_parser().parse_args(arguments))
    exported = prepare_multi_gpu_env(parsed)
    for key, value in exported.items():
        if key.startswith(("FSDP_", "ACCELERATE_")):
            monkeypatch.setenv(key, value)
    monkeypatch.setenv("FSDP_ACTIVATION_CHECKPOINTING", "false")  # to be put back
    for wanted in (False, True):
        assert not _checkpointing(pace(gradient_checkpointing=wanted))  # FSDP refuses transformers'
        plugin = FullyShardedDataParallelPlugin()
        assert plugin.activation_checkpointing is wanted
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is True
    assert "FULL" in str(plugin.state_dict_type)


def test_several_visible_gpus_without_a_launcher_train_on_one(tmp_path, monkeypatch):
    def on_two_gpus(**settings):
        arguments = original(**settings)
        arguments._n_gpu = 2
        return arguments

    original = trainer_module.TrainingArguments
    monkeypatch.setattr(trainer_module, "TrainingArguments", on_two_gpus)
    settings = FitSettings(1e-3, 0, pace())
    example = frames_examples(GAMES, Renderer(tiny_tokenizer()), 512).items[0]
    plan = make_plan([(example, np.ones(1))], [[0]], 1024, cut_padded)
    assert trainer_module._arguments(tmp_path, plan, settings, 0, NOWHERE).n_gpu == 1
