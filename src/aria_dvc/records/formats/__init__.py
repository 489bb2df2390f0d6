"""One file a format: how an entry of it becomes an episode.

`base` has what they share, `openai` reads one chat message, `layouts` (above) is the table of all.
"""
