"""One self-contained page of a run: tables come in, blocks of numbers and texts, HTML goes out.

`log_block` (one a log) and `results` make the blocks; `document` puts them, plotly.js and the files
of data/ into one file. Nothing of it is fetched, and no text of a log is read as HTML.
"""
