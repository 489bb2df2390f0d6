"""dvc.yaml, stages/, params.yaml, the README and the code agree."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from aria_dvc.errors import AriaError
from aria_dvc.files import write_json
from aria_dvc.params import Params, load_params
from aria_dvc.params_errors import described_fields
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.knobs import commented
from aria_dvc.settings.machine import Endpoint

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "dvc.yaml").read_text()
STAGES = {
    name: stage.get("do", stage) for name, stage in YAML(typ="safe").load(TEXT)["stages"].items()
}
PARAMS = (ROOT / "params.yaml").read_text()


def test_the_pipeline_is_short_enough_to_be_read():
    assert len(TEXT.splitlines()) <= 240


def test_the_fingerprint_is_every_stages_only_code_dependency():
    for name, stage in STAGES.items():
        code = [dep for dep in stage["deps"] if dep.startswith(("src", "stages", "data/code"))]
        own = ["src/aria_dvc", "stages"] if name == "code" else [f"data/code/{name}.json"]
        assert code == own, name


def test_stage_script_and_block_share_one_name():
    scripts = {path.stem for path in (ROOT / "stages").glob("*.py")}
    shared = {"k", "seed", "categories", "variants", "logs", "rewards", "endpoints"}
    shared |= {"trackers", "pace"}
    blocks = set(load_params(ROOT / "params.yaml").model_dump()) - shared
    assert set(STAGES) == scripts
    assert set(STAGES) - blocks == {"code"}
    assert blocks <= set(STAGES)
    for name, stage in STAGES.items():
        assert stage["cmd"].startswith("${run}/" + f"{name}.py")
        assert name == "code" or name in stage["params"], name


def test_outputs_are_where_the_code_writes():
    files = paths.LogFiles("${item.category}", "${key}")
    per_log = {
        "collect": [files.raw, files.log_vectors],
        "truth": [files.truth],
        "prepare": [files.turns, files.episodes],
        "embed": [files.embeddings],
        "cluster": [files.labels, files.tree],
        "select_k": [files.selected_k, files.k_curve],
        "aggregate": [files.rewards, files.credit_quality],
    }
    for name, outs in per_log.items():
        assert STAGES[name]["outs"] == [str(out) for out in outs]
    category, variant = "${item.category}", "${item.variant}"
    assert STAGES["reward_model"]["outs"] == [str(paths.reward_model(category))]
    assert STAGES["progress"]["outs"] == [str(paths.progress(category))]
    assert files.contributions.parent == paths.progress(category)
    assert STAGES["policy"]["outs"] == [str(paths.policy(variant, category))]
    assert STAGES["online"]["outs"] == [str(paths.online(variant, category))]
    assert STAGES["evaluate"]["outs"] == [str(paths.evaluation(variant, category))]
    assert STAGES["base_model"]["outs"] == [str(paths.BASE_MODEL)]
    assert STAGES["code"]["outs"] == [str(paths.CODE)]


def test_git_ignores_the_folder_of_every_output_and_no_other_data():
    outs = [str(out) for stage in STAGES.values() for out in stage["outs"] if isinstance(out, str)]
    folders = {f"/{'/'.join(out.split('/')[:2])}/" for out in outs}
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {line for line in ignored if line.startswith("/data")} == folders


def test_a_report_without_categories_finds_every_folder_that_it_reads():
    """Nothing writes them then, and DVC reads no folder that is not there."""
    by_category = [stage["outs"] for stage in STAGES.values() if "matrix" in stage]
    folders = {"/".join(str(out).split("/")[:2]) for outs in by_category for out in outs}
    read = folders & set(STAGES["report"]["deps"])
    assert {"data/eval", "data/progress", "data/reward_model"} <= read
    for folder in read:
        assert (ROOT / folder / ".gitkeep").is_file(), folder


def test_artifacts_are_outputs_of_the_shipped_parameters():
    params = load_params(ROOT / "params.yaml")
    trained = {
        str(
            (paths.online if variant in params.online.variants else paths.policy)(variant, category)
        )
        for variant in params.variants
        for category in params.categories
    }
    artifacts = YAML(typ="safe").load(TEXT)["artifacts"]
    assert artifacts
    assert {artifact["path"] for artifact in artifacts.values()} <= trained


def test_an_endpoint_is_a_parameter_of_all_stages_that_can_name_one():
    for name in ("collect", "truth", "embed", "online", "evaluate"):
        assert "endpoints" in STAGES[name]["params"], name


@pytest.mark.parametrize("block", ["pace", "trackers"])
def test_what_sets_the_pace_or_looks_on_reruns_nothing(block):
    assert not any(block in stage.get("params", []) for stage in STAGES.values())


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


def test_every_comment_of_params_is_its_fields_description():
    assert commented(PARAMS) == PARAMS, "run `make knobs`"
    told = {line.partition("  # ")[2] for line in PARAMS.splitlines()}
    blocks = [(), *((name,) for name in described_fields(Params, ()) or {})]
    blocks += [("logs", "bargaining"), ("policy", "lora"), ("evaluate", "games", "bargaining")]
    blocks += [("base_model", "warm_start_settings")]
    for location in blocks:
        for name, field in (described_fields(Params, location) or {}).items():
            if described_fields(Params, (*location, name)) is None and location[:1] != (
                "variants",
            ):
                assert field.description in told or name == "games", f"{location} {name}"
    for name, field in Endpoint.model_fields.items():
        assert f"#    {name}: " in PARAMS
        assert str(field.description).partition(";")[0] in PARAMS, name


def test_lists_are_block_style():
    """`-S` rewrites flow lists, so there are none."""
    for number, line in enumerate(PARAMS.splitlines(), start=1):
        assert not re.search(r"\[.+\]", line.partition("#")[0]), f"line {number}"


def test_readme_names_every_package_and_only_those():
    readme = (ROOT / "README.md").read_text()
    named = set(re.findall(r"`(src/aria_dvc/[\w/]*|stages/)`", readme))
    real = {
        f"src/aria_dvc/{folder.relative_to(ROOT / 'src/aria_dvc')}/".replace("/./", "/")
        for folder in (ROOT / "src/aria_dvc").rglob("*")
        if folder.is_dir() and (folder / "__init__.py").exists()
    }
    assert named == real | {"stages/", "src/aria_dvc/"}


PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))


def test_every_page_is_reached_and_no_link_is_dead():
    reached = set()
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)
            reached.add((page.parent / target).resolve())
    assert {page.resolve() for page in PAGES} - reached <= {ROOT.resolve() / "README.md"}


def test_commands_of_readme_and_docs_exist():
    readme = "".join(page.read_text() for page in PAGES)
    makefile = (ROOT / "Makefile").read_text()
    assert "PYTHONPATH" not in readme
    for target in re.findall(r"`make ([a-z-]+)`", readme):
        assert f"\n{target}:" in makefile, target
    for module in re.findall(r"python -m (aria_dvc[\w.]*)", readme):
        path = ROOT / "src" / Path(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for script in re.findall(r"python ((?:scripts|benchmarks|stages)/\w+\.py)", readme):
        assert (ROOT / script).is_file(), script
    for knob in re.findall(r"-S '?([\w.]+)=", readme):
        node = load_params(ROOT / "params.yaml").model_dump()
        for part in knob.split("."):
            assert part in node, knob
            node = node[part]
