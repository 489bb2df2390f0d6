"""Logs of any layout come in; checked episodes, Parquet tables and published logs go out.

`readers.iter_log` reads: `sources` gives entries, `layouts` (a file each in formats/) episodes;
`tables` lays out one row an utterance, `published.write_log` writes, `schemas` describes tables.
"""
