"""The real commands on the real DAG, with a tiny random model and two small logs.

The tests share one workspace and run in order: each starts from what the one before left.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import vl_convert
import yaml
from dag import Workspace, guessing_log, stages_in
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from learning_tiny import save_tiny_base
from voluptuous import MultipleInvalid

LOGS = ("twenty_questions", "guess_my_city")
PER_LOG = ("collect", "prepare", "embed", "cluster", "select_k", "aggregate")
CATEGORIES = ("single_agent",)
VARIANTS = ("vanilla", "aria")
UP_TO_AGGREGATE = ("raw", "turns", "episodes", "embeddings", "labels", "selected_k", "k_curve")
UP_TO_AGGREGATE += ("rewards", "base_model", "credit_quality", "code")
REMEDY_FOR_A_TORN_LOCK = "git restore dvc.lock"
REMEDY_FOR_A_TORN_LIST = "rm .dvc/tmp/rwlock"
REMEDY_FOR_A_LOCKED_INDEX = "rm .git/index.lock"


def instances(*stages: str, logs: tuple[str, ...] = LOGS) -> set[str]:
    return {f"{stage}@{log}" for stage in stages for log in logs}


def of_variants(*stages: str, variants: tuple[str, ...] = VARIANTS) -> set[str]:
    return {f"{s}@{v}-{c}" for s in stages for v in variants for c in CATEGORIES}


EVERYTHING = (
    instances(*PER_LOG, "truth")
    | of_variants("policy", "evaluate")
    | {f"{stage}@{category}" for stage in ("reward_model", "progress") for category in CATEGORIES}
    | {"code", "base_model", "report"}
)


def prepare(folder: Path, inputs: Path) -> Workspace:
    """A project of its own: the model and the logs are added to DVC as the README says."""
    workspace = Workspace.copy_of_project(folder)
    for name in ("model", *LOGS):
        source = inputs / (name if name == "model" else f"{name}.jsonl")
        target = folder / ("models/language/tiny" if name == "model" else f"data/logs/{name}.jsonl")
        workspace.run("cp", "-r", str(source), str(target))
        workspace.run("dvc", "add", "-q", str(target.relative_to(folder)))
    workspace.set_params(
        {
            "logs": {
                name: {"source": f"data/logs/{name}.jsonl", "category": "single_agent"}
                for name in LOGS
            },
            "categories": list(CATEGORIES),
            "base_model.source": "models/language/tiny",
            "base_model.warm_start": False,
            "cluster.k_max": 25,
            "evaluate.games.twenty_questions.episodes": 2,
            "evaluate.games.guess_my_city.episodes": 2,
            "evaluate.max_new_tokens": 4,
            "evaluate.max_reasks": 0,
            "online.variants": [],
            "policy.epochs": 1,
            "policy.lora.rank": 2,
            "report.umap": False,
        }
    )
    workspace.commit("tiny sizes")
    return workspace


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    save_tiny_base(folder / "model")
    for seed, log in enumerate(LOGS):
        guessing_log(folder / f"{log}.jsonl", 12, seed)
    return folder


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, inputs):
    workspace = prepare(tmp_path_factory.mktemp("dag") / "a", inputs)
    ran, _ = workspace.repro()
    assert ran == EVERYTHING
    workspace.commit("first run")
    return workspace


def test_metrics_are_few_and_details_say_what_was_measured(workspace):
    credit = workspace.read_json("metrics/details/credit.json")
    assert set(credit) == set(LOGS)
    for numbers in credit.values():
        assert numbers["episodes"] == 12
        assert numbers["reward_variance_after"] <= numbers["reward_variance_before"] + 1e-12
        assert 2 <= numbers["selected_k"] <= 25
    learning = workspace.read_json("metrics/details/learning.json")
    assert set(learning) == {"single_agent"}
    assert np.isfinite(learning["single_agent"]["policy"]["aria"]["final_loss"])
    evaluation = workspace.read_json("metrics/details/evaluation.json")
    for log in LOGS:
        for variant in VARIANTS:
            numbers = evaluation[log]["by_role"]["agent"][variant]
            assert numbers["episodes"] == 2
            assert numbers["low"] <= numbers["rate"]
    shown = json.loads(workspace.run("dvc", "metrics", "show", "--json"))
    numbers = list(leaves(shown))
    assert 8 <= len(numbers) <= 20, "two logs and one variant"
    assert all(value is None or value == round(value, 4) for value in numbers)


def leaves(value):
    if isinstance(value, dict):
        for child in value.values():
            yield from leaves(child)
    else:
        yield value


def test_dvc_plots_are_drawn_and_the_page_needs_no_network(workspace):
    plots = json.loads(workspace.run("dvc", "plots", "show", "--json"))
    assert not plots.get("errors"), plots["errors"]
    shown = {name: spec for name, spec in plots["data"].items() if not name.endswith(".png")}
    drawn = {name: spec for name, spec in shown.items() if spec}  # nothing was trained online
    expected = {f"metrics/plots/{kind}/{log}.csv" for kind in ("k_curve", "credit") for log in LOGS}
    expected |= {"metrics/plots/training/single_agent-aria.csv", "metrics/plots/evaluation.csv"}
    assert {name.split("::")[-1] for name in drawn} == expected
    for name, (plot,) in drawn.items():
        spec = plot["content"]
        axes = axes_of(spec)
        assert "quantitative" in axes["x"], f"{name}: {axes}"
        if not name.endswith("evaluation.csv"):
            assert "quantitative" in axes["y"], f"{name}: {axes}"
        svg = vl_convert.vegalite_to_svg(spec)
        assert 'role="graphics-symbol"' in svg or "mark-" in svg
        assert "NaN" not in svg
    workspace.run("dvc", "plots", "show")
    page = (workspace.folder / "dvc_plots/index.html").read_text()
    assert 'src="http' not in page
    assert page.count("vegaEmbed(") >= len(drawn)
    pictures = workspace.folder / "metrics/plots/pictures"
    assert (pictures / "evaluation.png").stat().st_size > 1000
    drawn = {path.stem for path in pictures.iterdir()}
    assert drawn == {path.stem for path in (workspace.folder / "data/report/pictures").iterdir()}


def test_the_page_holds_every_log(workspace):
    page = (workspace.folder / "data/report/report.html").read_text("utf-8")
    assert all(f'data-block="{log}"' in page for log in LOGS)
    assert page.count('<tr><th scope="row">') > 0


def axes_of(spec) -> dict[str, set[str]]:
    """Types of the x and y encodings in a Vega-Lite specification, layers included."""
    found: dict[str, set[str]] = {"x": set(), "y": set()}
    for part in (spec, *spec.get("layer", []), *spec.get("hconcat", [])):
        for axis in found:
            encoding = part.get("encoding", {}).get(axis, {})
            if "type" in encoding:
                found[axis].add(encoding["type"])
    return found


def test_a_second_repro_runs_nothing(workspace):
    output = workspace.run("dvc", "repro")
    assert stages_in(output) == (set(), set())
    assert "up to date" in output


def test_an_edited_docstring_reruns_nothing_but_the_fingerprints(workspace):
    module = workspace.folder / "src/aria_dvc/learning/examples.py"
    kept = module.read_text()
    module.write_text(kept.replace('"""Dialogues as', '"""All dialogues as', 1) + "\n# a comment\n")
    ran, _ = workspace.repro()
    assert ran == {"code"}
    module.write_text(kept)
    workspace.repro()


def test_another_k_skips_embedding_and_clustering_and_auto_comes_back_from_the_cache(workspace):
    before = workspace.hashes()
    ran, _ = stages_in(workspace.run("dvc", "exp", "run", "-S", "k=20"))
    assert ran >= instances("select_k", "aggregate") | {"report"}
    assert not ran & (instances("collect", "prepare", "embed", "cluster") | {"code", "base_model"})
    assert "policy@vanilla-single_agent" not in ran or "evaluate@vanilla-single_agent" not in ran
    selected = "data/selected_k/single_agent/twenty_questions.json"
    assert workspace.read_json(selected)["selected_k"] == 20
    table = workspace.run("dvc", "exp", "show", "--csv", "--only-changed", "--no-pager")
    assert len(table.splitlines()[0].split(",")) <= 60
    ran, cached = stages_in(workspace.run("dvc", "exp", "run", "-S", "k=auto"))
    assert ran == {"report"}, "metrics in Git have no run cache; everything else must come from it"
    assert cached >= instances("select_k", "aggregate")
    assert workspace.hashes() == before


def test_one_more_variant_runs_its_own_stages_alone(workspace):
    workspace.set_params({"variants.discounted": {"credit": "discounted"}})
    ran, _ = workspace.repro()
    assert ran == of_variants("policy", "evaluate", variants=("discounted",)) | {"report"}
    workspace.set_params(
        {"variants.regression": {"credit": "regression"}, "aggregate.further": ["regression"]}
    )
    ran, _ = workspace.repro()
    assert ran >= of_variants("policy", "evaluate", variants=("regression",)) | {"report"}
    assert not ran & instances("select_k", "cluster")
    evaluation = workspace.read_json("metrics/evaluation.json")
    assert {"vanilla", "aria", "discounted", "regression"} <= set(evaluation["guess_my_city"])
    workspace.run("git", "checkout", "-q", ".")
    workspace.run("dvc", "checkout", "-q")


def test_a_variant_trains_on_what_the_progress_estimator_says(workspace):
    workspace.set_params(
        {
            "variants.spa": {"method": "ppo", "credit": "estimator", "ppo": {"grounding": 0.5}},
            "progress.train": True,
            "progress.epochs": 1,
        }
    )
    ran, _ = workspace.repro()
    assert ran >= of_variants("policy", "evaluate", variants=("spa",)) | {"progress@single_agent"}
    assert not ran & (instances(*PER_LOG) | of_variants("evaluate", variants=("aria",)))
    told = workspace.read_json("metrics/learning.json")["single_agent"]
    for log in LOGS:
        assert set(told[f"progress_{log}"]) == {"sum_r2", "last_share", "auc_at_half", "auc_at_end"}
    quality = workspace.read_json("data/progress/single_agent/metrics.json")["logs"]
    assert all(quality[log]["dialogues"] == 12 for log in LOGS)
    workspace.run("git", "checkout", "-q", ".")
    workspace.run("dvc", "checkout", "-q")


def test_a_policy_learned_from_own_guessing_games_plays_on_online(workspace):
    workspace.set_params(
        {
            "collect.max_new_tokens": 4,
            "online.variants": ["aria"],
            "online.iterations": 1,
            "online.games": 4,
            "online.repeats": 2,
            "online.updates": 1,
            "online.by_category": {},
        }
    )
    ran, _ = workspace.repro("evaluate@aria-single_agent")
    assert ran >= {"online@aria-single_agent", "evaluate@aria-single_agent"}
    assert not ran & instances("prepare", "embed")
    folder = "data/policy/single_agent/aria/online"
    told = workspace.read_json(f"{folder}/metrics.json")
    # a random model wins no game, and games that all pay the same teach nothing
    assert (told["games"], told["updates"]) == (4, 0)
    course = (workspace.folder / folder / "online.csv").read_text()
    assert all(log in course for log in LOGS)
    workspace.run("rm", "-r", folder)  # an output of a stage that is there no more
    workspace.run("git", "checkout", "-q", ".")
    workspace.run("dvc", "checkout", "-q")


def test_one_changed_log_reruns_that_log_and_what_learns_from_its_category(workspace, inputs):
    log = workspace.folder / "data/logs/guess_my_city.jsonl"
    log.unlink()
    guessing_log(log, 13, seed=7)
    ran, _ = workspace.repro()
    assert ran >= instances("collect", "prepare", "embed", logs=("guess_my_city",))
    assert not ran & instances(*PER_LOG, "truth", logs=("twenty_questions",))
    assert "report" in ran
    log.unlink()
    guessing_log(log, 12, seed=1)
    workspace.repro()


def test_without_one_of_its_logs_a_category_learns_and_is_judged_anew(workspace):
    source = {"source": "data/logs/twenty_questions.jsonl", "category": "single_agent"}
    workspace.set_params({"logs": {"twenty_questions": source}})
    output = workspace.run("dvc", "repro")
    ran, _ = stages_in(output)
    assert ran >= of_variants("policy", "evaluate") | {"report"}
    assert ran >= {"reward_model@single_agent", "progress@single_agent"}
    assert not ran & instances(*PER_LOG, "truth")
    assert "guess_my_city" not in workspace.read_json("metrics/evaluation.json")
    left = Path("data/turns/single_agent/guess_my_city.parquet")
    assert f"{left}: of what params.yaml no longer names" in output
    workspace.run("dvc", "checkout", "-q")
    assert not (workspace.folder / left).exists()
    again = workspace.run("dvc", "repro")
    assert "progress@single_agent" in stages_in(again)[0]
    assert "no longer names" not in again
    workspace.run("git", "checkout", "-q", ".")
    workspace.run("dvc", "checkout", "-q")


def test_changed_weights_of_a_local_model_are_noticed(workspace):
    weights = workspace.folder / "models/language/tiny/model.safetensors"
    kept = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(kept[:-4] + bytes([kept[-4] ^ 1, *kept[-3:]]))
    ran, _ = stages_in(workspace.run("dvc", "repro", "base_model"))
    assert ran == {"base_model"}
    weights.unlink()
    weights.write_bytes(kept)
    workspace.repro()


def test_an_own_log_is_credited_without_any_language_model(workspace, tmp_path):
    """A fresh clone, a new name, `dvc repro aggregate@NAME`: no base model is made."""
    clone = tmp_path / "clone"
    workspace.run("git", "clone", "-q", str(workspace.folder), str(clone))
    fresh = Workspace(clone)
    guessing_log(clone / "data/logs/support_chat.jsonl", 6, 3)
    fresh.set_params(
        {
            "logs.support_chat": {
                "source": "data/logs/support_chat.jsonl",
                "category": "support",
            }
        }
    )
    ran, _ = stages_in(fresh.run("dvc", "repro", "aggregate@support_chat"))
    assert ran == instances(*PER_LOG, logs=("support_chat",)) | {"code"}
    assert not (clone / "data/base_model").exists()
    assert (clone / "data/rewards/support/support_chat.parquet").is_file()


def test_two_runs_from_scratch_agree(workspace, inputs, tmp_path):
    """Up to `aggregate` to the byte; the learned weights within 1e-5 absolute."""
    other = prepare(tmp_path / "b", inputs)
    other.repro()
    ours, theirs = workspace.hashes(), other.hashes()
    exact = [path for path in ours if path.split("/")[1] in UP_TO_AGGREGATE]
    assert len(exact) > 15
    assert {path: ours[path] for path in exact} == {path: theirs[path] for path in exact}
    weights = Path("data/policy/single_agent/aria/offline/adapter_model.safetensors")
    assert_close(workspace.folder / weights, other.folder / weights, tolerance=1e-5)


def assert_close(left: Path, right: Path, tolerance: float) -> None:
    from safetensors.numpy import load_file

    ours, theirs = load_file(left), load_file(right)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], atol=tolerance)


def test_own_logs_and_models_travel_and_run_in_temporary_and_queued_experiments(
    workspace, tmp_path
):
    """Pushed, cloned, pulled: nothing is left to run, and nothing was added by force."""
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    workspace.run("dvc", "remote", "add", "-f", "-d", "store", str(remote))
    workspace.run("dvc", "repro")
    workspace.commit("a remote")
    workspace.run("dvc", "push")
    workspace.run("git", "clone", "-q", str(workspace.folder), str(clone))
    copy = Workspace(clone)
    copy.run("dvc", "pull")
    output = copy.run("dvc", "repro")
    assert stages_in(output) == (set(), set())
    assert "up to date" in output
    output = copy.run("dvc", "exp", "run", "--temp", "--name", "aside", "-S", "k=3")
    assert "aside" in output
    assert copy.run("git", "status", "--porcelain").strip() == ""
    copy.run("dvc", "exp", "run", "--queue", "--name", "later", "-S", "k=4")
    copy.run("dvc", "exp", "run", "--run-all")
    shown = json.loads(copy.run("dvc", "exp", "show", "--json", "--no-pager"))
    names = {exp["name"]: exp for state in shown for exp in experiments_of(state)}
    for name, k in (("aside", 3), ("later", 4)):
        measured = names[name]["data"]["metrics"]["metrics/credit.json"]["data"]
        assert measured["guess_my_city"]["selected_k"] == k


def experiments_of(state):
    return [revision for group in state.get("experiments") or [] for revision in group["revs"]]


def test_a_killed_run_leaves_nothing_half_written_and_the_next_one_finishes(workspace):
    """SIGKILL of the whole process group at a random moment, thrice, on a changed seed."""
    rng = random.Random(time.time_ns())
    workspace.set_params({"seed": 1})
    for _ in range(3):
        kill_after(started(workspace, "dvc", "repro"), rng.uniform(2, 25))
        assert_whole(workspace.folder / "data")
        mend_what_dvc_tore(workspace)
    workspace.repro()
    assert stages_in(workspace.run("dvc", "repro")) == (set(), set())
    assert not list((workspace.folder / "data").rglob("*.aside")), "left-overs of the killed run"


def mend_what_dvc_tore(workspace: Workspace) -> None:
    """What the documentation tells a user whose kill met DVC in the middle of a write."""
    if not is_whole_lock(workspace.folder / "dvc.lock"):
        workspace.run(*REMEDY_FOR_A_TORN_LOCK.split())
    if not is_whole_list(workspace.folder / ".dvc/tmp/rwlock"):
        workspace.run(*REMEDY_FOR_A_TORN_LIST.split())
    if (workspace.folder / ".git/index.lock").exists():
        workspace.run(*REMEDY_FOR_A_LOCKED_INDEX.split())


def is_whole_list(path: Path) -> bool:
    """DVC writes the list of who reads and writes what in place as well."""
    try:
        json.loads(path.read_text())
    except FileNotFoundError:
        return True
    except json.JSONDecodeError:
        return False
    return True


def is_whole_lock(path: Path) -> bool:
    """DVC writes dvc.lock in place, so a kill in that instant leaves it cut off."""
    try:
        COMPILED_LOCKFILE_SCHEMA(yaml.safe_load(path.read_text()))
    except (yaml.YAMLError, MultipleInvalid):
        return False
    return True


def test_the_documented_remedy_for_a_torn_lock_trains_and_plays_nothing_twice(workspace):
    lock = workspace.folder / "dvc.lock"
    whole = lock.read_text()
    lock.write_text(whole[: whole.index("path:") + len("path:")])
    assert not is_whole_lock(lock)
    assert "dvc.lock" in workspace.run("dvc", "repro", check=False)
    assert REMEDY_FOR_A_TORN_LOCK in (workspace.folder / "docs/pipeline.md").read_text()
    workspace.run(*REMEDY_FOR_A_TORN_LOCK.split())
    executed, _ = workspace.repro()
    assert executed == {"report"}
    assert lock.read_text() == whole


def test_the_documented_remedy_for_a_torn_list_of_readers_and_writers_works(workspace):
    (workspace.folder / ".dvc/tmp/rwlock").write_text("")
    assert not is_whole_list(workspace.folder / ".dvc/tmp/rwlock")
    assert "Unable to read RWLock-file" in workspace.run("dvc", "repro", check=False)
    assert f"`{REMEDY_FOR_A_TORN_LIST}`" in (workspace.folder / "docs/pipeline.md").read_text()
    workspace.run(*REMEDY_FOR_A_TORN_LIST.split())
    assert stages_in(workspace.run("dvc", "repro")) == (set(), set())


def started(workspace: Workspace, *command: str) -> subprocess.Popen[bytes]:
    """A command in a process group of its own."""
    return subprocess.Popen(
        command,
        cwd=workspace.folder,
        env=workspace.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while any(map(partial(is_of, process.pid), psutil.process_iter())):
            time.sleep(0.05)


def until_a_stage_runs(process: subprocess.Popen[bytes]) -> None:
    """Only then is an experiment's override in params.yaml to stay: before, DVC stashes it once."""
    while not any(map(partial(runs_a_stage, process.pid), psutil.process_iter())):
        assert process.poll() is None, "it ended before any stage ran"
        time.sleep(0.05)


