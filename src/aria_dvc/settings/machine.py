"""The servers and the machine that a run uses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from aria_dvc.settings.block import Block, address, variable

IN_PROCESS = "in_process"
Rollouts = Annotated[
    str | list[str],
    Field(
        description="who plays the policy: in_process, or endpoint:NAME (a vLLM server of the base "
        "model that loads the adapter), or a list of such, to which games are dealt"
    ),
]
Precision = Literal["auto", "float32", "bfloat16"]
Tracker = Literal["tensorboard", "wandb", "trackio", "dvclive"]


class Endpoint(Block):
    """An OpenAI-compatible server, named under `endpoints`; the key comes from the environment."""

    base_url: str = Field(description="where it listens")
    model: str = Field(description="the model's name on that server")
    api_key_env: str | None = Field(
        None,
        description="the environment variable that holds the key (never the key itself); leave "
        "out if none",
    )
    max_concurrency: int = Field(16, ge=1, description="requests under way at once")
    timeout_s: float = Field(
        60.0, gt=0, description="seconds until one request is given up and retried"
    )
    deadline_s: float = Field(
        600.0, gt=0, description="seconds without any success after which the run stops"
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="further fields of every request, e.g. reasoning_effort; null drops a field",
    )

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        return address(url, "http://host:port/v1")

    @field_validator("api_key_env")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        return variable(name)


def servers_of(rollouts: str | list[str]) -> tuple[str, ...]:
    """The names of the endpoints in a `Rollouts`; none for in_process."""
    named = [rollouts] if isinstance(rollouts, str) else rollouts
    return tuple(spec.removeprefix("endpoint:") for spec in named if spec != IN_PROCESS)


class Pace(Block):
    """What suits a machine: it changes how fast results come, and results only by rounding."""

    processes: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto",
        description="processes that play, and micro-batches that train, side by side; auto = one a "
        "core, four at the most, on the CPU, else 1; each process loads the model",
    )
    in_flight: int = Field(
        ge=1, description="games that a process plays at once; more = faster, more memory"
    )
    cache_gib: float = Field(
        gt=0, description="memory for keys and values of the games in flight; too little = slower"
    )
    deadline_s: float = Field(
        gt=0, description="seconds without a finished episode or request until a stage gives up"
    )
    embed_batch: int = Field(ge=1, description="texts embedded at once; more = more memory")
    tokens_per_batch: int = Field(
        ge=64, description="training tokens per forward pass; more = faster, more memory"
    )
    checkpoint_every: int = Field(
        ge=1, description="optimiser steps between checkpoints, which make training resumable"
    )
    cache_limit_gib: float = Field(
        20.0,
        ge=0,
        description="the most that .aria_cache keeps on disk after a stage; what was used longest "
        "ago goes first",
    )
    precision: Precision = Field(
        description="auto = bfloat16 where the hardware multiplies it faster; or float32, bfloat16"
    )
    gradient_checkpointing: bool = Field(
        False,
        description="true computes activations anew in the backward pass: a third more time, much "
        "less memory",
    )
