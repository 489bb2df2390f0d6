"""`aria card` and `aria merge` on a policy that real DVC keeps, loaded from another folder."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from dvc.repo import Repo
from finished_policy import OFFLINE, POLICY, fill, git
from hub import local_hub
from huggingface_hub import ModelCard
from learning_tiny import TEMPLATE

from aria_dvc.__main__ import main
from aria_dvc.handover.card import TAGS, make_card
from aria_dvc.handover.finished import finished
from aria_dvc.models.loading import load_model, load_tokenizer
from aria_dvc.models.lora import load_adapter
from aria_dvc.models.source import ModelSource


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("finished"), Path.cwd()
    os.chdir(folder)
    try:
        fill(folder)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def project(template, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    shutil.copytree(template, folder, copy_function=shutil.copy2)
    monkeypatch.chdir(folder)
    return folder


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(torch.arange(20)[None]).logits


def trained() -> torch.Tensor:
    return logits(load_adapter(load_model(ModelSource("data/base_model")), POLICY))


def check_tokenizer_and_modes(folder: Path) -> None:
    assert load_tokenizer(ModelSource(folder)).chat_template == TEMPLATE
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
    assert modes == {0o644}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_carded_adapter_loads_from_anywhere(project, tmp_path, monkeypatch, capsys):
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoModelForCausalLM

    out = tmp_path / "adapter"
    assert main(["card", POLICY, "--out", str(out)]) == 0
    assert "name it by --base, to share" in capsys.readouterr().out
    expected, base = trained(), logits(load_model(ModelSource("data/base_model")))
    assert (expected - base).abs().max() > 0.1
    monkeypatch.chdir(tmp_path)
    for loader in (AutoPeftModelForCausalLM, AutoModelForCausalLM):
        torch.testing.assert_close(logits(loader.from_pretrained(out)), expected)
    check_tokenizer_and_modes(out)


def test_a_base_by_its_id(project, tmp_path):
    out = tmp_path / "adapter"
    for _ in range(2):  # what this command has written it may write anew
        assert main(["card", POLICY, "--out", str(out), "--base", "me/base"]) == 0
    config = json.loads((out / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "me/base"
    assert ModelCard.load(out / "README.md").data.base_model == "me/base"


@pytest.mark.parametrize("base", ["data/base_modle", "../nowhere", "/no/where", "a/b/c"])
def test_a_base_that_is_nowhere_is_no_id_of_a_hub(project, tmp_path, capsys, base):
    assert main(["card", POLICY, "--out", str(tmp_path / "adapter"), "--base", base]) == 1
    assert f"--base: there is no folder {base}" in capsys.readouterr().err


def test_a_base_by_its_folder_is_found_from_anywhere(project, tmp_path, capsys):
    out = tmp_path / "adapter"
    assert main(["card", POLICY, "--out", str(out), "--base", "data/base_model"]) == 0
    config = json.loads((out / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(project / "data/base_model")
    assert ModelCard.load(out / "README.md").data.base_model is None  # no id of a hub
    assert "that is a folder of this machine" in capsys.readouterr().out


def test_the_card_tells_what_the_policy_is(project, tmp_path):
    out = tmp_path / "adapter"
    assert main(["card", POLICY, "--out", str(out)]) == 0
    card = ModelCard.load(out / "README.md")
    assert card.data.base_model is None  # a folder is no model of a hub
    assert card.data.library_name == "peft"
    results = {result.dataset_name: result.metric_value for result in card.data.eval_results}
    assert results == {"bargaining": 0.75, "negotiation": 0.25}
    text = card.text
    assert "0.75 (0.60 to 0.86) | 0.25 (0.14 to 0.40) | +0.50 (" in text
    assert "too few games to decide" in text
    assert "guess_my_city" not in text  # of another category
    assert "- chess: few games" in text
    assert "Other than in v1" in text
    assert "- `policy.learning_rate`: 0.002 (0.001)" in text
    assert text.count("\n- `") == 1
    for path in ("data/raw/adversarial/bargaining.jsonl", POLICY):
        assert f"| `{path}` | `" in text
    assert "a model of its own: `tiny` after supervised training on scripted" in text
    assert "secret" not in text
    assert str(project) not in str(card)


def test_a_policy_that_no_commit_has_is_told_to_be_none_of_it(project, tmp_path):
    def card(name):
        out = tmp_path / name
        assert main(["card", POLICY, "--out", str(out)]) == 0
        return ModelCard.load(out / "README.md").text

    assert "\nGit commit `" in card("committed")
    git("rm", "-q", "--cached", "dvc.lock")
    git("commit", "-qm", "without")
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    assert f"\nChanges that no commit has, after Git commit `{head}`" in card("alone")


def test_a_variant_that_changes_nothing_is_of_the_block_policy(project):
    known = replace(finished(Path(POLICY)), settings={"variants.aria": {}})
    text = make_card(known, "me/base", is_merged=False, is_adapter=True).text
    assert "variant `aria` (the block policy) of the category adversarial" in text


def test_a_policy_that_was_trained_further_has_no_results(project, tmp_path):
    out = tmp_path / "adapter"
    assert main(["card", OFFLINE, "--out", str(out)]) == 0
    card = ModelCard.load(out / "README.md")
    assert "Not evaluated." in card.text
    assert card.data.eval_results is None


def test_figures_of_an_earlier_policy_are_refused(project, tmp_path, capsys):
    Path("made/adapter/metrics.json").write_text('{"trained": "again"}')
    out = str(tmp_path / "adapter")
    for stage in ("online@aria-adversarial", "evaluate@aria-adversarial"):
        with Repo(".") as repo:
            repo.reproduce(stage)
        assert main(["card", POLICY, "--out", out]) == 1
        said = f"metrics/details/evaluation.json is older than {POLICY}: run `dvc repro report`"
        assert said in capsys.readouterr().err
    with Repo(".") as repo:
        repo.reproduce("report")
    assert main(["card", POLICY, "--out", out]) == 0


def test_without_a_version_all_settings_are_told(project, tmp_path):
    git("tag", "-d", "v1")
    out = tmp_path / "adapter"
    assert main(["card", POLICY, "--out", str(out)]) == 0
    text = (out / "README.md").read_text()
    assert "No version is tagged" in text
    assert "learning_rate: 0.002" in text


@pytest.mark.parametrize("through_card", [False, True])
def test_a_merged_model_plays_as_the_adapter_does(project, tmp_path, monkeypatch, through_card):
    from transformers import AutoModelForCausalLM

    source, out, expected = POLICY, tmp_path / "model", trained()
    if through_card:
        source = str(tmp_path / "adapter")
        assert main(["card", POLICY, "--out", source]) == 0
    assert main(["merge", source, "--out", str(out)]) == 0
    monkeypatch.chdir(tmp_path)
    found = logits(AutoModelForCausalLM.from_pretrained(out))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    check_tokenizer_and_modes(out)
    card = ModelCard.load(out / "README.md")
    assert card.data.library_name == "transformers"
    assert "AutoPeftModel" not in card.text
    assert "merged into its base" in card.text
    assert "adapter_config.json" not in card.text


def test_an_adapter_is_not_merged_into_a_base_that_was_trained_again(project, capsys):
    train_base_again()
    assert main(["merge", OFFLINE, "--out", "new"]) == 1
    assert "data/base_model is another one than" in capsys.readouterr().err
    assert not Path("new").exists()


def test_settings_of_a_card_that_is_made_are_compared_with_nothing_else(project, tmp_path, capsys):
    assert main(["card", POLICY, "--out", str(tmp_path / "adapter")]) == 0
    options = ["--out", str(tmp_path / "model"), "--against", "HEAD"]
    assert main(["merge", str(tmp_path / "adapter"), *options]) == 1
    assert "--against: " in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
    assert main(["merge", POLICY, *options]) == 0


def test_half_precision_is_asked_for(project, tmp_path):
    out = tmp_path / "model"
    assert main(["merge", POLICY, "--out", str(out), "--dtype", "bfloat16"]) == 0
    assert json.loads((out / "config.json").read_text())["dtype"] == "bfloat16"


def touch_weights() -> None:
    file = Path(POLICY, "metrics.json")
    file.chmod(0o644)
    file.write_text('{"better": true}')


def card_the_base() -> None:
    """As `aria merge` would have: what it wrote may be written anew, unless it is read."""
    Path("data/base_model/README.md").write_text(TAGS[0])


def write_notes() -> None:
    """Somebody's own words beside somebody's own model."""
    Path("notes").mkdir()
    Path("notes/README.md").write_text("my notes on aria-dvc\n")
    Path("notes/config.json").write_text("{}")


def train_base_again() -> None:
    file = Path("data/base_model/tokenizer_config.json")
    file.chmod(0o644)
    file.write_text(file.read_text() + "\n")


def remove_weights() -> None:
    shutil.rmtree(POLICY)


@pytest.mark.parametrize(
    ("harm", "policy", "out", "said"),
    [
        (None, "data/base_model", "new", f"no policy in dvc.lock: name one of {OFFLINE}, {POLICY}"),
        (None, "..", "new", "lies outside: run in"),
        (None, POLICY, POLICY, "is a folder that is read"),
        (card_the_base, POLICY, "data/base_model", "is a folder that is read"),
        (None, POLICY, f"{POLICY}/new", f"lies in {POLICY}, which is read"),
        (None, POLICY, "data/base_model/new", "lies in"),
        (None, POLICY, ".", "exists and is not what this command writes"),
        (None, POLICY, "dvc.lock/new", "dvc.lock is a file: name one elsewhere"),
        (None, POLICY, "made", "is not what this command writes"),
        (write_notes, POLICY, "notes", "is not what this command writes"),
        (touch_weights, POLICY, "new", f"run `dvc checkout {POLICY}`"),
        (remove_weights, POLICY, "new", "holds no weights: run `dvc pull`"),
        (train_base_again, OFFLINE, "new", "another one than data/policy/adversarial/aria/offline"),
        (
            lambda: Path("dvc.lock").unlink(),
            POLICY,
            "new",
            "no policy in dvc.lock: train one first (dvc repro",
        ),
    ],
)
def test_what_cannot_be_handed_over_is_refused(project, capsys, harm, policy, out, said):
    if harm:
        harm()
    assert main(["card", policy, "--out", out]) == 1
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1
    assert not Path("new").exists()


def test_an_upload_brings_the_whole_folder_to_a_hub(project, tmp_path):
    """The real `hf upload` with a hub on this machine, as docs/handover.md shows it."""
    out = tmp_path / "adapter"
    assert main(["card", POLICY, "--out", str(out), "--base", "me/base"]) == 0
    with local_hub() as hub:
        own = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_none", "HF_HOME": str(tmp_path / "hf")}
        own |= {"HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HUB_OFFLINE": "0"}
        command = [str(Path(sys.executable).with_name("hf")), "upload", "me/adapter", "adapter"]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **own}, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    assert f"{hub.url}/me/adapter" in done.stdout
    there = {file.relative_to(out).as_posix(): file for file in out.rglob("*") if file.is_file()}
    assert {"README.md", "adapter_model.safetensors", "tokenizer.json"} <= set(there)
    assert hub.files == {"me/adapter": {name: file.read_bytes() for name, file in there.items()}}
    (card,) = hub.cards
    assert (card.data.base_model, card.data.library_name) == ("me/base", "peft")
