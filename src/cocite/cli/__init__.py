"""The command line: one file a verb group; they parse, call and print."""
