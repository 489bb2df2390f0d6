"""Logs of any layout come in; checked episodes, Parquet tables and published logs go out.

`readers.read_log` reads, `tables` lays out one row an utterance, `published.write_log` writes;
`schemas` says what every table holds. Start with `episodes`: what an episode is.
"""
