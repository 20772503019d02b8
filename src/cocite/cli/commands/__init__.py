"""The commands: parse options, call the library, print."""
