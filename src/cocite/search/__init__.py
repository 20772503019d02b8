"""Similarities and related nodes, from an index. Code that builds indexes loads on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cocite.search.hits import Hit, Score
from cocite.search.index import Index, open_index

if TYPE_CHECKING:
    from cocite.search.builds import build, merge, refresh

__all__ = ["Hit", "Index", "Score", "build", "merge", "open_index", "refresh"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cocite.search import builds

    globals()[name] = found = getattr(builds, name)
    return found
