"""The papers' figures and tables, made anew beside the printed ones: ``docs/reproduction.md``."""
