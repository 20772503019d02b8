"""The interface of batch outputs, which write pages: consecutive query nodes with their hits."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Floats, Ids
from cocite.search.batch.pieces import ranks


@dataclass(frozen=True)
class OutputPages:
    """Query nodes and their hits.

    ``nodes`` are names, object[n], or ids, int64[n]; ``counts`` uint32[n] are the numbers of hits.
    The other arrays have an item per hit, node by node: ``related``, of the type of ``nodes``, and
    ``numbers``, float64 by column name: score, stderr (NaN if missing) and, if requested, low and
    high. ``ids`` and ``related_ids`` are the uint32 ids of nodes and hits. If the graph has titles,
    ``node_titles`` and ``titles`` are the titles of nodes and hits, with None for untitled pages.
    """

    nodes: NDArray[Any]
    counts: Ids
    related: NDArray[Any]
    numbers: dict[str, Floats]
    ids: Ids
    related_ids: Ids
    node_titles: NDArray[Any] | None = None
    titles: NDArray[Any] | None = None

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Return table columns with a row per hit."""
        columns = {
            "node": np.repeat(self.nodes, self.counts),
            "rank": ranks(self.counts).astype(np.int32) + 1,
            "related": self.related,
            **self.numbers,
        }
        return columns if self.titles is None else columns | {"title": self.titles}

    @property
    def types(self) -> dict[str, str]:
        """Return the columns' SQL types, by column name."""
        name = "VARCHAR" if self.nodes.dtype == object else "BIGINT"
        types = {"node": name, "rank": "INTEGER", "related": name}
        types |= dict.fromkeys(self.numbers, "DOUBLE")
        return types if self.titles is None else types | {"title": "VARCHAR"}

    def each(self) -> Iterator[dict[str, Any]]:
        """Yield a JSON object per node, including nodes without hits."""
        related = self.related.tolist()
        numbers = {title: column.tolist() for title, column in self.numbers.items()}
        numbers["stderr"] = [None if math.isnan(error) else error for error in numbers["stderr"]]
        ends = np.cumsum(self.counts, dtype=np.int64).tolist()
        begin = 0
        for place, (node, end) in enumerate(zip(self.nodes.tolist(), ends, strict=True)):
            hits = [
                {"node": related[i], **_title(self.titles, i)}
                | {title: column[i] for title, column in numbers.items()}
                for i in range(begin, end)
            ]
            begin = end
            yield {"node": node, **_title(self.node_titles, place), "hits": hits}


def _title(titles: NDArray[Any] | None, place: int) -> dict[str, str | None]:
    return {} if titles is None else {"title": titles[place]}


def json_of(page: dict[str, Any]) -> str:
    """Return one node's object as a line of JSON, with unrounded numbers."""
    return json.dumps(page, ensure_ascii=False) + "\n"


Pages = Iterable[OutputPages]


class Output(ABC):
    """The interface of an output format."""

    kind: str
    label = ""
    """The output's name in messages. If "", messages use its path."""
    memory = 0
    """Bytes of memory for writing, independent of the output's size."""
    twice = False
    """Whether writing temporarily needs twice the output's disk space."""
    streams = False
    """Whether the output can be written to a pipe, page by page (:meth:`text`)."""

    @abstractmethod
    def check(self, path: Path, overwrite: bool) -> Path:
        """Check and return the path; raises :class:`~cocite.errors.OutputExists`."""

    def expect(self, pages: OutputPages) -> None:  # noqa: B027 - most accept any types
        """Check, before any query, that pages of these types can be written."""

    @abstractmethod
    def write(
        self, path: Path, pages: Pages, empty: OutputPages, scratch: Path, facts: dict[str, Any]
    ) -> int | None:
        """Write all ``pages``, rename the complete output to ``path``, and return the number of
        bytes, None if unknown.

        ``empty`` is a page without rows, for the types; ``scratch`` is a directory on the same disk
        for partial output; ``facts`` describe the batch.
        """

    @abstractmethod
    def trial(self, pages: list[OutputPages], scratch: Path) -> int:
        """Write some pages to a scratch directory, or roll back; return the number of bytes."""

    def text(self, pages: OutputPages, first: bool) -> bytes:
        """Format pages as text, with a header if they are the ``first``."""
        raise NotImplementedError