def runs_a_stage(group: int, process: psutil.Process) -> bool:
    try:
        return is_of(group, process) and "stages/" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def is_of(group: int, process: psutil.Process) -> bool:
    """Whether the process belongs to the group and has not ended."""
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def test_the_documented_remedy_after_a_killed_experiment_works(workspace):
    workspace.run("git", "checkout", "-q", ".")
    workspace.run("dvc", "checkout", "-q")
    params = workspace.folder / "params.yaml"
    process = started(workspace, "dvc", "exp", "run", "-S", "k=7")
    until_a_stage_runs(process)
    kill_after(process, 2)
    mend_what_dvc_tore(workspace)
    assert "k: 7" in params.read_text()
    left_in_the_index_by_an_early_kill(workspace)
    remedy = ("touch params.yaml", "git restore --staged .", "git restore params.yaml dvc.lock")
    told = (workspace.folder / "docs/pipeline.md").read_text()
    assert " && ".join(remedy) in told
    assert f"`{REMEDY_FOR_A_LOCKED_INDEX}`" in told
    for step in remedy:
        workspace.run(*step.split())
    assert "k: auto" in params.read_text()
    workspace.run("git", "switch", "-q", "main")
    workspace.repro()
    assert workspace.run("git", "status", "--porcelain").strip() == ""


