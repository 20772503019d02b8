"""What a question for related nodes asks: its defaults, checks and order.

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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.options.query import AGGREGATES, DEFAULT_ORDER, ORDERS, QueryOptions
from cocite.search.intervals import checked_confidence

if TYPE_CHECKING:
    from cocite.search.refine.candidates import Level


DEFAULT_DEADLINE = 0.2
"""Seconds that remote samples have to answer."""
_LEAST, _TIMES = 100, 4
RanksLike = str | os.PathLike[str] | NDArray[np.float64] | None


def check_number(name: str, value: object, least: int) -> None:
    """Raise :class:`UsageError` for what is no whole number of ``least`` or more."""
    if not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name} is {value!r}; it is a whole number, {least} or more")


def checked_aggregate(aggregate: str) -> None:
    """Raise :class:`UsageError` for an unknown way to combine several nodes."""
    if aggregate not in AGGREGATES:
        raise UsageError(f"aggregate is {aggregate!r}; it is " + " or ".join(AGGREGATES))


@dataclass(slots=True)
class Query:
    """A checked question for related nodes. Its filter depends on the nodes and is apart."""

    min_confidence: float | None
    confidence: float
    interval: str
    aggregate: str
    order: Order
    ranks: RanksLike
    level: Level | None = None
    """How far to refine; None for not at all."""

    @classmethod
    def checked(cls, k: int, options: QueryOptions) -> Query:
        """Raise :class:`UsageError` for a value that is not allowed."""
        check_number("k", k, 1)
        if not options.min_score < float("inf"):
            raise UsageError(f"min_score is {options.min_score!r}; it is a number, 0 or more")
        checked_confidence(options.confidence, options.interval)
        if options.min_confidence is not None:
            checked_confidence(options.min_confidence, options.interval, "min_confidence")
        order = Order.checked(
            options.order, options.candidates, options.ranks, int(k), options.offset
        )
        return cls(
            options.min_confidence,
            options.confidence,
            options.interval,
            options.aggregate,
            order,
            options.ranks,
        )

    @property
    def levels(self) -> list[float]:
        """The confidences of the intervals of an answer: its own, then that of the filter."""
        confidences = [self.confidence]
        return confidences if self.min_confidence is None else [*confidences, self.min_confidence]


@dataclass(frozen=True)
class Order:
    """How a list is ordered: ``by`` what, out of how many ``candidates``, and which of these are
    looked at: the ``k`` that are shown, and what may belong among them.
    """

    by: str
    candidates: int
    k: int
    looked: slice

    @classmethod
    def checked(
        cls, by: str, candidates: int | None, ranks: RanksLike, k: int, offset: int
    ) -> Order:
        """Raises :class:`UsageError`. By default max(100, 4 * (k + offset)) are candidates."""
        if by not in ORDERS:
            raise UsageError(f"order is {by!r}; it is " + " or ".join(ORDERS))
        end = offset + k
        if by == DEFAULT_ORDER:
            for name, value in (("candidates", candidates), ("ranks", ranks)):
                if value is not None:
                    raise UsageError(
                        f"{name} go with an order by PageRank: choose {' or '.join(ORDERS[1:])}, "
                        f"or leave {name} out"
                    )
            return cls(by, end + 1, k, slice(offset, end + 1))
        if candidates is not None:
            check_number("candidates", candidates, 1)
        found = max(_LEAST, _TIMES * end) if candidates is None else int(candidates)
        # A candidate that is not shown may have the larger product.
        return cls(by, found, k, slice(offset, end if by == "pagerank" else None))
