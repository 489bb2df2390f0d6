"""Tables of a finished run come in; the numbers and pictures of metrics/ go out.

Start with `metrics` (few numbers for a review, all as details) and `figures` (one a function);
`intervals` has the statistics, `study` the comparison over seeds.
"""
