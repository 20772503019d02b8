"""The commands: parse options, call, print; each module loads when its command runs."""
