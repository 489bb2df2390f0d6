"""Embed the utterances of one log, or take the vectors that came with it."""

from aria_dvc.intentions.embedding import embed_texts, unit
from aria_dvc.params import Params
from aria_dvc.pipeline.paths import files_of
from aria_dvc.pipeline.stage import run_stage
from aria_dvc.progress import progress_bar
from aria_dvc.records.log_vectors import vectors_of
from aria_dvc.records.schemas import EMBEDDINGS, write_table
from aria_dvc.records.stored import read_turns
from aria_dvc.records.tables import embeddings_table


def main(params: Params, log: str) -> None:
    files, embed = files_of(params, log), params.embed
    turns = read_turns(files.turns)
    vectors = vectors_of(turns, files.log_vectors) if embed.use_log_vectors else None
    if vectors is not None:
        vectors = unit(vectors) if embed.normalize else vectors
    else:
        with progress_bar(f"embedding {log}") as progress:
            vectors = embed_texts(
                turns["embedded"].tolist(),
                embed.source,
                params.pace.embed_batch,
                embed.normalize,
                params.endpoints,
                progress=progress,
            )
    write_table(files.embeddings, embeddings_table(turns, vectors), EMBEDDINGS)


if __name__ == "__main__":
    run_stage(main, "log")
