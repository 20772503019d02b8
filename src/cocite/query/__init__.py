"""Asking an index: how similar, what is related."""

from cocite.query.batch.run import related_all
from cocite.query.building import build, open_graph, open_index, refresh
from cocite.query.index import Index
from cocite.query.scores import Hit, Score
from cocite.query.why import Reason, Why

__all__ = [
    "Hit",
    "Index",
    "Reason",
    "Score",
    "Why",
    "build",
    "open_graph",
    "open_index",
    "refresh",
    "related_all",
]
