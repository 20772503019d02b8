r"""Weighted graphs as files, for Gephi, NetworkX, igraph, Graphviz: GraphML, GEXF, DOT.

A file names its nodes ``n0``, ``n1``, ... by their ids in the graph: any of the formats takes that,
and no two names become one. The name of a page is the ``label``. What else is said of nodes and
links is an attribute, left out where it does not exist; the ``weight`` of a link is one of them.

Names may hold anything. XML has no way to write some characters (most of those below U+0020,
surrogates, U+FFFE, U+FFFF), and DOT ends at a NUL: ``\u0007``, in six letters, stands for these.

Nodes come before links, as some programs want. Pieces come once, so links wait in a nameless file.
Memory: a byte a node, and a piece. Disk: the links once more.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.store import disk

__all__ = ["Facts", "GraphFile", "GraphForm", "GraphPiece", "GraphShape", "graph_text"]

Facts = Mapping[str, Any]
"""What is said of a node or link, by title."""
Values = Sequence[Any] | NDArray[Any]
"""A column of it."""

_ROWS = 1 << 14


@dataclass(frozen=True)
class GraphShape:
    """What is said of nodes, and of links beside their weight: titles, and ``string``, ``double``,
    ``int`` or ``boolean``. Links have a direction unless ``directed`` is false; ``about`` is a line
    on what it is.
    """

    node: Mapping[str, str]
    link: Mapping[str, str]
    about: str = ""
    directed: bool = True


@dataclass(frozen=True)
class GraphPiece:
    """Some nodes, by ``ids``, with their names as ``labels`` and ``facts``, a column each; of those
    that were there before the first counts. And some links: ``sources`` and ``targets`` by id,
    float64 ``weights``, and ``link_facts``.
    """

    ids: NDArray[Any]
    labels: Values
    facts: Mapping[str, Values]
    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[np.float64]
    link_facts: Mapping[str, Values]


class GraphForm(ABC):
    """A format, of one graph: its parts as text, in the order in which they are written."""

    def __init__(self, shape: GraphShape) -> None:
        self.shape = shape

    @abstractmethod
    def head(self) -> str:
        """What stands before the nodes."""

    @abstractmethod
    def node(self, node: int, label: str, facts: Facts) -> str:
        """A node; facts that do not exist are left out before."""

    @abstractmethod
    def between(self) -> str:
        """What stands between nodes and links."""

    @abstractmethod
    def link(self, number: int, source: int, target: int, weight: float, facts: Facts) -> str:
        """A link, the ``number``-th from 0 on."""

    @abstractmethod
    def tail(self) -> str:
        """What stands behind the links."""


@dataclass(frozen=True)
class GraphFile:
    """Files of graphs: ``form(shape)`` writes one."""

    title: str
    form: Callable[[GraphShape], GraphForm]

    def write(self, path: Path, pieces: Iterable[GraphPiece], shape: GraphShape) -> None:
        """Write a graph; links wait in the directory of ``path``."""
        with (
            disk.rewrite(path) as file,
            tempfile.TemporaryFile(dir=path.parent, buffering=0) as links,
        ):
            _write(self.form(shape), file, links, pieces)


def graph_text(form: GraphForm, pieces: Iterable[GraphPiece]) -> str:
    """A small graph as text."""
    out = BytesIO()
    _write(form, out, BytesIO(), pieces)
    return out.getvalue().decode()


def _write(form: GraphForm, file: BinaryIO, links: BinaryIO, pieces: Iterable[GraphPiece]) -> None:
    seen, number = np.zeros(0, bool), 0
    _put(file, form.head())
    for piece in pieces:
        most = int(piece.ids.max()) + 1 if piece.ids.size else 0
        if most > seen.size:
            seen = np.concatenate([seen, np.zeros(max(most, 2 * seen.size) - seen.size, bool)])
        _, first = np.unique(piece.ids, return_index=True)
        new = np.sort(first[~seen[piece.ids[first]]])
        seen[piece.ids[new]] = True
        columns = [[values[i] for i in new] for values in piece.facts.values()]
        rows = zip(piece.ids[new].tolist(), (piece.labels[i] for i in new), *columns, strict=True)
        text = [form.node(n, str(label), _there(piece.facts, facts)) for n, label, *facts in rows]
        _put(file, "".join(text))
        for low in range(0, piece.sources.size, _ROWS):
            part = slice(low, low + _ROWS)
            ends = (each[part].tolist() for each in (piece.sources, piece.targets, piece.weights))
            columns = [_plain(values[part]) for values in piece.link_facts.values()]
            text = []
            for source, target, weight, *facts in zip(*ends, *columns, strict=True):
                said = _there(piece.link_facts, facts)
                text.append(form.link(number, source, target, weight, said))
                number += 1
            _put(links, "".join(text))
    _put(file, form.between())
    links.seek(0)
    shutil.copyfileobj(links, _Checked(file), 1 << 20)
    _put(file, form.tail())


def _plain(values: Values) -> list[Any]:
    found: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return found


def _there(titles: Iterable[str], values: Iterable[Any]) -> Facts:
    """What exists."""
    pairs = zip(titles, values, strict=True)
    return {
        t: v for t, v in pairs if v is not None and not (isinstance(v, float) and math.isnan(v))
    }


def _put(file: BinaryIO, text: str) -> None:
    """Forms leave nothing that UTF-8 could not write."""
    _Checked(file).write(text.encode())


class _Checked:
    """A file whose errors are those of the store."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        if isinstance(self._file, BytesIO):
            return self._file.write(data)
        disk.write(self._file, data)
        return len(data)


def visible(codes: Iterable[int]) -> dict[int, str]:
    """For ``str.translate``: characters that a format cannot hold, as people see them."""
    return {code: f"\\u{code:04x}" for code in codes}
