"""Asking an index: how similar, what is related."""

from cocite.query.index import Hit, Index, Score, build, open_index

__all__ = ["Hit", "Index", "Score", "build", "open_index"]
