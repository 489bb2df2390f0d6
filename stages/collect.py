"""Play the games of one log with the current model, or take the user's own log."""

from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.episodes import Episode
from aria_dvc.records.log_vectors import log_vectors_table
from aria_dvc.records.published import write_log
from aria_dvc.records.readers import iter_log
from aria_dvc.records.reading import Reading
from aria_dvc.records.schemas import LOG_VECTORS, write_table


def main(params: Params, log: str) -> None:
    episodes = play(params, log) if params.logs[log].is_played else read_own(params, log)
    files = files_of(params, log)
    write_log(files.raw, episodes)
    write_table(files.log_vectors, log_vectors_table(episodes), LOG_VECTORS)


def play(params: Params, log: str) -> list[Episode]:
    from aria_dvc.arena.sessions import collect_session
    from aria_dvc.arena.side_by_side import play_side_by_side

    (episodes,) = play_side_by_side(params, [collect_session(params, log)], f"collect {log}")
    return episodes


def read_own(params: Params, log: str) -> list[Episode]:
    own = params.logs[log]
    how = Reading(
        log, agents=own.agents, group_by=own.group_by, outcome=own.outcome, moves=own.moves
    )
    return list(iter_log(own.source, how))


if __name__ == "__main__":
    run_stage(main, "log")
