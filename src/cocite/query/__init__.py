"""Asking an index: how similar, what is related."""

from cocite.query.building import build, merge, open_graph, open_index, refresh
from cocite.query.index import Index
from cocite.query.scores import Hit, Score

__all__ = [
    "Hit",
    "Index",
    "Score",
    "build",
    "merge",
    "open_graph",
    "open_index",
    "refresh",
]
