"""Gather the numbers, draw the pictures, write the page; the only stage that writes into Git."""

from aria_dvc.files import written_aside
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.page import write_page
from aria_dvc.pipeline.report import (
    Run,
    write_details,
    write_intentions,
    write_metrics,
    write_plots,
)
from aria_dvc.pipeline.stage import run_stage


def main(params: Params) -> None:
    run = Run(params)
    with written_aside(paths.PLOTS) as aside:
        write_plots(run, aside)
    with written_aside(paths.DETAILS) as aside:
        write_details(run, aside)
    with written_aside(paths.INTENTIONS) as aside:
        write_intentions(run, aside)
    with written_aside(paths.REPORT) as aside:
        write_page(run, aside / paths.PAGE)
    write_metrics(run, paths.METRICS)
    print("\n".join(run.closing), flush=True)


if __name__ == "__main__":
    run_stage(main)
