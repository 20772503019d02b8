"""The command line: one file a verb group; they parse, call and print."""

COMPLETE = "_COCITE_COMPLETE"
"""The variable by which a shell asks for completions."""

KEPT = "cocite.kept"
"""In ``meta`` of a verb's context: the folder that is asked in the place of a file of links."""

GIVEN = "cocite.given"
"""In the same place: the words of the command, as they were typed."""
