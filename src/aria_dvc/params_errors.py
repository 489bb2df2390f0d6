"""What pydantic finds wrong in params.yaml, a line each, and the fields that a block has."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from reprlib import Repr
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from aria_dvc.settings.block import SECRET, Block
from aria_dvc.settings.training import PolicyParams
from aria_dvc.suggestions import did_you_mean, nearest

_EXPECTED = "Input should be "
_EMPTY = {"dict_type": "{}", "list_type": "[]"}
_QUOTED = re.compile(r"'([^']*)'")
_BRIEF = Repr()  # of a wrong value: it may be half of the file
_BRIEF.maxother = _BRIEF.maxstring = 200


def told(error: ValidationError, root: type[Block], within: tuple[Any, ...] = ()) -> Iterator[str]:
    """What is wrong, a line each; `within` is where below `root` the wrong values stand."""
    items: list[dict[str, Any]] = [
        {**item, "loc": (*within, *item["loc"])} for item in error.errors()
    ]
    by_value: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        if not any(_goes_deeper(other["loc"], item["loc"]) for other in items):
            by_value[_value_of(item, root)].append(item)
    for found in by_value.values():
        yield from _described(found, root).split("\n")


def _goes_deeper(other: tuple[Any, ...], loc: tuple[Any, ...]) -> bool:
    """Whether the same value was taken for a list or mapping, of which a part is wrong."""
    at = len(loc) - 1
    return len(other) > len(loc) and other[:at] == loc[:at] and _is_type(other[at])


def _is_type(part: Any) -> bool:
    """Whether a part of a place is the type that pydantic has tried there."""
    return isinstance(part, str) and "[" in part


def _value_of(item: Mapping[str, Any], root: type[Block]) -> Any:
    """Equal for what is wrong with one value, which has a problem by each type that it may have."""
    *place, tried = item["loc"] or ("",)
    is_key = bool(place) and _is_type(place[-1])  # of a mapping that was tried
    if isinstance(tried, int) or is_key or _at(root, tuple(place)) is not None:
        return item["loc"]
    return (*place, id(item["input"]))


def _described(found: Sequence[Any], root: type[Block]) -> str:
    """What is wrong with one value."""
    item, place = found[0], found[0]["loc"][: -1 if len(found) > 1 else None]
    where = ".".join(str(part) for part in place if not _is_type(part))
    if item["type"] in _EMPTY and item["input"] is None:
        return f"{where}: is empty: write {_EMPTY[item['type']]}"
    if item["type"] == "extra_forbidden":
        fields = described_fields(root, place[:-1]) or ()
        return f"{where}: unknown key{did_you_mean(place[-1], fields)}"
    if item["type"] == "value_error" and not where:
        return str(item["ctx"]["error"])
    first, *more = (one["msg"] for one in found)
    words = [first[0].lower() + first[1:], *(one.removeprefix(_EXPECTED) for one in more)]
    return f"{where}: {', or '.join(words)}{_got(found)}"


def _got(found: Sequence[Any]) -> str:
    """The wrong value, with the nearest of those that are allowed."""
    if not _may_be_shown(found[0]):
        return ""
    value = found[0]["input"]
    expected = [one["ctx"]["expected"] for one in found if one["type"] == "literal_error"]
    near = nearest(str(value), _QUOTED.findall(" ".join(expected)))
    return f" (got {_BRIEF.repr(value)}{f'; did you mean {near}?' if near else ''})"


def _may_be_shown(item: Any) -> bool:
    """Whether a wrong value is there at all and holds no secret, such as an address in its place
    may."""
    of_server = item["loc"][:1] == ("endpoints",) and not isinstance(item["input"], int | float)
    return item["type"] not in ("missing", SECRET) and not of_server


def described_fields(root: type[Block], location: tuple[Any, ...]) -> dict[str, Any] | None:
    """The fields of the block at a place below `root`, by name; None where it is no block."""
    found = _at(root, location)
    return found.model_fields if _is_model(found) else None


def _at(root: type[Block], location: tuple[Any, ...]) -> Any:
    """The block at a place below `root`, or a mapping's annotation; None where it is neither."""
    model: Any = root
    for number, part in enumerate(location):
        if location[:number] == ("variants",):
            model = PolicyParams
            continue
        field = model.model_fields.get(part) if _is_model(model) else None
        model = _block_in(field.annotation) if field else _named_block(model)
        if model is None:
            return None
    return model


def _block_in(annotation: Any) -> Any:
    """The block in an annotation like `Lora | None`, or a mapping of named blocks as it is."""
    if _is_model(annotation) or getattr(annotation, "__origin__", None) is dict:
        return annotation
    return next((part for part in get_args(annotation) if _is_model(part)), None)


def _named_block(mapping: Any) -> Any:
    """The block that a mapping holds under every name."""
    values = get_args(mapping)
    return _block_in(values[1]) if len(values) == 2 else None


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)
