"""The command line: one module per group of commands."""

COMPLETE = "_COCITE_COMPLETE"
"""Environment variable by which a shell requests completions."""

CACHED = "cocite.cached"
"""Key in a context's ``meta`` for the cache folder in use and its source."""

GIVEN = "cocite.given"
"""Key in ``meta`` for the words typed after ``cocite``."""
