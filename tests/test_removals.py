"""Every line of the program that takes something away, and what it may take."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Calls that remove, replace, cut short or rename; DataFrame.rename and str.replace are told apart
# by what they are called on.
METHODS = {"unlink", "rmtree", "truncate", "rmdir", "removedirs", "move"}
ON_OS = {"replace", "rename", "remove", "renames"}
ALLOWED = {
    # the writer's own folder, with its own random name and lock, and a target that is replaced
    # whole: a file, or a folder all of whose files the new one has too
    "aside.py": {
        "_in_two_steps: rename",
        "_put_back: rename",
        "_put_back: rmtree",
        "_remove: rmtree",
        "_remove: unlink",
        "_replace: rename",
        "_replace: replace",
        "discard: rename",
    },
    # SQLite's own files beside a damaged one of the cache, which is renamed and kept
    "cache/vectors.py": {"move_aside: replace", "move_aside: unlink"},
    # in a run's folder of the cache, under its lock: the state before the one before
    "learning/online_run.py": {"keep: unlink"},
    # in a folder that is being written: what peft and transformers have just put there
    "learning/trainer.py": {"save: unlink"},
    "models/saving.py": {"tidy: unlink"},
}
# Who hands a path to `discard`: of the cache alone, under the folder's lock.
DISCARDS = {"cache/prune.py", "learning/checkpoints.py", "learning/online_update.py"}


def test_nothing_else_takes_anything_away():
    found = {}
    for file in sorted((ROOT / "src" / "aria_dvc").rglob("*.py")):
        taken = set(_taken(ast.parse(file.read_text("utf-8"))))
        if taken:
            found[file.relative_to(ROOT / "src" / "aria_dvc").as_posix()] = taken
    assert found == ALLOWED
    for file in (ROOT / "stages").glob("*.py"):
        assert not set(_taken(ast.parse(file.read_text("utf-8")))), file.name


def test_only_the_cache_is_discarded():
    users = {
        file.relative_to(ROOT / "src" / "aria_dvc").as_posix()
        for file in (ROOT / "src" / "aria_dvc").rglob("*.py")
        if "import discard" in file.read_text("utf-8")
    }
    assert users == DISCARDS


def _taken(tree):
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    name, on = node.func.attr, ast.unparse(node.func.value)
                    on_path = on == "os" or (name == "rename" and on == "path")
                    if name in METHODS or (name in ON_OS and on_path):
                        yield f"{function.name}: {name}"
