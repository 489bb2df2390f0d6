"""What may be computed again: journals of games, checkpoints and results of trainings, vectors.

Everything carries a checksum, has one writer at a time, and goes when it is old and room is needed.
"""
