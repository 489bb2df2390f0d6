"""What the stages wrote of one log, for those who need much of it: each file is read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from aria_dvc.credit.chain import ALL, CURVE_COLUMNS, chosen_labels, read_selection
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import read_cuts
from aria_dvc.pipeline.paths import LogFiles
from aria_dvc.records.stored import read_episodes, read_rewards, read_stage_csv, read_turns
from aria_dvc.records.tables import read_vectors

if TYPE_CHECKING:
    import pandas as pd

    from aria_dvc.intentions.cuts import NestedLabels


@dataclass(frozen=True)
class LogOutputs:
    """The tables of a log (columns: records/schemas.py), checked when they are first asked for.

    They are kept and shared: nobody changes them.
    """

    files: LogFiles

    @cached_property
    def turns(self) -> pd.DataFrame:
        """One row an utterance."""
        return read_turns(self.files.turns)

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """One row an episode and role."""
        return read_episodes(self.files.episodes, self.turns)

    @cached_property
    def rewards(self) -> pd.DataFrame:
        """One row an action."""
        return read_rewards(self.files.rewards, self.turns)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """One row a k and role, and one a k for ALL of them."""
        return read_stage_csv(self.files.k_curve, CURVE_COLUMNS, "select_k")

    @property
    def curve(self) -> pd.DataFrame:
        """One row a k, of all roles."""
        return self.curves[self.curves["role"] == ALL].drop(columns="role")

    @cached_property
    def cuts(self) -> NestedLabels:
        """The intention of every utterance at every k."""
        return read_cuts(self.files.labels, self.turns)

    @cached_property
    def labelled(self) -> Log:
        """The utterances with their vectors, under the intentions of the chosen k."""
        log = Log.of(self.turns, read_vectors(self.files.embeddings, self.turns))
        selection = read_selection(self.files.selected_k, self.cuts, log.role_names)
        return log.with_labels(chosen_labels(log, self.cuts, selection))
