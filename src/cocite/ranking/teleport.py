"""Where the surfer goes who does not follow a link: the personalisation, as it is given and told.

Given are names with weights, names alone, or a vector; the weights of a node that is named twice
add up. Told is the teleport, float64[nodes] of sum 1. By default it is the same for all nodes.

A file of weights is read when the teleport is made, row by row, so it may be as large as the graph.
Source: Haveliwala, *Efficient computation of PageRank*, 2.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np

from cocite.errors import InputError, UsageError
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.graph.readers import read_columns
from cocite.ranking.lumping import Lumped
from cocite.ranking.vectors import Vector, divide, total

__all__ = ["Personalization", "Weighted", "WeightsFile", "teleport", "toward_of"]

_LOOKED_UP = 1 << 14
"""Names looked up until their memory is given back."""


class Weighted(Protocol):
    """Names of nodes with weights; a mapping is one."""

    def items(self) -> Iterable[tuple[str, float]]:
        """Every name and its weight."""


Personalization = Mapping[str, float] | Weighted | Iterable[str] | Vector


class WeightsFile:
    """Rows of a node and its weight: text (tabs, or commas in ``.csv``) or Parquet, as ``rank -o``
    writes them. A first row whose weight is no number is a title.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.path = Path(file)

    def __repr__(self) -> str:
        return f"WeightsFile({str(self.path)!r})"

    def items(self) -> Iterator[tuple[str, float]]:
        """Every name and its weight; raises :class:`InputError`."""
        for row, (name, text) in enumerate(read_columns(self.path)):
            weight = _weight(text)
            if weight is not None:
                yield name, weight
            elif row > 0:
                raise InputError(
                    f"{self.path}: the weight of {name!r} is {text!r}; it is a finite number, 0 or "
                    "more"
                )


class _Toward:
    """Pairs, and files of weights beside them."""

    def __init__(self, pairs: Sequence[tuple[str, float]], files: Sequence[WeightsFile]) -> None:
        self._pairs, self._files = pairs, files

    def items(self) -> Iterator[tuple[str, float]]:
        """Every name and its weight."""
        return chain(self._pairs, *(file.items() for file in self._files))


def toward_of(
    graph: Graph, texts: Sequence[str], files: Sequence[str | os.PathLike[str]] = ()
) -> Weighted | None:
    """The personalisation of texts that each name a node, or a node and behind ``=`` its weight,
    and of files of weights. None if there are neither.

    A text that is a node's name is that node, whatever it ends in.
    """
    if not texts and not files:
        return None
    return _Toward([_pair(graph.names, text) for text in texts], [WeightsFile(f) for f in files])


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 <= weight < math.inf else None


def _pair(names: Names, text: str) -> tuple[str, float]:
    name, equals, end = text.rpartition("=")
    weight = _weight(end)
    if equals and weight is not None and text not in names:
        return name, weight
    return text, 1.0


def teleport(lumped: Lumped, personalization: Personalization | None) -> Vector:
    """float64[nodes], sum 1, over the nodes that are not gone.

    Raises :class:`UsageError`, :class:`~cocite.errors.UnknownNode`, :class:`InputError`.
    """
    from cocite.kernels import rank

    where = lumped.vector()
    fine = True
    if isinstance(personalization, str):
        raise UsageError("personalization is one text; give a list of names, or a mapping")
    if isinstance(personalization, np.ndarray):
        fine = personalization.shape == where.shape
    elif personalization is not None:
        names = lumped.graph.names
        for number, (name, weight) in enumerate(_pairs(personalization), 1):
            where[names.id(name)] += weight
            if number % _LOOKED_UP == 0:
                names.forget()
                lumped.rest(where)
    for part in lumped.pieces(lumped.degrees, where) if fine else ():
        piece = where[part]
        if personalization is None:
            piece[:] = 1
        elif isinstance(personalization, np.ndarray):
            piece[:] = personalization[part]
        fine = fine and bool(np.isfinite(piece).all()) and bool((piece >= 0).all())
        piece[lumped.degrees[part] == rank.GONE] = 0
    whole = total(where) if fine else 0.0
    if not 0 < whole < np.inf:
        raise UsageError(
            f"personalization is a non-negative, finite weight for each of {lumped.nodes:,} nodes, "
            "not 0 for all that are ranked, and of a finite sum"
        )
    divide(where, whole)
    return where


def _pairs(personalization: Weighted | Iterable[str]) -> Iterable[tuple[str, float]]:
    if isinstance(personalization, Mapping) or hasattr(personalization, "items"):
        return personalization.items()
    return ((name, 1.0) for name in personalization)
