"""dvc.yaml, stages/, params.yaml, the README and the code agree."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from aria_dvc.errors import AriaError
from aria_dvc.files import write_json
from aria_dvc.params import CATEGORIES, load_params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.imports import imported_files

ROOT = Path(__file__).parent.parent
STAGES = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text())["stages"]


@pytest.mark.parametrize("name", STAGES)
def test_declared_code_is_what_the_script_imports(name):
    declared = [d for d in STAGES[name]["deps"] if d.startswith("src/")]
    assert declared == imported_files(ROOT / "stages" / f"{name}.py", ROOT), "run `make deps`"
    assert f"stages/{name}.py" in STAGES[name]["deps"]


def test_a_new_import_is_found(tmp_path):
    (tmp_path / "src/aria_dvc").mkdir(parents=True)
    (tmp_path / "src/aria_dvc/a.py").write_text("def f():\n    from aria_dvc.b import x\n")
    (tmp_path / "src/aria_dvc/b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import aria_dvc.c\n"
    )
    (tmp_path / "src/aria_dvc/c.py").write_text("")
    script = tmp_path / "stage.py"
    script.write_text("import aria_dvc.a\n")
    assert imported_files(script, tmp_path) == ["src/aria_dvc/a.py", "src/aria_dvc/b.py"]


def test_stage_script_and_block_share_one_name():
    scripts = {path.stem for path in (ROOT / "stages").glob("*.py")}
    blocks = set(load_params(ROOT / "params.yaml").model_dump()) - {
        "k",
        "seed",
        "games",
        "endpoints",
    }
    assert set(STAGES) == scripts == blocks
    for name, stage in STAGES.items():
        assert stage["cmd"].startswith(f"PYTHONPATH=src python stages/{name}.py")


def test_outputs_are_where_the_code_writes():
    per_game = {
        "collect": [paths.raw],
        "prepare": [paths.turns, paths.episodes],
        "embed": [paths.embeddings],
        "cluster": [paths.labels, paths.tree],
        "select_k": [paths.selected_k, paths.k_curve],
        "aggregate": [paths.rewards, paths.credit_quality],
        "evaluate": [paths.evaluation],
    }
    for name, functions in per_game.items():
        assert STAGES[name]["outs"] == [str(f("${item.game}")) for f in functions]
    for name, function in {"reward_model": paths.reward_model, "policy": paths.policy}.items():
        assert STAGES[name]["outs"] == [str(function("${item.category}"))]
        assert STAGES[name]["matrix"]["category"] == list(CATEGORIES)
    assert STAGES["base_model"]["outs"] == [str(paths.BASE_MODEL)]


def test_an_endpoint_is_a_parameter_of_all_stages_that_can_name_one():
    for name in ("collect", "embed", "policy", "evaluate"):
        assert "endpoints" in STAGES[name]["params"], name


def test_a_file_never_replaces_a_folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").touch()
    with pytest.raises(AriaError, match="is a folder: name a file"):
        write_json(tmp_path / "mine", {})
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "precious"]


def test_only_report_writes_into_git():
    for name, stage in STAGES.items():
        uncached = [out for out in stage["outs"] if isinstance(out, dict)]
        assert bool(uncached) == (name == "report")


def test_stage_scripts_are_short():
    for script in (ROOT / "stages").glob("*.py"):
        assert len(script.read_text().splitlines()) < 60, script.name


def test_readme_names_every_module_and_only_those():
    readme = (ROOT / "README.md").read_text()
    named = set(re.findall(r"`(src/aria_dvc/[\w/]+\.py|stages/\w+\.py)`", readme))
    real = {
        str(path.relative_to(ROOT))
        for folder in ("src", "stages")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert named == real


def test_readme_commands_exist():
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([a-z-]+)`", readme):
        assert f"\n{target}:" in makefile, target
    for module in re.findall(r"python -m (aria_dvc[\w.]*)", readme):
        path = ROOT / "src" / Path(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for knob in re.findall(r"-S '?([\w.]+)=", readme):
        node = load_params(ROOT / "params.yaml").model_dump()
        for part in knob.split("."):
            assert part in node, knob
            node = node[part]
