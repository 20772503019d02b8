"""What an output of a batch is given, and what it is to do with it.

Hits come as *pages*: some nodes, in the order in which they were asked for, with all their hits.
Names are looked up before. What an output says beside names and scores comes into
:class:`OutputPages` first, and from there into ``columns`` and ``page``.

Rows of a batch as they lie in its journal: words of 32 bits, five a row; nine with intervals.

    who is related      the score, float64      its standard error, float64      low, high, float64

A piece holds how many rows each of its nodes has, then all rows of all, node after node.
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

from cocite.storage import disk

Words = NDArray[np.uint32]


def words_of(intervals: bool) -> int:
    """Words a row."""
    return 9 if intervals else 5


def packed(ids: Words, scores: NDArray[np.float64]) -> bytes:
    """Rows from uint32[h] and float64[h, 2]: scores and errors; or [h, 4], with the ends of
    intervals.
    """
    numbers = 2 * scores.shape[1]
    words = np.empty((ids.size, 1 + numbers), np.uint32)
    words[:, 0] = ids
    words[:, 1:] = np.ascontiguousarray(scores).view(np.uint32).reshape(-1, numbers)
    return words.tobytes()


def ranks(counts: Words) -> NDArray[np.int64]:
    """0, 1, ... for the rows of each node."""
    ends = np.cumsum(counts, dtype=np.int64)
    found: NDArray[np.int64] = np.arange(ends[-1] if ends.size else 0)
    return found - np.repeat(ends - counts, counts)


def rows_of(words: Words, begins: NDArray[np.uint64], counts: Words, width: int) -> Words:
    """uint32[rows, width]: the rows of some nodes, in their order."""
    first = np.repeat(begins.astype(np.int64), counts) + width * ranks(counts)
    found: Words = words[first[:, None] + np.arange(width)]
    return found


# -- output ------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputPages:
    """Some nodes and their hits.

    ``nodes`` are names, object[n], or numbers, int64[n]; ``counts`` uint32[n] says how many hits
    each has. Of all hits, node after node: ``related`` as ``nodes``, and float64 ``scores`` and
    ``errors``, nan where there is none. ``ids`` and ``related_ids`` are the numbers, uint32, of the
    nodes and of the hits. Of a graph with titles, ``node_titles`` and ``titles`` are
    those of the nodes and of the hits, None for none. ``low`` and ``high``, float64, are the ends
    of intervals, where they are wanted.
    """

    nodes: NDArray[Any]
    counts: NDArray[np.uint32]
    related: NDArray[Any]
    scores: NDArray[np.float64]
    errors: NDArray[np.float64]
    ids: NDArray[np.uint32]
    related_ids: NDArray[np.uint32]
    node_titles: NDArray[Any] | None = None
    titles: NDArray[Any] | None = None
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None

    @property
    def _ends(self) -> dict[str, NDArray[np.float64]]:
        """The ends of intervals, if there are any."""
        ends = {"low": self.low, "high": self.high}
        return {title: end for title, end in ends.items() if end is not None}

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """A row a hit: no row of a node without hits."""
        columns = {
            "node": np.repeat(self.nodes, self.counts),
            "rank": ranks(self.counts).astype(np.int32) + 1,
            "related": self.related,
            "score": self.scores,
            "stderr": self.errors,
            **self._ends,
        }
        return columns if self.titles is None else columns | {"title": self.titles}

    @property
    def types(self) -> dict[str, str]:
        """Titles of the columns, and what they hold in SQL."""
        name = "VARCHAR" if self.nodes.dtype == object else "BIGINT"
        types = {"node": name, "rank": "INTEGER", "related": name}
        types |= dict.fromkeys(("score", "stderr", *self._ends), "DOUBLE")
        return types if self.titles is None else types | {"title": "VARCHAR"}

    def each(self) -> Iterator[dict[str, Any]]:
        """What is said of each node, also of one without hits, as JSON has it."""
        related, scores, errors = (
            column.tolist() for column in (self.related, self.scores, self.errors)
        )
        ends = {title: end.tolist() for title, end in self._ends.items()}
        at = 0
        pairs = zip(self.nodes.tolist(), self.counts.tolist(), strict=True)
        for place, (node, count) in enumerate(pairs):
            hits = [
                {
                    "node": related[i],
                    **_title(self.titles, i),
                    "score": scores[i],
                    "stderr": None if math.isnan(errors[i]) else errors[i],
                    **{title: end[i] for title, end in ends.items()},
                }
                for i in range(at, at + count)
            ]
            at += count
            yield {"node": node, **_title(self.node_titles, place), "hits": hits}


def _title(titles: NDArray[Any] | None, place: int) -> dict[str, str | None]:
    """What is said of a title, where the graph has any."""
    return {} if titles is None else {"title": titles[place]}


def json_of(page: dict[str, Any]) -> str:
    """A page as a line of JSON, with its end; no number is rounded."""
    return json.dumps(page, ensure_ascii=False) + "\n"


class Output(ABC):
    """A kind of output."""

    kind: str
    label = ""
    """What it is called, if not by its path."""
    memory = 0
    """Bytes that writing takes, whatever the size."""
    twice = False
    """Whether what is written lies on the disk once more while it is made."""
    streams = False
    """Whether it can be written to a pipe, page after page."""

    @abstractmethod
    def check(self, path: Path, overwrite: bool) -> Path:
        """The path, if it may be written; raises :class:`~cocite.errors.OutputExists`."""

    def expect(self, pages: OutputPages) -> None:  # noqa: B027 - most take any
        """See that pages with the types of these can be written, before any work is done."""

    @abstractmethod
    def write(
        self,
        path: Path,
        pages: Iterable[OutputPages],
        empty: OutputPages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int | None:
        """Write all ``pages``, and let them have the name ``path`` when they are whole; returns the
        bytes, None if they are not known.

        ``empty`` has the types of pages without any of them; ``scratch`` is a directory on the same
        disk, where what is half done may stay; ``facts`` say what is written.
        """

    def trial(self, pages: Iterable[OutputPages], scratch: Path) -> tuple[int, float]:
        """The bytes that some pages take, and the seconds that it takes to write them."""
        began = time.perf_counter()
        size = 0
        for some in pages:
            content = self.text(some, False, scratch)
            with disk.rewrite(scratch / "trial") as file:
                disk.write(file, content)
            size += len(content)
        return size, time.perf_counter() - began

    def text(self, pages: OutputPages, first: bool, scratch: Path) -> bytes:
        """What a file of them begins with, if they are the ``first``, or goes on with."""
        raise NotImplementedError
