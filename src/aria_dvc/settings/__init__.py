"""The blocks of params.yaml: every field typed, bounded and described, once.

The comment of a line in params.yaml is the description here; a test compares the two. What has a
default may be left out of the file.
"""
