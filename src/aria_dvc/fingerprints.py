"""What code a result depends on: a hash of every module that a script imports, found by reading.

DVC does not follow imports. The stage `code` writes one fingerprint a stage, and that file is the
stage's only code dependency; journals and checkpoints are keyed by the same hashes. A module
counts by what it does: comments, docstrings, layout and `if TYPE_CHECKING` are left out, and so
are the modules that cannot change what an output holds (PLUMBING).
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "aria_dvc"
SOURCE = Path(__file__).parent.parent
# They carry, check and show.
PLUMBING = frozenset(
    f"{PACKAGE}.{name}"
    for name in (
        "aside",
        "cache.cli",
        "cache.entries",
        "cache.folder",
        "cache.lines",
        "cache.locks",
        "cache.prune",
        "cache.sums",
        "cache.vectors",
        "errors",
        "fingerprints",
        "memory",
        "outputs",
        "params_checks",
        "params_errors",
        "player_checks",
        "arena.stats",
        "learning.checkpoints",
        "learning.trackers",
        "pipeline.paths",
        "progress",
        "pipeline.stage",
        "suggestions",
    )
)
BLOCKS = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        "params",
        "settings.block",
        "settings.dialogues",
        "settings.evaluation",
        "settings.intentions",
        "settings.machine",
        "settings.online",
        "settings.training",
    )
)
"""Modules with the blocks of params.yaml, as pydantic models."""


def stage_fingerprint(script: str | Path) -> dict[str, str]:
    """Hash of a script and of every module and data file of ours that it imports, by name.

    Imports inside functions count; `import_module(f"package.{name}.module")` stands for the modules
    by whatever name. Data files are those in the folder `data` beside a module.
    """
    path = Path(script)
    return {path.name: _digest(_meaning(path)), **code_of(*sorted(_imports(path)))}


def code_of(*modules: str) -> dict[str, str]:
    """Hash of each of our modules that `modules` need, themselves included, and of their data."""
    found: dict[str, str] = {}
    pending = list(modules)
    while pending:
        module = pending.pop()
        file = _file_of(module)
        if file is None or module in found or module in PLUMBING or module == PACKAGE:
            continue
        if _meaning(file):
            found[module] = _digest(_meaning(file))
        found.update(_data_beside(file))
        pending += _imports(file)
    return dict(sorted(found.items()))


@cache
def code_hash(*modules: str) -> str:
    """One hash of `code_of`, for the key of a journal or checkpoint."""
    return _digest(repr(code_of(*modules)).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _file_of(module: str) -> Path | None:
    """The file of one of our modules, or of a package's `__init__`."""
    path = SOURCE.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if module.split(".")[0] == PACKAGE and file.is_file():
            return file
    return None


def _data_beside(file: Path) -> Iterator[tuple[str, str]]:
    """(name, hash) of the files in the folder `data` beside a module."""
    for data in sorted((file.parent / "data").glob("**/*")):
        if data.is_file() and data.suffix != ".pyc":
            yield str(data.relative_to(SOURCE)), _digest(data.read_bytes())


@cache
def _tree(file: Path) -> ast.Module:
    """The syntax tree without docstrings and without what runs for type checkers alone."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [item for item in block if not _is_silent(item)])
    if file in map(_file_of, BLOCKS):
        tree.body = [node for node in tree.body if not _is_vocabulary(node)]
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                node.body = [item for item in map(_of_a_block, node.body) if item]
    return tree


def _is_vocabulary(node: ast.stmt) -> bool:
    """Whether it lists the values that a field may have."""
    return isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Literal[")


def _of_a_block(node: ast.stmt) -> ast.stmt | None:
    """What counts of a line of a block: a method that checks nothing, or a field's default."""
    if isinstance(node, ast.FunctionDef):
        return None if any("validator" in ast.unparse(d) for d in node.decorator_list) else node
    if not isinstance(node, ast.AnnAssign):
        return node
    value = node.value
    if isinstance(value, ast.Call):
        factory = [keyword for keyword in value.keywords if keyword.arg == "default_factory"]
        value = ast.Call(value.func, value.args, factory) if value.args or factory else None
    kept = ast.Constant("its type is left out")
    return ast.AnnAssign(node.target, kept, value, node.simple) if value else None


def _is_silent(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def _meaning(file: Path) -> bytes:
    """The source as it runs, whatever its layout and comments."""
    return "\n".join(
        ast.unparse(node) for node in _tree(file).body if not _is_future(node)
    ).encode()


def _is_future(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


@cache
def _imports(file: Path) -> frozenset[str]:
    """Names in our package that the file imports; they need not all be modules."""
    names: set[str] = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call):
            names |= set(_by_name(node))
    parents = {name.rpartition(".")[0] for name in names}
    return frozenset(n for n in names | parents if n.split(".")[0] == PACKAGE)


def _by_name(call: ast.Call) -> Iterable[str]:
    """All modules that a call like `import_module(f"package.{name}.module")` may mean."""
    called = (
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    )
    if called != "import_module" or not call.args:
        return []
    name = call.args[0]
    if isinstance(name, ast.Constant):
        return [str(name.value)]
    if not isinstance(name, ast.JoinedStr) or not isinstance(name.values[0], ast.Constant):
        return []
    told = (str(part.value) if isinstance(part, ast.Constant) else "*" for part in name.values)
    files = SOURCE.glob("".join(told).replace(".", "/") + ".py")
    modules = (".".join(file.relative_to(SOURCE).with_suffix("").parts) for file in files)
    return [module for module in modules if not module.endswith(".__init__")]
