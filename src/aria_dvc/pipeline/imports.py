"""Which of our modules a stage script imports, found by reading its syntax tree.

DVC does not follow imports, so dvc.yaml lists every module a stage needs; `python -m
aria_dvc.pipeline.imports --write` brings the lists up to date and a test compares them.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from ruamel.yaml import YAML

from aria_dvc.credit.methods.registry import METHODS
from aria_dvc.records.names import PLAYABLE

PACKAGE = "aria_dvc"
# Imported by name at run time, so not seen in the syntax tree.
BY_NAME = {
    "aria_dvc.games.registry": [f"aria_dvc.games.{game}" for game in PLAYABLE],
    "aria_dvc.credit.methods.registry": [
        f"aria_dvc.credit.methods.{module}" for module, _ in METHODS.values()
    ],
}


def imported_files(script: Path, root: Path = Path()) -> list[str]:
    """Our files that `script` imports, directly or not, as sorted paths relative to `root`.

    Imports under `if TYPE_CHECKING` do not run and do not count; imports inside functions do.
    """
    found: set[str] = set()
    pending = sorted(_imports(script, root))
    while pending:
        module = pending.pop()
        file = _file_of(module, root)
        if file is None or str(file) in found:
            continue
        found |= {str(file), *_data_beside(file, root)}
        pending += sorted(_imports(root / file, root)) + BY_NAME.get(module, [])
    return sorted(found)


def _file_of(module: str, root: Path) -> Path | None:
    """The module's file; packages are namespaces here: their `__init__` holds no code."""
    file = Path("src", *module.split(".")).with_suffix(".py")
    return file if (root / file).is_file() else None


def _data_beside(file: Path, root: Path) -> list[str]:
    """The package's folder of data files, which its modules read."""
    data = file.parent / "data"
    return [str(data)] if (root / data).is_dir() else []


def _imports(path: Path, root: Path) -> set[str]:
    names: set[str] = set()
    for node in _running_nodes(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.split(".")[0] == PACKAGE}


def _running_nodes(node: ast.AST) -> list[ast.AST]:
    """All nodes below `node` except the bodies of `if TYPE_CHECKING`."""
    nodes = [node]
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        nodes += _running_nodes(child)
    return nodes


def update(dvc_yaml: Path = Path("dvc.yaml")) -> None:
    """Rewrite the code dependencies of every stage in dvc.yaml, keeping everything else."""
    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(dvc_yaml)
    for name, stage in document["stages"].items():
        script = f"stages/{name}.py"
        others = [dep for dep in stage["deps"] if not str(dep).startswith(("src/", "stages/"))]
        stage["deps"] = [script, *others, *imported_files(Path(script))]
    yaml.dump(document, dvc_yaml)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit("usage: python -m aria_dvc.pipeline.imports --write")
    update()
