"""What the pages docs/stages/*.md say of reads, writes and knobs, from dvc.yaml and the code.

    python -m aria_dvc.pipeline.knobs    # rewrites it; a test compares

A page is written by hand down to the line `MARK`; what stands below comes from dvc.yaml, from the
fields of settings/ and from the schemas of the tables. The folder's README has the knobs that
are no stage's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aria_dvc.errors import AriaError
from aria_dvc.params import Params
from aria_dvc.params_errors import described_fields
from aria_dvc.records.schemas import SCHEMAS, Schema
from aria_dvc.yaml_file import read_yaml

FOLDER = Path("docs/stages")
INDEX = "README"
MARK = "<!-- What follows is written by `make knobs`: do not edit it by hand. -->"
LONGEST = 40  # characters of a shipped value; longer ones are looked up in params.yaml
# What stands for the names that users give, in paths and in places of params.yaml.
_GIVEN = {
    "${key}": "<log>",
    "${item.source}": "the log's `source`",
    "${item.category}": "<category>",
    "${item.variant}": "<variant>",
}
_NAMES = {"logs": "<log>", "games": "<game>", "by_game": "<game>", "by_category": "<category>"}
_BY_HAND = {"models/language": "your own models", "models/sentence": "your own models"}
UNSET = object()
Location = tuple[str, ...]


@dataclass(frozen=True)
class Knob:
    """One field of params.yaml: its place, what is shipped (UNSET if nothing), what it does."""

    location: Location
    shipped: Any
    does: str

    @property
    def name(self) -> str:
        return ".".join(self.location)


@dataclass(frozen=True)
class Pipeline:
    """dvc.yaml and params.yaml, as they are."""

    stages: Mapping[str, Mapping[str, Any]]
    params: Mapping[str, Any]

    @classmethod
    def of(cls, root: Path) -> Pipeline:
        """Raises AriaError if one of the two files is missing or no YAML."""
        return cls(read_yaml(root / "dvc.yaml")["stages"], read_yaml(root / "params.yaml"))

    def does(self, stage: str) -> Mapping[str, Any]:
        return self.stages[stage].get("do", self.stages[stage])

    def shared(self) -> list[str]:
        """What of params.yaml is no stage's own block."""
        return [name for name in described_fields(Params, ()) or {} if name not in self.stages]


def page(text: str, generated: str, where: Path) -> str:
    """`text` of a page with what follows its `MARK` replaced.

    Raises:
        AriaError: the page has no such line.
    """
    by_hand, mark, _ = text.partition(MARK)
    if not mark:
        raise AriaError(f"{where}: has no line to write below: add {MARK}")
    return f"{by_hand}{MARK}\n\n{generated}"


def pages(root: Path) -> dict[Path, str]:
    """Every page of `FOLDER` by its path below `root`, as it should be.

    Raises:
        AriaError: a stage has no page, or a page no `MARK`.
    """
    pipeline = Pipeline.of(root)
    wanted = {stage: stage_part(pipeline, stage) for stage in pipeline.stages}
    wanted[INDEX] = index_part(pipeline)
    found = {}
    for name, generated in wanted.items():
        path = FOLDER / f"{name}.md"
        if not (root / path).exists():
            raise AriaError(f"{path} is missing: say there what the stage {name} does")
        found[path] = page((root / path).read_text("utf-8"), generated, path)
    return found


def stage_part(pipeline: Pipeline, stage: str) -> str:
    """Markdown: how one stage runs, what it reads and writes, its knobs."""
    parts = [_runs(pipeline, stage), _reads(pipeline, stage), _writes(pipeline, stage)]
    return "\n\n".join([*parts, *_knob_parts(pipeline, stage)]) + "\n"


def index_part(pipeline: Pipeline) -> str:
    """Markdown: the knobs that belong to no stage alone."""
    rows = [knob for name in pipeline.shared() for knob in knobs(pipeline.params, (name,))]
    return f"## Knobs of no one stage\n\n{_knob_table(rows)}\n"


def _runs(pipeline: Pipeline, stage: str) -> str:
    found = pipeline.stages[stage]
    if "foreach" in found:
        return f"## Runs\n\nOnce for each log; one of them alone: `dvc repro {stage}@LOG`."
    if "matrix" not in found:
        return f"## Runs\n\nOnce: `dvc repro {stage}`."
    names = list(found["matrix"])
    one = "-".join(name.upper() for name in names)
    return f"## Runs\n\nOnce for each {' and '.join(names)}; one alone: `dvc repro {stage}@{one}`."


