"""The interface of batch outputs: classes that write pages.

A *page* is some nodes, in the order queried, with all their hits and with names resolved.
:class:`OutputPages` has all that outputs contain; ``columns`` and ``each`` convert it.
"""

from __future__ import annotations

import json
import math
import time
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
    """Some nodes and their hits.

    ``nodes`` are names, object[n], or ids, int64[n]; ``counts`` uint32[n] are their numbers of
    hits. Of all hits, node by node: ``related``, in the form of ``nodes``, and float64 ``numbers``
    by title: score and stderr, NaN if missing, and if requested the ends of intervals. ``ids`` and
    ``related_ids`` are the uint32 ids of nodes and hits. If the graph has titles, ``node_titles``
    and ``titles`` are theirs, None for none.
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
        """Return the columns of a table with a row per hit."""
        columns = {
            "node": np.repeat(self.nodes, self.counts),
            "rank": ranks(self.counts).astype(np.int32) + 1,
            "related": self.related,
            **self.numbers,
        }
        return columns if self.titles is None else columns | {"title": self.titles}

    @property
    def types(self) -> dict[str, str]:
        """Return the SQL type of each column, by title."""
        name = "VARCHAR" if self.nodes.dtype == object else "BIGINT"
        types = {"node": name, "rank": "INTEGER", "related": name}
        types |= dict.fromkeys(self.numbers, "DOUBLE")
        return types if self.titles is None else types | {"title": "VARCHAR"}

    def each(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON object of each node, including nodes without hits."""
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
    """Return the title as a field, if the graph has titles."""
    return {} if titles is None else {"title": titles[place]}


def json_of(page: dict[str, Any]) -> str:
    """Return a page as a line of JSON with unrounded numbers, including the line end."""
    return json.dumps(page, ensure_ascii=False) + "\n"


Pages = Iterable[OutputPages]


class Output(ABC):
    """The interface of a kind of output."""

    kind: str
    label = ""
    """Name of the output, if not its path."""
    memory = 0
    """Bytes of memory for writing, independent of the size of the output."""
    twice = False
    """Whether writing temporarily needs the disk space of the output twice."""
    streams = False
    """Whether the output can be written to a pipe, page by page (:meth:`text`)."""

    @abstractmethod
    def check(self, path: Path, overwrite: bool) -> Path:
        """Return the path if it may be written; raises :class:`~cocite.errors.OutputExists`."""

    def expect(self, pages: OutputPages) -> None:  # noqa: B027 - most take any
        """Check that pages of these types can be written, before any query."""

    @abstractmethod
    def write(
        self, path: Path, pages: Pages, empty: OutputPages, scratch: Path, facts: dict[str, Any]
    ) -> int | None:
        """Write all ``pages``, renaming the output to ``path`` when complete; return its bytes,
        None if unknown.

        ``empty`` has the types of pages but no rows; ``scratch`` is a directory on the same disk
        for partial output; ``facts`` describe the output.
        """

    @abstractmethod
    def trial(self, pages: list[OutputPages], scratch: Path) -> int:
        """Write some pages into a scratch directory, or roll them back; return the bytes."""

    def text(self, pages: OutputPages, first: bool) -> bytes:
        """Return some pages as text, with a header if they are the ``first``."""
        raise NotImplementedError


def timed_trial(output: Output, pages: OutputPages, scratch: Path) -> tuple[int, float]:
    """Return the bytes of some pages, and the seconds to write them."""
    began = time.perf_counter()
    return output.trial([pages], scratch), time.perf_counter() - began
