"""Data flows one way: nothing imports upward or in a circle, and a package itself runs no code.

Imports inside functions count; what only type checkers read does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

SOURCE = Path(__file__).parent.parent / "src" / "aria_dvc"
# From the bottom. What stands in one row does not import its neighbours in the row either.
LAYERS = (
    {"shown"},
    {"errors"},
    {"aside"},
    {
        "clustered",
        "files",
        "memory",
        "outputs",
        "resampling",
        "seeds",
        "suggestions",
        "chat",
        "fingerprints",
        "packaged",
        "cores",
        "yaml_file",
    },
    {"cache", "progress", "records.names", "failures"},
    {"embedder_specs", "player_specs", "settings"},
    {"params_errors", "player_checks", "policy_checks"},
    {"params_checks"},
    {"params"},
    {"oracles"},
    {"records"},
    {"games", "servers", "models"},
    {"players", "intentions"},
    {"arena", "credit"},
    {"truth", "learning", "report"},
    {"pipeline", "api", "audit", "exports", "adapters", "serving", "review", "plan"},
    {"handover"},
    {""},  # aria_dvc/__init__.py, the public functions
    {"__main__"},
)
# Playing and learning meet in the pipeline alone: neither side knows of the other. What is known of
# a guessing game's targets serves both: answers there, outcomes and beliefs here.
PLAYING = {"games", "players", "arena", "truth"}
LEARNING = {"intentions", "credit", "learning", "report"}
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}


def deps_of(graph: grimp.ImportGraph) -> dict[str, set[str]]:
    """Module -> modules it imports, by their names below the package."""
    short = {module: module.removeprefix("aria_dvc").lstrip(".") for module in graph.modules}
    return {
        short[module]: {short[name] for name in graph.find_modules_directly_imported_by(module)}
        for module in graph.modules
    }


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    graph = grimp.build_graph("aria_dvc", exclude_type_checking_imports=True, cache_dir=None)
    return deps_of(graph)


def layer_of(module: str) -> str:
    """The entry of LAYERS that the module belongs to: itself, or the package it lies in."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in HEIGHT), parts[0])


def upward(imports: Mapping[str, set[str]]) -> Iterator[str]:
    """Every import that does not go down, as `module imports module`."""
    for module, imported in sorted(imports.items()):
        for other in sorted(imported):
            mine, theirs = layer_of(module), layer_of(other)
            across = {mine, theirs} & PLAYING and {mine, theirs} & LEARNING
            if mine != theirs and (HEIGHT[theirs] >= HEIGHT[mine] or across):
                yield f"{module} imports {other or 'aria_dvc'}"


def circles(imports: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """A circle of modules, and one of the children of each package, where there is any."""
    yield from circle(imports)
    for package in {"", *(module.rpartition(".")[0] for module in imports)}:
        depth = len(package.split(".")) if package else 0
        children: dict[str, set[str]] = {}
        for module, imported in imports.items():
            inside = [name for name in (module, *imported) if is_below(name, package)]
            names = [".".join(name.split(".")[: depth + 1]) for name in inside]
            if module in inside:
                children.setdefault(names[0], set()).update(set(names) - {names[0]})
        yield from circle(children)


def is_below(module: str, package: str) -> bool:
    return bool(module) and (not package or module.startswith(f"{package}."))


def circle(imports: Mapping[str, set[str]]) -> Iterator[list[str]]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        yield error.args[1]


def test_every_module_has_its_layer(imports):
    assert {layer_of(module) for module in imports} == set(HEIGHT)


def test_nothing_imports_upward(imports):
    assert list(upward(imports)) == []


def test_nothing_imports_in_a_circle(imports):
    assert list(circles(imports)) == []


def test_what_goes_wrong_is_found(imports):
    def wrong(module: str, other: str) -> dict[str, set[str]]:
        return {**imports, module: imports[module] | {other}}

    for module, other in (
        ("games.base", "players.base"),  # upward
        ("memory", "seeds"),  # to a neighbour
        ("learning.policy", "games.registry"),  # across
        ("params", "records.episodes"),
    ):
        assert list(upward(wrong(module, other))) == [f"{module} imports {other}"]
    assert list(circles(wrong("games.parsing", "games.alternating")))
    assert list(circles(wrong("oracles.city.lists", "oracles.city.oracle")))
    assert list(circles(wrong("credit.methods.text", "credit.quality")))


def test_a_package_tells_its_story_and_runs_no_code():
    for file in SOURCE.glob("*/**/__init__.py"):
        tree = ast.parse(file.read_text("utf-8"))
        story = ast.get_docstring(tree)
        assert story, file
        assert len(tree.body) == 1, file
        assert len(story.splitlines()) <= 5, file
