"""The glue between params.yaml, the library and the scripts in stages/.

Start with `stage` (how a script runs) and `paths` (where each one writes). `frames`, `online` and
`report` hand the outputs of earlier stages on; `knobs` writes the comments of params.yaml.
"""
