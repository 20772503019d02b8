"""The command line: one module per group of commands."""

COMPLETE = "_COCITE_COMPLETE"
"""Environment variable with which a shell requests completions."""

CACHED = "cocite.cached"
"""Key in a context's ``meta``: the cache folder in use, and its source."""

GIVEN = "cocite.given"
"""Key in ``meta``: the words typed after ``cocite``."""
