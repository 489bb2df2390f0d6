"""Games, players and settings come in; finished episodes go out, in order and resumable.

Start with `sessions` (what params.yaml asks for), `collection` (many games at once) and `one_game`;
`journal` keeps what is finished, `evaluate` plays all variants of the policy on the same seeds.
"""
