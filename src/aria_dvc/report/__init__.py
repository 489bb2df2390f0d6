"""Tables of a finished run come in; the numbers and pictures of metrics/ go out.

Start with `metrics`, `evaluation` and `intentions` (named by `names`), then `figures` (one a
function); `health` says in words what to doubt, `closing` how a run ends; `intervals` has the
statistics, `study` the comparison over seeds, `study_file` what is compared.
"""
