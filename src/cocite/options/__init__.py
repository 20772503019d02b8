"""What may be chosen, written once: a module of options for each kind of work."""
