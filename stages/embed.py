"""Embed the utterances of one game, or take the vectors that came with its log."""

from aria_dvc.files import read_parquet, write_parquet
from aria_dvc.intentions.embedding import embed_texts, unit
from aria_dvc.params import Params
from aria_dvc.pipeline import paths
from aria_dvc.pipeline.progress import progress_bar
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.records.readers import log_vectors
from aria_dvc.records.tables import embeddings_table


def main(params: Params, game: str) -> None:
    turns = read_parquet(paths.turns(game))
    embed = params.embed
    log = params.collect.game(game).log
    vectors = log_vectors(log) if log and embed.use_log_vectors else None
    if vectors is not None:
        vectors = unit(vectors) if embed.normalize else vectors
    else:
        with progress_bar(f"embedding {game}") as progress:
            vectors = embed_texts(
                turns["text"].tolist(),
                embed.source,
                embed.batch_size,
                embed.normalize,
                params.endpoints,
                progress=progress,
            )
    write_parquet(paths.embeddings(game), embeddings_table(turns, vectors))


if __name__ == "__main__":
    run_stage(main)
