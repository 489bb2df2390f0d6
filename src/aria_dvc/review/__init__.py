"""What a branch changes, as one short comment for its pull request: `aria review BASE`.

`commits` reads files of two commits; `estimates` (figures with intervals), `locks` (stages that
ran) and `freshness` (what `dvc repro` would run) say what differs; `comment` makes Markdown of it.
"""
