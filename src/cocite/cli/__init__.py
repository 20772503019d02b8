"""The command line: one file a verb group; they parse, call and print."""

COMPLETE = "_COCITE_COMPLETE"
"""The variable by which a shell asks for completions."""
