"""A fitted credit in a folder, and at work on dialogues that have no outcome yet.

What is kept is what a fit is a function of: the labelled log, its vectors and the settings, as
Parquet, safetensors and JSON. Loading fits again, which is deterministic: any method can be saved,
nothing is pickled, and nothing of a method's insides is tied to a version. The folder holds the
log's texts: share it as you would share the log.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from aria_dvc.aside import written_aside
from aria_dvc.cache.sums import MANIFEST, damage_of, has_manifest, write_manifest
from aria_dvc.credit.methods.base import CreditMethod
from aria_dvc.credit.methods.registry import make_method
from aria_dvc.credit.settings import EMBED_BATCH, EMBEDDER, Aggregate, CreditSettings
from aria_dvc.errors import AriaError
from aria_dvc.files import read_json, read_parquet, write_json, write_parquet
from aria_dvc.intentions.log import Log
from aria_dvc.records.episodes import Episode

ABOUT, TURNS, VECTORS = "fit.json", "turns.parquet", "vectors.safetensors"
FILES = frozenset({ABOUT, TURNS, VECTORS, MANIFEST})
VERSION = 4
SAME = 0.99  # cosine of a text's vectors by one model on two machines or in two batches, at least
REMEMBERED = 20_000  # texts whose vectors stay in memory


def fit(log: Log, settings: CreditSettings, embed: str | None = None) -> Log:
    """The log as the method of the settings needs it: embedded, labelled.

    embed: the embedding model, which must be known to score other texts; the log's own vectors
    do not say theirs.
    """
    from aria_dvc.credit.chain import labelled
    from aria_dvc.intentions.embedding import embed_texts

    method = make_method(settings.aggregate.method, settings.aggregate)
    if method.uses_vectors or method.uses_labels:
        vectors = embed_texts(log.text.tolist(), embed or EMBEDDER, EMBED_BATCH, True, {})
        log = replace(log, vectors=vectors)
    return labelled(log, settings) if method.uses_labels else log


def save_fit(folder: Path, log: Log, settings: CreditSettings, embed: str | None = None) -> None:
    """Write what `load_fit` reads; `log` is what `fit` returned."""
    import pandas as pd
    from safetensors.numpy import save

    assert log.episode_ids is not None
    rows = {
        "episode": log.episode,
        "group": (np.arange(log.episodes) if log.group is None else log.group)[log.episode],
        "role": log.role.astype(object),
        "is_action": log.is_action,
        "text": log.text,
        "label": log.labels,
        "return": log.returns,
        "final": np.full(len(log), np.nan) if log.final is None else log.final,
        "target": np.full(len(log), "", object) if log.target is None else log.target[log.episode],
    }
    about = {
        "version": VERSION,
        "aggregate": asdict(settings.aggregate),
        "seed": settings.seed,
        "embed": (embed or EMBEDDER) if log.vectors.shape[1] else None,
        "game": log.game,
        "roles": log.role_names,
        "acting": sorted(set(log.role[log.actions].tolist())),
        "episodes": log.episodes,
        "actions": len(log.actions),
    }
    with written_aside(folder) as aside:
        aside.mkdir()
        write_json(aside / ABOUT, about)
        write_parquet(aside / TURNS, pd.DataFrame(rows))
        if log.vectors.shape[1]:
            vectors = save({"vectors": np.ascontiguousarray(log.vectors)})
            (aside / VECTORS).write_bytes(vectors)  # readable for all that may read the others
        write_manifest(aside)


def is_fit(folder: Path) -> bool:
    """Whether the folder is one that `save_fit` wrote, damaged or not."""
    try:
        about = read_json(folder / ABOUT)
    except FileNotFoundError:
        return False
    except ValueError:  # no JSON any more
        return has_manifest(folder)
    return isinstance(about, dict) and {"version", "aggregate"} <= set(about)


@dataclass
class FittedCredit:
    """A credit method after its fit.

    about: what fit.json says. known: the fitted log.
    """

    about: dict[str, Any]
    known: Log
    method: CreditMethod
    _vectors: OrderedDict[str, np.ndarray] = field(default_factory=OrderedDict, repr=False)

    @property
    def acting(self) -> list[str]:
        """The roles that can be scored."""
        return list(self.about["acting"])

    def agent(self, named: str | None = None) -> str:
        """The role that an assistant stands for.

        Raises AriaError where there are several and none is named, or there is no such role.
        """
        if named is None and len(self.acting) == 1:
            return self.acting[0]
        if named not in self.acting:
            roles = ", ".join(self.acting)
            what = "agent is missing" if named is None else f"no agent {named}"
            raise AriaError(f"{what}: the fitted roles are {roles}: name one")
        return named

    def renamed(self, episode: Episode, agent: str) -> Episode:
        """The episode in the fitted log's roles: assistant is the agent, user the other one.

        A speaker with a name of its own is whom it speaks as, unless the name is a fitted role.
        """
        fitted = self.about["roles"]
        others = [role for role in fitted if role != agent]
        names = {"assistant": agent, "user": others[0] if len(others) == 1 else "user"}
        for name, role in episode.named.items():
            names.setdefault(name, name if name in fitted else names.get(role, role))
        said = [replace(u, role=names.get(u.role, u.role)) for u in episode.utterances]
        return replace(episode, utterances=said)

    def score(self, chats: Sequence[tuple[str, Episode]]) -> list[list[float | None]]:
        """The credit of every utterance of the agent in each (agent, episode).

        Outcomes are not looked at; an episode without any utterance of its agent has none.
        """
        log, own = self._log(chats)
        if not log.is_action.any():
            return [[] for _ in chats]
        credit = self.method.q(log)
        episode = own[log.episode[log.actions]]
        return [credit[episode == place].tolist() for place in range(len(chats))]

    def _log(self, chats: Sequence[tuple[str, Episode]]) -> tuple[Log, np.ndarray]:
        """The chats as one log, and which of them each of its episodes is."""
        from aria_dvc.credit.labelling import unseen_labels
        from aria_dvc.records.tables import turns_table

        episodes = [
            replace(self.renamed(episode, agent), episode_id=str(number))
            for number, (agent, episode) in enumerate(chats)
        ]
        log = replace(Log.of(turns_table(episodes)), game=self.about["game"])
        agents = np.array([agent for agent, _ in chats], dtype=object)
        assert log.episode_ids is not None
        own = log.episode_ids.astype(np.int64)
        log = replace(log, is_action=log.role == agents[own][log.episode].astype(str))
        if self.about["embed"]:
            log = replace(log, vectors=self._embedded(log.text.tolist()))
        if self.method.uses_labels:
            log = log.with_labels(unseen_labels(self.known, log))
        return log, own

    def _embedded(self, texts: list[str]) -> np.ndarray:
        """(n, d) float32 unit vectors; the last texts' are remembered, nothing is written."""
        new = {text for text in texts if text not in self._vectors}
        self._vectors.update(vectors_of(new, self.about["embed"]))
        found = np.stack([self._vectors[text] for text in texts])
        while len(self._vectors) > REMEMBERED:
            self._vectors.popitem(last=False)
        return found


