"""Asking an index: how similar, what is related."""

from cocite.search.hits import Hit, Score
from cocite.search.index import Index
from cocite.search.open import build, merge, open_index, refresh

__all__ = ["Hit", "Index", "Score", "build", "merge", "open_index", "refresh"]
