"""Answers: a document for a question to an index, as the command line gives it. Nothing here knows
of HTTP, of threads or of load.

Names are those of a ``side`` of what is bipartite, if one is said, as with ``--side``.

A name that is no node is told before anything is computed, with those like it that are found
without a pass over all names: strangers ask, and a pass takes as long as hundreds of answers.

Cost: that of the documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cocite.documents import Document
from cocite.errors import UnknownNode, UsageError
from cocite.query import Index
from cocite.query.documents import RelatedDocument, SimilarityDocument
from cocite.query.why_documents import WhyDocument, WhyTogetherDocument
from cocite.service.documents import CompleteDocument
from cocite.service.parameters import SETTINGS

__all__ = ["ANSWERS", "Values", "checked_settings", "heavy", "known", "sampled", "stored"]

Values = Mapping[str, Any]
"""What a question gives, by name (``parameters.py``)."""

_FILTERS = ("min_score", "min_confidence", "prefix", "exclude_prefix", "among", "other_sites")
_HOW = ("together", "offset", "refine", "target_error", "confidence", "bound", "order")
_LEVEL = ("refine", "target_error", "confidence", "bound")


def sampled(verb: str) -> bool:
    """Whether the answer of a verb has intervals, and may be of fewer samples. Reasons are always
    those of all samples, so that their shares are the same under load.
    """
    return verb in ("related", "similarity", "batch")


def heavy(asked: Values) -> bool:
    """Whether a question takes much beside its samples, so that fewer of these would not help: it
    is answered from all of them, by an index that keeps what it makes for such questions.
    """
    return bool(asked.get("refine")) or "target_error" in asked or "order" in asked


def known(index: Index, names: Iterable[str]) -> None:
    """Raise :class:`UnknownNode` for the first name that no node has."""
    nodes = index.nodes
    for name in names:
        if nodes.find(name) is None:
            raise UnknownNode(name, nodes.nearest(name, quick=True), nodes.note)


def stored(index: Index, asked: Values, names: Sequence[str]) -> list[str]:
    """Names as the index has them: those of a side, if the question says one. Raises
    :class:`UsageError`.
    """
    side = asked.get("side")
    if side is None:
        return list(names)
    sides = index.nodes.sides
    if sides is None:
        raise UsageError("the index is not bipartite: leave side out")
    return [sides.name(side, name) for name in names]


def checked_settings(index: Index, asked: Values) -> None:
    """Raise :class:`UsageError` for settings that the index does not take."""
    index.stored.ask_settings(_some(asked, SETTINGS))


def _related(index: Index, asked: Values) -> Document:
    nodes = stored(index, asked, asked["node"])
    known(index, (*nodes, *asked.get("among", ())))
    return RelatedDocument.of(
        index,
        nodes,
        **_some(asked, ("k", *_HOW, "candidates")),
        filters=_some(asked, _FILTERS),
        **_some(asked, SETTINGS),
    )


def _similarity(index: Index, asked: Values) -> Document:
    a, b = stored(index, asked, (asked["a"], asked["b"]))
    known(index, (a, b))
    return SimilarityDocument.of(index, a, b, **_some(asked, (*_LEVEL, *SETTINGS)))


def _why(index: Index, asked: Values) -> Document:
    *nodes, b = stored(index, asked, (*dict.fromkeys(asked["a"]), asked["b"]))
    known(index, (*nodes, b))
    chosen = _some(asked, ("k", *SETTINGS))
    if len(nodes) == 1:
        if "together" in asked:
            raise UsageError("together is of several nodes; name more with a, or leave it out")
        return WhyDocument.of(index, nodes[0], b, **chosen)
    return WhyTogetherDocument.of(index, nodes, b, **_some(asked, ("together",)), **chosen)


def _complete(index: Index, asked: Values) -> Document:
    return CompleteDocument.of(index, asked["text"], **_some(asked, ("k", "within", "side")))


def _some(asked: Values, names: Iterable[str]) -> dict[str, Any]:
    return {name: asked[name] for name in names if name in asked}


ANSWERS: dict[str, Callable[[Index, Values], Document]] = {
    "related": _related,
    "similarity": _similarity,
    "why": _why,
    "complete": _complete,
}
"""A verb, and what answers it: raises what the index raises (:class:`CociteError`)."""
