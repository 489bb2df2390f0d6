"""Gather the numbers, draw the pictures, write the page; the only stage that writes into Git."""

from aria_dvc.files import written_aside
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.page import page_of, write_page
from aria_dvc.pipeline.report import (
    Run,
    write_details,
    write_intentions,
    write_metrics,
    write_plots,
)
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.report.figures import Pictures


def main(params: Params) -> None:
    run = Run(params)
    page = page_of(run)
    with written_aside(paths.PLOTS) as aside, written_aside(paths.REPORT) as report:
        pictures = Pictures(aside / "pictures", report / "pictures", page.seed, page.run)
        write_plots(run, aside, pictures)
        write_page(page, report / paths.PAGE)
    with written_aside(paths.DETAILS) as aside:
        write_details(run, aside)
    with written_aside(paths.INTENTIONS) as aside:
        write_intentions(run, aside)
    write_metrics(run, paths.METRICS)
    print("\n".join(run.closing), flush=True)


if __name__ == "__main__":
    run_stage(main)
