"""Play the games of one category with one variant of the policy against fixed opponents."""

from aria_dvc.arena.evaluate import evaluate_category
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.schemas import EVALUATION, write_table
from aria_dvc.settings.training import VANILLA


def main(params: Params, variant: str, category: str) -> None:
    trained = paths.online if variant in params.online.variants else paths.policy
    adapter = None if variant == VANILLA else trained(variant, category)
    table = evaluate_category(params, variant, category, adapter)
    write_table(paths.evaluation(variant, category), table, EVALUATION)


if __name__ == "__main__":
    run_stage(main, "variant", "category")
