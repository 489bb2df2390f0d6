"""Players by name, as params.yaml spells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aria_dvc.errors import AriaError
from aria_dvc.params import PLAYERS, Endpoint, PlaySettings, did_you_mean
from aria_dvc.players.base import Player

if TYPE_CHECKING:
    from aria_dvc.players.policy import PolicyPlayer


@dataclass
class PlayerContext:
    """What players are made of. A player is made once a context, so that roles share a model.

    Args:
        settings: sampling settings.
        base_model: Hugging Face id or folder of the base model.
        endpoints: servers by name (params.endpoints).
        adapter: LoRA folder that `policy` wears, if any.
    """

    settings: PlaySettings
    base_model: str = "data/base_model"
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    adapter: str | None = None
    trust_remote_code: bool = False
    _made: dict[str, Player] = field(default_factory=dict)

    def player(self, spec: str) -> Player:
        """The context's player for `spec` (see `make_player`)."""
        if spec not in self._made:
            self._made[spec] = make_player(spec, self)
        return self._made[spec]

    async def close(self) -> None:
        """Close every player that was made."""
        for player in self._made.values():
            await player.close()
        self._made.clear()


def make_player(spec: str, context: PlayerContext) -> Player:
    """The player that `spec` names.

    Args:
        spec: `policy` (base model with the adapter, if any), `base` (without), `embedded` (the
            offline oracle), `scripted:<strategy>`, or `endpoint:<name>` of params.endpoints.

    Raises:
        AriaError: an unknown spec, strategy or endpoint, or a model that cannot be loaded.
    """
    kind, _, name = spec.partition(":")
    if spec in ("policy", "base"):
        return _model_player(spec, context)
    if spec == "embedded":
        from aria_dvc.players.scripted import embedded_oracle

        return embedded_oracle()
    if kind == "scripted" and name:
        from aria_dvc.players.scripted import scripted_player

        return scripted_player(name)
    if kind == "endpoint" and name:
        return _endpoint_player(spec, name, context)
    raise AriaError(f"unknown player {spec}{did_you_mean(spec, PLAYERS)}")


def _model_player(spec: str, context: PlayerContext) -> PolicyPlayer:
    from aria_dvc.models.source import ModelSource
    from aria_dvc.players.policy import PolicyPlayer, policy_player

    adapter = context.adapter if spec == "policy" else None
    twin = context._made.get("policy" if spec == "base" else "base")
    if isinstance(twin, PolicyPlayer) and adapter is None and twin.adapter is None:
        return twin.renamed(spec, context.settings.of(spec))
    return policy_player(
        spec,
        ModelSource(context.base_model, context.trust_remote_code),
        context.settings.of(spec),
        adapter,
    )


def _endpoint_player(spec: str, name: str, context: PlayerContext) -> Player:
    from aria_dvc.players.endpoint import EndpointPlayer

    if name not in context.endpoints:
        raise AriaError(
            f"unknown endpoint {name}{did_you_mean(name, context.endpoints)}: "
            "describe it under endpoints in params.yaml"
        )
    return EndpointPlayer(name, context.endpoints[name], context.settings.of(spec))
