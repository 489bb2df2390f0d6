"""One player on several servers that serve the same model: every game stays with one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aria_dvc.players.base import Reply, Request
from aria_dvc.players.endpoint import EndpointPlayer
from aria_dvc.records.episodes import SampledWith


class DealtPlayer:
    """Deals games to `players`, each to one that has the fewest under way.

    A game stays where it began, since a server keeps the beginning of its dialogue.
    """

    def __init__(self, name: str, players: Sequence[EndpointPlayer]) -> None:
        self.name = name
        self.model = players[0].model
        self.players = players
        self._of: dict[str, int] = {}

    @property
    def sampling(self) -> SampledWith:
        return self.players[0].sampling

    async def reply(self, request: Request) -> Reply:
        place = self._of.get(request.episode_id)
        if place is None:
            place = self._of[request.episode_id] = self._freest()
        return await self.players[place].reply(request)

    def _freest(self) -> int:
        under_way = Counter(self._of.values())
        return min(range(len(self.players)), key=lambda place: under_way[place])

    def finished(self, episode_id: str) -> None:
        place = self._of.pop(episode_id, None)
        if place is not None:
            self.players[place].finished(episode_id)

    async def close(self) -> None:
        for player in self.players:
            await player.close()
