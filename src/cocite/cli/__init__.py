"""The command line: one file a command group; they parse, call and print."""

COMPLETE = "_COCITE_COMPLETE"
"""The variable by which a shell asks for completions."""

CACHED = "cocite.cached"
"""In ``meta`` of a command's context: the folder of the cache that is asked, and of what it is."""

GIVEN = "cocite.given"
"""In the same place: the words of the command, as they were typed."""
