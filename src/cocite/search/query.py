"""What a question for related nodes asks, checked: which candidates, which of these, what first.

Orders of a list:

    score             the most similar first
    score*pagerank    the largest product first
    pagerank          the most important first

of the ``candidates`` that score best. For an order by importance, similarity only says what is
related at all, so fewer samples suffice (000). Ties keep the order of scores.

Source: Fogaras, Racz, *A scalable randomized method to compute link-based similarity rank on the
web graph*, 4.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.options.query import DEFAULT_ORDER, ORDERS, QueryOptions

if TYPE_CHECKING:
    from cocite.search.refine.candidates import Level


DEFAULT_DEADLINE = 0.2
"""Seconds that remote samples have to answer."""
_LEAST, _TIMES = 100, 4
RanksLike = str | os.PathLike[str] | NDArray[np.float64] | None


def checked_option(name: str, value: Any) -> Any:
    """Return the value of an option of questions; raise :class:`UsageError` if there is no such."""
    return QueryOptions.declared()[name].checked(value)


@dataclass(frozen=True)
class Query:
    """A checked question for related nodes. Its filter depends on the nodes and is apart.

    Of the best ``candidates`` by score those ``looked`` at are the ``k`` that are shown, and what
    may belong among them. ``level`` says how far to refine; None for not at all.
    """

    k: int
    options: QueryOptions
    candidates: int
    looked: slice
    level: Level | None = None

    @classmethod
    def checked(cls, k: int, options: QueryOptions, level: Level | None = None) -> Query:
        """Raise :class:`UsageError` for a value that is not allowed.

        For an order by PageRank max(100, 4 * (k + offset)) are candidates by default.
        """
        k = checked_option("k", k)
        end = options.offset + k
        if options.order == DEFAULT_ORDER:
            for name in ("candidates", "ranks"):
                if getattr(options, name) is not None:
                    raise UsageError(
                        f"{name} go with an order by PageRank: choose {' or '.join(ORDERS[1:])}, "
                        f"or leave {name} out"
                    )
            return cls(k, options, end + 1, slice(options.offset, end + 1), level)
        # A candidate that is not shown may have the larger product.
        last = end if options.order == "pagerank" else None
        candidates = options.candidates or max(_LEAST, _TIMES * end)
        return cls(k, options, candidates, slice(options.offset, last), level)

    @property
    def levels(self) -> list[float]:
        """The confidences of the intervals of an answer: its own, then that of the filter."""
        least = self.options.min_confidence
        return [self.options.confidence, *([] if least is None else [least])]
