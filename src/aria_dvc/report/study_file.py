"""A file of configs/study/, typed and checked: its experiments, and the policies in them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import Field, ValidationError, model_validator

from aria_dvc.errors import AriaError
from aria_dvc.params_errors import told
from aria_dvc.settings.block import Block
from aria_dvc.settings.training import VANILLA
from aria_dvc.yaml_file import read_yaml, taken_for_numbers

EXAMPLE = "see configs/study/credit.yaml"


@dataclass(frozen=True)
class Place:
    """Where the results of one policy are; `arm` is "" in a study without arms."""

    experiment: str
    arm: str
    seed: int
    variant: str
    category: str

    @property
    def label(self) -> str:
        """What the policy is called in the tables."""
        return self.arm if self.arm and self.variant != VANILLA else self.variant


class StudyFile(Block):
    """What the file says."""

    seeds: list[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        min_length=1, description="one experiment each, or one an arm"
    )
    reference: str = Field(description="the variant, or the arm, that all others are compared with")
    categories: list[str] = Field(min_length=1, description="whose evaluations are compared")
    variants: list[str] = Field(description="whose evaluations are compared: vanilla and others")
    settings: list[str] = Field(description="of every experiment, as `dvc exp run -S` takes them")
    arms: dict[str, list[str]] = Field(
        default_factory=dict,
        description="further settings by arm, each an experiment of its own. Then one variant "
        "beside vanilla is trained, which the tables call by its arm; vanilla is that of the arm "
        "`reference`",
    )
    sizes: dict[str, list[str]] = Field(
        default_factory=dict,
        description="settings that come after the others where the size of that name is asked for",
    )

    @model_validator(mode="after")
    def _comparable(self) -> StudyFile:
        if problems := list(self._problems()):
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        for key in ("seeds", "categories", "variants"):
            for value, count in Counter(getattr(self, key)).items():
                if count > 1:
                    yield f"{key}: {value} is there {count} times: leave one"
        if VANILLA not in self.variants:
            yield f"variants: no {VANILLA}, which all are compared with: add it"
        known = list(self.arms or self.variants)
        if self.reference not in known:
            yield f"reference: {self.reference} is none of {', '.join(known)}: name one"
        trained = [name for name in self.variants if name != VANILLA]
        if self.arms and len(trained) != 1:
            beside = ", ".join(trained) or "none"
            yield f"arms: each trains one variant beside {VANILLA}, variants has {beside}: name one"
        if VANILLA in self.arms:
            yield f"arms: {VANILLA} is the policy that no arm trains: give it another name"


class Study(StudyFile):
    """A file by its name, and the size that is asked for, or ""."""

    name: str
    size: str = ""

    @property
    def title(self) -> str:
        """What experiments and results are called by."""
        return f"{self.name}-{self.size}" if self.size else self.name

    @property
    def command(self) -> str:
        """What runs it."""
        command = f"python scripts/study.py run configs/study/{self.name}.yaml"
        return f"{command} --size {self.size}" if self.size else command

    @property
    def labels(self) -> list[str]:
        """What the tables call its policies."""
        return list(dict.fromkeys(place.label for place in self.places()))

    def sized(self, size: str) -> Study:
        """This study with the settings of a size.

        Raises:
            AriaError: it has no such size.
        """
        if size not in self.sizes:
            known = ", ".join(self.sizes) or "none"
            raise AriaError(f"--size: the study {self.name} has no size {size}: it has {known}")
        settings = [*self.settings, *self.sizes[size]]
        return self.model_copy(update={"size": size, "settings": settings})

    def of(self, seeds: Sequence[int]) -> Study:
        """This study with those seeds only."""
        return self.model_copy(update={"seeds": list(seeds)})

    def experiments(self) -> dict[str, list[str]]:
        """Name -> settings of every experiment, seed by seed."""
        return {
            self._experiment(arm, seed): [f"seed={seed}", *self.settings, *more]
            for seed in self.seeds
            for arm, more in (self.arms or {"": []}).items()
        }

    def hashes(self) -> dict[str, str]:
        """Name -> short hash of what the file says of every experiment, beside its seed.

        Variants count in a study with arms alone, whose tables call them by their arm; elsewhere a
        table's rows say of which variants they are.
        """
        variants = sorted(self.variants) if self.arms else []
        return {
            name: _short_hash([settings[1:], sorted(self.categories), variants])
            for name, settings in self.experiments().items()
        }

    def places(self) -> list[Place]:
        """Every policy of the study."""
        return [
            Place(self._experiment(arm, seed), arm, seed, variant, category)
            for seed in self.seeds
            for arm in self.arms or [""]
            for category in self.categories
            for variant in self.variants
            if variant != VANILLA or arm in ("", self.reference)
        ]

    def _experiment(self, arm: str, seed: int) -> str:
        return "-".join([self.title, *([arm] if arm else []), "seed", str(seed)])


def load_study(config: Path) -> Study:
    """Read a file of configs/study/.

    Raises:
        AriaError: the file is missing or not YAML, has unknown, missing or ill-typed keys, or
            compares with what it does not train; the message lists every problem.
    """
    raw = read_yaml(config)
    if not isinstance(raw, dict):
        raise AriaError(f"{config} must be a mapping: {EXAMPLE}")
    try:
        read = StudyFile.model_validate(raw).model_dump()
        problems = sorted(taken_for_numbers(raw, read))
    except ValidationError as error:
        problems = list(told(error, StudyFile))
    if problems:
        raise AriaError(f"{config}: {'; '.join(problems)}: {EXAMPLE}")
    return Study(name=config.stem, **read)


def _short_hash(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value)).hexdigest()[:12]
