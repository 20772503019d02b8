"""An answer as a page shows it: rows with bars, the map, fields to ask otherwise.

What templates are given is plain: texts, numbers, addresses of ours. Bars are in per cent of the
best end of an interval on the page, so that bars of one page can be compared with each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from cocite.deadline import limited
from cocite.errors import TookTooLong
from cocite.graph.links import DIRECTIONS
from cocite.query import Index
from cocite.query.documents import RelatedDocument
from cocite.service.pages import around
from cocite.service.pages.address import State, readable
from cocite.service.parameters import SETTINGS, Parameter

__all__ = [
    "Field",
    "Row",
    "digits_of",
    "fields_of",
    "foreign",
    "how",
    "map_of",
    "own_settings",
    "percent",
    "rows_of",
]

_LABEL = 22
"""Signs of a label on the map."""
_SAME = 8
"""Signs that are left out of all labels, if they begin with as many."""
_SHOWN = ("k", "min_score", "prefix", "exclude_prefix", "confidence", "other_sites", "refine")
_WORDS = {
    "k": "how many",
    "min_score": "least score",
    "prefix": "only names that begin with",
    "exclude_prefix": "no names that begin with",
    "confidence": "confidence of intervals",
    "other_sites": "other sites only",
    "refine": "refined (more exact, slower)",
}


@dataclass(frozen=True)
class Row:
    """A hit. ``score``, ``low``, ``high`` are shown; those with a ``bar`` are in per cent."""

    rank: int
    node: str
    title: str | None
    score: str
    low: str
    high: str
    bar: float
    bar_low: float
    bar_high: float
    exact: bool
    walk: str
    why: str
    add: str | None
    seen: bool
    """Whether its reasons are shown."""


@dataclass(frozen=True)
class Field:
    """A field of the form: ``kind`` is number, text, yes, or choice."""

    name: str
    label: str
    help: str
    kind: str
    value: str
    default: str
    choices: tuple[str, ...] = ()
    least: str = ""
    most: str = ""


def own_settings(index: Index) -> dict[str, Any]:
    """What the index's measures take when asked, and what they take unless told otherwise."""
    takes = dict.fromkeys(s.name for part in index.stored.parts for s in part.measure.ask)
    given = index.stored.ask_settings({}).to_json()
    return {name: given.get(name, "") for name in takes}


def fields_of(index: Index, takes: Sequence[Parameter], state: State) -> list[Field]:
    """The fields of the form, the index's own settings first."""
    own = own_settings(index)
    known = {parameter.name: parameter for parameter in takes}
    found = []
    for name in (*own, *_SHOWN):
        taken = known[name]
        default = own.get(name, taken.default)
        kind = {bool: "yes", str: "text"}.get(taken.kind, "number")
        choices = taken.choices
        if name in own and taken.kind is bool:
            kind, choices = "choice", ("true", "false")
        elif choices:
            kind = "choice"
        found.append(
            Field(
                name,
                _WORDS.get(name, name),
                taken.text.partition(" For indexes of:")[0],
                kind,
                state.get(name) or "",
                ""
                if default is None
                else str(default).lower()
                if kind == "choice"
                else f"{default}",
                choices,
                "" if math.isinf(taken.low) else f"{taken.low:g}",
                "" if math.isinf(taken.high) else f"{taken.high:g}",
            )
        )
    return found


def foreign(index: Index, state: State) -> list[str]:
    """Settings in the address that are those of other measures."""
    own = own_settings(index)
    return [name for name, _ in state.others if name in SETTINGS and name not in own]


def rows_of(document: RelatedDocument, state: State, most: int) -> list[Row]:
    """A row a hit; ``most`` nodes are asked together at most."""
    ends = [max(hit.score, hit.high) for hit in document.hits if math.isfinite(hit.high)]
    best = max([*ends, *(hit.score for hit in document.hits)], default=0.0) or 1.0
    digits = digits_of(best)
    found = []
    for rank, hit in enumerate(document.hits, document.offset + 1):
        node = str(hit.node)
        known = math.isfinite(hit.low) and math.isfinite(hit.high)
        low, high = (hit.low, hit.high) if known else (hit.score, hit.score)
        found.append(
            Row(
                rank,
                node,
                hit.title,
                f"{hit.score:.{digits}f}",
                f"{low:.{digits}f}" if known else "?",
                f"{high:.{digits}f}" if known else "?",
                percent(hit.score / best),
                percent(low / best),
                percent(high / best),
                low == high,
                state.asking(node).href(),
                state.reasons(node).href() + "#why",
                state.asking(*state.nodes, node).href() if len(state.nodes) < most else None,
                node == state.why,
            )
        )
    return found


def map_of(
    index: Index,
    document: RelatedDocument,
    state: State,
    settings: Mapping[str, Any],
    lines: bool,
    most: float,
) -> dict[str, Any] | None:
    """The map, with ``lines`` if they take no more than ``most`` seconds. None if there is nothing
    on it.
    """
    hits = list(document.hits[: around.MOST])
    if not hits:
        return None
    names = [str(hit.node) for hit in hits]
    near = np.zeros((len(hits), len(hits)))
    if lines:
        try:
            with limited(most):
                near = around.closeness(index, names, settings)
        except TookTooLong:
            lines = False
    called = " + ".join(map(str, document.nodes))
    if document.titles is not None and len(document.nodes) == 1:
        called = document.titles[0] or called
    middle = readable(called, _LABEL)
    labels = _labels([hit.title or str(hit.node) for hit in hits])
    spots = around.drawn(hits, labels, near, document.offset + 1, middle)
    return {
        "inner": around.INNER,
        "outer": around.OUTER,
        "wide": around.WIDTH,
        "tall": around.HEIGHT,
        "spots": [
            {"spot": spot, "href": state.asking(name).href(), "name": hit.title or name}
            for spot, name, hit in zip(spots, names, hits, strict=True)
        ],
        "lines": around.lines_of(spots, near),
        "below": around.BELOW,
        "middle": middle,
        "left_out": not lines and len(hits) > 1,
        "first": len(hits),
        "all": len(document.hits),
    }


def _labels(names: list[str]) -> list[str]:
    """Names in short, without what all of them begin with, if that is much."""
    pairs = zip(min(names), max(names), strict=False)
    same = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    while same and (same[-1].isalnum() or same in names):
        same = same[:-1]
    if len(same) < _SAME or len(names) == 1:
        return [readable(name, _LABEL) for name in names]
    return [readable(f"…{name[len(same) :]}", _LABEL) for name in names]


def how(document: RelatedDocument, samples: int | None) -> list[str]:
    """What answered, in a few words each."""
    found = [document.measure]
    if document.direction in DIRECTIONS:
        found.append(DIRECTIONS[document.direction])
    if samples is not None:
        found.append(f"{samples:,} samples")
    if document.refined:
        found.append("refined")
    return found


def digits_of(best: float) -> int:
    """Decimals that leave three digits of the best score."""
    return 3 if best <= 0 else min(12, max(3, 2 - math.floor(math.log10(best))))


def percent(share: float) -> float:
    """A share as the width of a bar, from 0 to 100."""
    return round(100 * min(1.0, max(0.0, share)), 1)
