"""``python -m cocite``."""

from cocite.cli.main import run

run()