def _reads(pipeline: Pipeline, stage: str) -> str:
    rows = [(_shown(dep), _origin(pipeline, dep)) for dep in pipeline.does(stage)["deps"]]
    return f"## Reads\n\n{_table(('what', 'from'), rows)}"


def _origin(pipeline: Pipeline, dep: str) -> str:
    """Which stages write a dependency, as links; or who else does."""
    if dep in ("${item.source}", *_BY_HAND):
        return _BY_HAND.get(dep, "the [base model](base_model.md), or a file of your own")
    writers = [
        f"[{name}]({name}.md)"
        for name in pipeline.stages
        for out in _outs(pipeline, name)
        if _is_below(out, dep) or _is_below(dep, out)
    ]
    return ", ".join(dict.fromkeys(writers)) or "the code"


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _outs(pipeline: Pipeline, stage: str) -> list[str]:
    does = pipeline.does(stage)
    listed = [*does.get("outs", ()), *does.get("metrics", ())]
    return [out if isinstance(out, str) else next(iter(out)) for out in listed]


def _writes(pipeline: Pipeline, stage: str) -> str:
    rows = []
    for out in _outs(pipeline, stage):
        schema = next((found for found in SCHEMAS if found.path == _named(out)), None)
        row = f"one {schema.row}; [columns](../data.md#{anchor(schema)})" if schema else ""
        rows.append((_shown(out), row))
    if not any(row for _, row in rows):
        return "## Writes\n\n" + "\n".join(f"- {path}" for path, _ in rows)
    return f"## Writes\n\n{_table(('file', 'one row is'), rows)}"


def anchor(schema: Schema) -> str:
    """The anchor of a schema's heading in docs/data.md, as GitHub and the site make it."""
    heading = f"{schema.name}: {schema.path}".lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def _knob_parts(pipeline: Pipeline, stage: str) -> Iterator[str]:
    """The stage's own block as a table, then a list of what else it reads of params.yaml."""
    named = [_named(name) for name in pipeline.does(stage).get("params", ())]
    own = [name for name in named if name.split(".")[0] == stage]
    if own:
        rows = [knob for name in own for knob in knobs(pipeline.params, tuple(name.split(".")))]
        yield f"## Knobs\n\n{_knob_table(rows)}"
    if others := [_other(pipeline, name) for name in named if name not in own]:
        yield "## What else of params.yaml reruns it\n\n" + "\n".join(others)


def _other(pipeline: Pipeline, name: str) -> str:
    block = name.split(".")[0]
    own = block in pipeline.stages
    where = f"{block}.md#knobs" if own else "README.md#knobs-of-no-one-stage"
    return f"- [`{name}`]({where})"


def knobs(params: Mapping[str, Any], location: Location) -> Iterator[Knob]:
    """The described field at a place in params.yaml, and those below it."""
    field = (described_fields(Params, location[:-1]) or {}).get(location[-1])
    if field is not None and field.description:
        yield Knob(location, _value(params, location), field.description)
    if location[0] != "variants":  # what they change is the block policy
        yield from _below(params, location)


def _below(params: Mapping[str, Any], location: Location) -> Iterator[Knob]:
    given = (*location, _NAMES.get(location[-1], "<name>"))
    for block in (location, given):
        for name in described_fields(Params, block) or {}:
            yield from knobs(params, (*block, name))


def _value(params: Mapping[str, Any], location: Location) -> Any:
    node: Any = params
    for part in location:
        node = node.get(part, UNSET) if isinstance(node, Mapping) else UNSET
    return node


def _knob_table(rows: Sequence[Knob]) -> str:
    cells = [(f"`{knob.name}`", _shipped(knob.shipped), knob.does) for knob in rows]
    return _table(("knob", "shipped", "what it does"), cells)


def _shipped(value: Any) -> str:
    """A plain value as params.yaml has it; nothing for blocks and for long ones."""
    if value is UNSET or isinstance(value, Mapping):
        return ""
    if isinstance(value, list):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text}`" if 0 < len(text) <= LONGEST else ""


def _named(text: str) -> str:
    for variable, name in _GIVEN.items():
        text = text.replace(variable, name)
    return text


def _shown(path: str) -> str:
    return _named(path) if path == "${item.source}" else f"`{_named(path)}`"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [heads, ["---"] * len(heads), *escaped]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("|  |", "| |")
