"""Lists of hits that are also tables, for pandas, polars, Arrow, files, databases and notebooks.

    score  = sum over parts of weight * score of the part
    stderr = sqrt(sum over parts of weight**2 * variance of the part's mean)

Variances add because parts have independent samples. Scores are rounded to 12 decimals before
sorting and comparing. If meetings are rare, few samples determine the standard error, so do not
base a z-test on it. The interval covers walks longer than ``length``; the standard error does not.

Source: Fogaras, Racz, *Scaling link-based similarity search*, section 4, Definition 4.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from cocite.constants import GRAINS, Floats
from cocite.results import NodeTable


class Score(NamedTuple):
    """A similarity, its standard error, and the ends of its confidence interval.

    ``stderr`` is 0 for an exact score, and NaN for a single sample.
    """

    score: float
    stderr: float
    low: float
    high: float

    @property
    def error_bound(self) -> float:
        """Return the largest distance from the score to an end of its interval."""
        return max(self.high - self.score, self.score - self.low)


class _Hit(NamedTuple):
    node: Any
    score: float
    stderr: float
    low: float
    high: float


class Hit(_Hit):
    """A related node with the fields of :class:`Score`.

    ``node`` is text, or the original object if links came from memory. ``title``, the page's title
    or None, is not part of the tuple.
    """

    title: str | None = None

    @property
    def error_bound(self) -> float:
        """Return the largest distance from the score to an end of its interval."""
        return max(self.high - self.score, self.score - self.low)

    def titled(self, title: str | None) -> Hit:
        """Return the hit with a title; "" means none."""
        hit = Hit(*self)
        hit.title = title or None
        return hit


def scores_of(best: Floats) -> tuple[Floats, Floats]:
    """Convert float64[h, 2], grains and variances, to scores and standard errors."""
    return best[:, 0] / GRAINS, np.sqrt(best[:, 1]).round(12)


_SHOWN, _LISTS_SHOWN = 100, 10
"""Maximum rows and lists that a notebook shows; the others are counted."""
_WIDTH, _HEIGHT = 180, 14
_BAR = "#4c8bc9"
_LINKS = ("http://", "https://")


class Hits(list[Hit], NodeTable):
    """Ordered hits: a list, and a table of rank, node, score, stderr, low, high.

    A list is ``complete`` if no other node with a score above 0 passes the filters; it may then be
    shorter than ``k``. ``total`` is the number of hits for unlimited ``k``; None unless
    requested.
    """

    _named = ("node",)

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        certain: int | Callable[[], int] = 0,
        release: Callable[[], None] | None = None,
        complete: bool = False,
        total: int | None = None,
    ) -> None:
        """Store the hits. ``certain`` is :attr:`certain_ranks` or a function that computes it;
        ``release`` frees the samples that this function reads.
        """
        super().__init__(hits)
        self._certain, self._release, self.complete = certain, release, complete
        self.total = total

    @property
    def certain_ranks(self) -> int:
        """The number of leading hits whose ranks are certain: each scores higher than the next,
        with probability ``confidence`` per comparison.

        The last hit is compared with the next, unlisted one, so the number does not depend on
        ``k``. If no next hit exists, the last score itself must be certain: above 0, or at least
        ``min_score``.

        Exact scores, refined scores, scores with ``aggregate="min"``, and products with PageRank
        are compared by intervals: a rank is certain if the hit's interval lies above those of all
        later hits. An exact list without ties is entirely certain. An order by PageRank alone is
        always certain.
        """
        if not isinstance(self._certain, int):
            self._certain, self._release = self._certain(), None
        return self._certain

    def without_samples(self) -> Hits:
        """Free the samples and return this list; :attr:`certain_ranks` reads them again."""
        if self._release is not None:
            self._release()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the index."""
        return Hits, (list(self), self.certain_ranks, None, self.complete, self.total)

    @overload
    def __getitem__(self, place: SupportsIndex) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> Hits: ...

    def __getitem__(self, place: SupportsIndex | slice) -> Hit | Hits:
        """Return a hit; for a slice, another list and table."""
        if not isinstance(place, slice):
            return super().__getitem__(place)
        places = range(len(self))[place]
        leads = places.step > 0
        certain = lambda: sum(i < self.certain_ranks for i in places) if leads else 0  # noqa: E731
        return Hits(super().__getitem__(place), certain)

    def _columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {"rank": list(range(1, len(self) + 1))}
        titles = [*Hit._fields, *(["title"] if any(hit.title for hit in self) else [])]
        return columns | {title: [getattr(h, title) for h in self] for title in titles}

    def __str__(self) -> str:
        """Return a line per hit: rank, score, interval, node, title."""
        rows = [
            (
                str(i),
                f"{hit.score:.4f}",
                _interval(hit),
                f"{hit.node}" + f"  {hit.title}" * bool(hit.title),
            )
            for i, hit in enumerate(self, 1)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join([*map(str.rjust, row[:-1], [w for w in widths if w]), row[-1]])
            for row in ([cell for cell, w in zip(row, widths, strict=True) if w] for row in rows)
        )
        return "\n".join(lines) if rows else "no hits"

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no hits</p>"
        most = max(max(hit.score, hit.high) for hit in self) or 1.0
        rows = "".join(_row(i, hit, most) for i, hit in enumerate(self[:_SHOWN], 1))
        titles = ("", "node", "score", "", "stderr", "interval")
        head = "".join(f'<th style="text-align:left">{title}</th>' for title in titles)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" + _more(
            len(self), _SHOWN, "hits"
        )


