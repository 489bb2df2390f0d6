"""Players by name, as params.yaml spells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aria_dvc.errors import AriaError
from aria_dvc.models.source import ModelSource
from aria_dvc.player_specs import find_endpoint, parse_spec
from aria_dvc.players.base import Player
from aria_dvc.settings.dialogues import PlaySettings
from aria_dvc.settings.machine import Endpoint, Pace

if TYPE_CHECKING:
    from aria_dvc.players.policy import PolicyPlayer


@dataclass
class PlayerContext:
    """What players are made of. A player is made once a context, so that roles share a model.

    Args:
        settings: sampling settings.
        model: what `policy` and `base` are.
        endpoints: servers by name (params.endpoints).
        adapter: LoRA folder of the player `policy`, if any.
        own_model: what `policy` is instead, where its weights are its own.
        record_logprobs: whether our own policy keeps token ids and log-probabilities.
        served_by: names of the endpoints that play `policy`; none: it is played in process.
    """

    settings: PlaySettings
    pace: Pace
    model: ModelSource
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    adapter: Path | None = None
    own_model: ModelSource | None = None
    record_logprobs: bool = False
    served_by: tuple[str, ...] = ()
    _made: dict[str, Player] = field(default_factory=dict)

    def player(self, spec: str) -> Player:
        """The context's player for `spec` (see `make_player`)."""
        if spec not in self._made:
            self._made[spec] = make_player(spec, self)
        return self._made[spec]


def make_player(spec: str, context: PlayerContext) -> Player:
    """The player that `spec` names.

    Args:
        spec: `policy` (base model with the adapter, if any, or its own), `base` (without),
            `embedded` (the offline oracle), `scripted:<strategy>`, or `endpoint:<name>` of
            params.endpoints.

    Raises:
        AriaError: an unknown spec, strategy or endpoint, or a model that cannot be loaded.
    """
    parsed = parse_spec(spec)
    if parsed.kind == "embedded":
        from aria_dvc.players.scripted import embedded_oracle

        return embedded_oracle()
    if parsed.kind == "scripted":
        from aria_dvc.players.scripted import scripted_player

        return scripted_player(parsed.name)
    servers = context.served_by if spec == "policy" else ()
    if parsed.kind == "endpoint" or servers:
        return _served_player(spec, servers or (parsed.name,), context)
    return _model_player(spec, context)


def _served_player(spec: str, servers: Sequence[str], context: PlayerContext) -> Player:
    """The player of that spec on endpoints, which share its games and record it under the spec."""
    from aria_dvc.players.dealt import DealtPlayer
    from aria_dvc.players.endpoint import EndpointPlayer, drawn_plainly

    settings, deadline_s = context.settings.of(spec), context.pace.deadline_s
    endpoints = {name: find_endpoint(name, context.endpoints) for name in servers}
    if spec == "policy":
        endpoints = {name: drawn_plainly(name, one) for name, one in endpoints.items()}
    players = [EndpointPlayer(name, one, settings, deadline_s) for name, one in endpoints.items()]
    if len({player.sampling for player in players}) > 1:
        raise AriaError(
            f"{', '.join(player.endpoint for player in players)} play {spec} together, but sample "
            "differently: give them the same temperature and top_p in their options"
        )
    player = players[0] if len(players) == 1 else DealtPlayer(spec, players)
    player.name = spec
    return player


def _model_player(spec: str, context: PlayerContext) -> PolicyPlayer:
    from aria_dvc.players.policy import PolicyPlayer, policy_player

    adapter = context.adapter if spec == "policy" else None
    twin = context._made.get("policy" if spec == "base" else "base")
    if isinstance(twin, PolicyPlayer) and context.adapter is None and context.own_model is None:
        return twin.renamed(spec, context.settings.of(spec))
    return policy_player(
        spec,
        (context.own_model if spec == "policy" else None) or context.model,
        context.settings.of(spec),
        context.pace,
        adapter=adapter,
        record_logprobs=context.record_logprobs,
    )
