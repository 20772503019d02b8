"""The papers' figures and tables, reproduced: ``docs/reproduction.md``."""