def left_in_the_index_by_an_early_kill(workspace: Workspace) -> None:
    """DVC adds its packed arguments to Git's index until the experiment's first stage runs."""
    (workspace.folder / ".dvc/tmp/repro.dat").touch()
    workspace.run("git", "add", "--force", ".dvc/tmp/repro.dat")


def assert_whole(data: Path) -> None:
    """Every output that has its final name can be read to its end."""
    import orjson
    import pyarrow.parquet as pq
    from safetensors.torch import load_file

    for path in data.rglob("*"):
        if ".aside" in str(path):
            continue
        if path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".json":
            orjson.loads(path.read_bytes())
        elif path.suffix == ".jsonl":
            [orjson.loads(line) for line in path.read_bytes().splitlines()]
        elif path.suffix == ".safetensors":
            load_file(path)


def run_script(workspace: Workspace, *arguments: str, cwd: Path | None = None):
    return subprocess.run(
        ["python", *arguments],
        cwd=cwd or workspace.folder,
        env={**workspace.env, "PYTHONPATH": str(workspace.folder / "src")},
        text=True,
        capture_output=True,
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"actions": [', "line 1: broken JSON"),
        (b'{"actions": ["a?"], "obs": ["b", "c", "d"], "reward": 0}', "actions has 1 elements"),
        (b'{"actions": ["a\xff"], "obs": ["b"], "reward": 0}', "not UTF-8"),
        (b"", "no episodes"),
    ],
)
def test_a_bad_log_stops_the_stage_with_one_line(workspace, tmp_path, raw, expected):
    log = tmp_path / "bad.jsonl"
    log.write_bytes(raw)
    kept = (workspace.folder / "params.yaml").read_text()
    target = workspace.folder / "data/raw/single_agent/twenty_questions.jsonl"
    target.unlink(missing_ok=True)
    workspace.set_params({"logs.twenty_questions.source": str(log)})
    try:
        process = run_script(workspace, "stages/collect.py", "twenty_questions")
    finally:
        (workspace.folder / "params.yaml").write_text(kept)
    assert process.returncode == 1
    (line,) = process.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert str(log) in line
    assert expected in line
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("stages/evaluate.py", "vanila", "single_agent"), 1, "did you mean vanilla?"),
        (("stages/evaluate.py", "vanilla", "nosuch"), 1, "params.yaml has no category nosuch"),
        (("stages/prepare.py", "../../../x"), 1, "params.yaml has no log ../../../x"),
        (("stages/prepare.py",), 2, "the following arguments are required: log"),
        (("stages/prepare.py", "a", "b"), 2, "unrecognized arguments: b"),
        (("stages/prepare.py", "--help"), 0, "lay them out as tables"),
    ],
)
def test_stage_scripts_answer_as_commands_do(workspace, arguments, code, expected):
    process = run_script(workspace, *arguments)
    assert process.returncode == code
    assert expected in process.stdout + process.stderr
    assert workspace.run("git", "status", "--porcelain", "metrics").strip() == ""


def test_a_stage_refuses_another_copy_of_the_code(workspace, tmp_path):
    """What a queued experiment under an editable install would silently do."""
    script = str(workspace.folder / "stages/prepare.py")
    process = run_script(workspace, script, "twenty_questions", cwd=tmp_path)
    assert process.returncode == 1
    assert "run stages from the repository's root" in process.stderr
