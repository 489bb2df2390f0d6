"""Fingerprint the code of every stage, so that only a change of what it does reruns it."""

from pathlib import Path

from aria_dvc.files import write_json, written_aside
from aria_dvc.fingerprints import stage_fingerprint
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage


def main(params: Params) -> None:
    with written_aside(paths.CODE) as aside:
        for script in sorted(Path("stages").glob("*.py")):
            if script.name != Path(__file__).name:
                write_json(aside / f"{script.stem}.json", stage_fingerprint(script))


if __name__ == "__main__":
    run_stage(main)
