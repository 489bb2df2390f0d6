"""Play one game with the current policy, or take the user's own log of it."""

from aria_dvc.arena.published import write_log
from aria_dvc.arena.sessions import collect_session
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.own_logs import watch
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.readers import read_log


def main(params: Params, game: str) -> None:
    log = params.collect.game(game).log
    if log is None:
        session = collect_session(params, game, paths.BASE_MODEL)
        watch(paths.logs(game), None, session.adapter)
        episodes = session.play(params)
    else:
        watch(paths.logs(game), log)
        episodes = read_log(log, game)
    write_log(paths.raw(game), episodes)


if __name__ == "__main__":
    run_stage(main)
