"""Intentions beside the negotiation strategies that CaSiNo's publishers annotated.

    python benchmarks/strategies.py casino.json [--ks 5 10 20 50 100]

Of utterances with several strategies the first counts. Buttons and dialogues without annotations
are clustered with the others but not judged.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from aria_dvc.credit.logs import embedded, read_logs
from aria_dvc.credit.settings import EMBEDDER, Cluster
from aria_dvc.intentions.log import Log
from aria_dvc.intentions.space import find_intentions
from aria_dvc.report.agreement import agreement


def strategies(path: Path, log: Log) -> np.ndarray:
    """(n,) str objects: the first annotated strategy of every utterance, "" where there is none."""
    dialogues = json.loads(path.read_text("utf-8"))
    assert len(dialogues) == log.episodes
    given = {
        (number, text.strip()): names.split(",")[0]
        for number, dialogue in enumerate(dialogues)
        for text, names in dialogue.get("annotations", [])
    }
    pairs = zip(log.episode.tolist(), log.text, strict=True)
    return np.array([given.get((e, str(text).strip()), "") for e, text in pairs], dtype=object)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--ks", type=int, nargs="+", default=[5, 10, 20, 50, 100])
    given = parser.parse_args()
    log = embedded([read_logs([given.log], gamma=0.95)], EMBEDDER)[0]
    names = strategies(given.log, log)
    judged = names != ""
    cuts = find_intentions(log, Cluster(k_max=max(given.ks))).cuts
    print("| k | utterances | classes | purity (largest class) | NMI | AMI | AMI of the own turn |")
    print("|---|---|---|---|---|---|---|")
    turn = agreement(log.turn[judged], names[judged])
    for k in given.ks:
        found = agreement(cuts.at(k)[judged], names[judged])
        print(
            f"| {k} | {found['utterances']} | {found['classes']} | {found['purity']:.3f} "
            f"({found['largest_class']:.3f}) | {found['nmi']:.3f} | {found['ami']:.3f} "
            f"| {turn['ami']:.3f} |"
        )


if __name__ == "__main__":
    main()