def vectors_of(texts: Collection[str], source: str) -> dict[str, np.ndarray]:
    """text -> (d,) float32 unit vector, by an encoder in process; nothing is cached.

    Raises AriaError for an unknown source, or vectors that are not finite.
    """
    from aria_dvc.intentions.embedding import unit
    from aria_dvc.models.sentences import load_encoder

    ordered = sorted(set(texts), key=lambda text: (len(text), text))
    found: dict[str, np.ndarray] = {}
    for start in range(0, len(ordered), EMBED_BATCH):
        batch = ordered[start : start + EMBED_BATCH]
        vectors = unit(load_encoder(source)(batch))
        if not np.isfinite(vectors).all():
            raise AriaError(f"{source} returned vectors that are not finite numbers: name another")
        found.update(zip(batch, vectors, strict=True))
    return found


def load_fit(folder: str | Path) -> FittedCredit:
    """Fit again what `save_fit` kept.

    Raises:
        AriaError: the folder holds no fit, one of another version, or one that is damaged; its
            embedding model is not there, or has become another.
    """
    folder = Path(folder)
    if not is_fit(folder):
        raise AriaError(f"{folder}: no fitted credit there: make one by `aria fit LOG --out DIR`")
    if damaged := damage_of(folder / MANIFEST):
        raise AriaError(
            f"{folder / damaged[0]} is missing or not as aria fit wrote it: run aria fit again"
        )
    about = read_json(folder / ABOUT)
    if about["version"] != VERSION:
        raise AriaError(f"{folder}: a fit of version {about['version']}: run aria fit again")
    known = _known(folder, about)
    if about["embed"]:
        _check_encoder(folder, known, about["embed"])
    aggregate = Aggregate(**about["aggregate"])
    method = make_method(aggregate.method, aggregate, about["seed"])
    method.fit(known).q(known.where(known.episode == 0))  # what a first question makes is made
    return FittedCredit(about, known, method)


def _check_encoder(folder: Path, known: Log, source: str) -> None:
    """Refuse a model that embeds otherwise than at the fit: labels would mean nothing."""
    kept, text = known.vectors[0], known.text[0]
    now = vectors_of([text], source)[text]
    if now.shape != kept.shape or float(now @ kept) < SAME:
        raise AriaError(
            f"{folder}: {source} gives other vectors than when this was fitted: bring that model "
            "back, or run aria fit again"
        )


def _known(folder: Path, about: dict[str, Any]) -> Log:
    from safetensors.numpy import load_file

    from aria_dvc.errors import naming

    rows = read_parquet(folder / TURNS)
    vectors = np.zeros((len(rows), 0), np.float32)
    if about["embed"]:
        with naming(folder / VECTORS):
            vectors = load_file(folder / VECTORS)["vectors"]
    if len(vectors) != len(rows):
        raise AriaError(f"{folder}: {len(rows)} turns but {len(vectors)} vectors: fit again")
    episode = rows["episode"].to_numpy(np.int64)
    first = np.flatnonzero(np.r_[True, np.diff(episode) != 0])
    group = rows["group"].to_numpy(np.int64)[first]
    return Log(
        episode,
        rows["role"].to_numpy(dtype=object).astype(str),
        rows["is_action"].to_numpy(bool),
        rows["text"].to_numpy(dtype=object),
        vectors,
        rows["label"].to_numpy(np.int64),
        rows["return"].to_numpy(np.float64),
        str(about["game"]),
        group=None if len(np.unique(group)) == len(group) else group,
        final=rows["final"].to_numpy(np.float64),
        gamma=about["aggregate"]["gamma"],
        target=rows["target"].to_numpy(dtype=object)[first],
    )