class HitLists(list[Hits], NodeTable):
    """Results of separate queries, in the order of ``nodes``: lists of hits, and a table of node,
    rank, related, score, stderr, low, high. If a query has several nodes, ``node`` is a list.
    """

    _named = ("node", "related")

    def __init__(self, nodes: Sequence[Any], lists: Iterable[Hits]) -> None:
        super().__init__(lists)
        self.nodes = list(nodes)

    def _columns(self) -> dict[str, list[Any]]:
        pairs = list(zip(self.nodes, self, strict=True))
        columns: dict[str, list[Any]] = {"node": [node for node, hits in pairs for _ in hits]}
        each = [hits._columns() for hits in self]
        more = ["title"] if any("title" in one for one in each) else []
        for title in ("rank", *Hit._fields, *more):
            called = "related" if title == "node" else title
            columns[called] = [
                value for one in each for value in one.get(title, [None] * len(one["rank"]))
            ]
        return columns

    def __str__(self) -> str:
        """Return each node's name, followed by its hits."""
        pairs = zip(self.nodes, self, strict=True)
        return "\n\n".join(f"{node}\n{hits}" for node, hits in pairs)

    def _repr_html_(self) -> str:
        pairs = list(zip(self.nodes, self, strict=True))[:_LISTS_SHOWN]
        tables = (f"<p><b>{_name(node)}</b></p>{hits._repr_html_()}" for node, hits in pairs)
        return "".join(tables) + _more(len(self), _LISTS_SHOWN, "lists")


def _row(rank: int, hit: Hit, most: float) -> str:
    cells = (
        str(rank),
        _name(hit.node) + (f"<br>{html.escape(hit.title)}" if hit.title else ""),
        f"{hit.score:.4f}",
        _bar(hit, most),
        f"{hit.stderr:.4f}",
        _interval(hit),
    )
    return "<tr>" + "".join(f'<td style="text-align:left">{c}</td>' for c in cells) + "</tr>"


def _interval(hit: Hit) -> str:
    return "" if hit.low == hit.high else f"{hit.low:.4f} to {hit.high:.4f}"


def _name(node: Any) -> str:
    text = html.escape(str(node))
    if isinstance(node, str) and node.startswith(_LINKS):
        return f'<a href="{text}" target="_blank" rel="noopener noreferrer">{text}</a>'
    return text


def _bar(hit: Hit, most: float) -> str:
    score, low, high = (round(_WIDTH * value / most, 1) for value in (hit.score, hit.low, hit.high))
    middle = _HEIGHT / 2
    line = ""
    if _interval(hit):
        ends = f"M{low} 3V{_HEIGHT - 3}M{high} 3V{_HEIGHT - 3}M{low} {middle}H{high}"
        line = f'<path d="{ends}" stroke="currentColor" stroke-width="1.2" fill="none"/>'
    label = ", ".join(filter(None, (f"{hit.score:.4f}", _interval(hit))))
    return (
        f'<svg width="{_WIDTH + 2}" height="{_HEIGHT}" role="img" aria-label="{label}">'
        f'<rect x="0" y="2" width="{score}" height="{_HEIGHT - 4}" fill="{_BAR}"/>{line}</svg>'
    )


def _more(total: int, shown: int, what: str) -> str:
    return f"<p>and {total - shown:,} more {what}</p>" if total > shown else ""
