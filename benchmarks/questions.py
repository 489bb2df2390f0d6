"""How long the embedded oracles take for all targets, as the credit method `belief` asks them.

    python benchmarks/questions.py LOG [--count 1000] [--seed 0]

LOG: games of Guess My City or Twenty Questions. Some of its distinct questions are drawn, and
each is put to the oracles of all targets in turn; the tables are read before the clock runs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from aria_dvc.credit.logs import read_logs
from aria_dvc.credit.methods.answers import asked_of_all, knowledge_of
from aria_dvc.credit.settings import Aggregate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    log = read_logs([args.log], Aggregate.gamma)
    asked = np.unique(log.text[log.actions])
    asked = np.random.default_rng(args.seed).permutation(asked)[: args.count]
    asked_of_all(log.game, np.array(knowledge_of(log.game).questions()))
    wall, cpu = time.perf_counter(), time.process_time()
    answers, _ = asked_of_all(log.game, asked)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    questions, targets = answers.shape
    print(
        f"{questions} questions x {targets} targets: {wall:.1f} s, {cpu:.1f} s of it on the "
        f"processor; yes or no to {(answers != 0).mean():.3f}"
    )


if __name__ == "__main__":
    main()
