"""The command line: one file per group of commands, which parse, call and print."""

COMPLETE = "_COCITE_COMPLETE"
"""Environment variable by which a shell requests completions."""

CACHED = "cocite.cached"
"""Key in ``meta`` of a command's context: the folder of the cache in use, and its source."""

GIVEN = "cocite.given"
"""Key in ``meta``: the words of the command, as typed."""
