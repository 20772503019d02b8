"""What an output of a batch is: a class that writes pages.

Hits come as *pages*: some nodes, in the order in which they were asked for, with all their hits.
Names are looked up before. What an output says beside names and scores comes into
:class:`OutputPages` first, and from there into ``columns`` and ``each``.
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

from cocite.search.batch.pieces import ranks


@dataclass(frozen=True)
class OutputPages:
    """Some nodes and their hits.

    ``nodes`` are names, object[n], or numbers, int64[n]; ``counts`` uint32[n] says how many hits
    each has. Of all hits, node after node: ``related`` as ``nodes``, and float64 ``numbers``, by
    their titles: score and stderr, nan where there is none, and the ends of intervals where they
    are asked for. ``ids`` and ``related_ids`` are the numbers, uint32, of the nodes and of the
    hits. Of a graph with titles, ``node_titles`` and ``titles`` are those of the nodes and of the
    hits, None for none.
    """

    nodes: NDArray[Any]
    counts: NDArray[np.uint32]
    related: NDArray[Any]
    numbers: dict[str, NDArray[np.float64]]
    ids: NDArray[np.uint32]
    related_ids: NDArray[np.uint32]
    node_titles: NDArray[Any] | None = None
    titles: NDArray[Any] | None = None

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """A row a hit: no row of a node without hits."""
        columns = {
            "node": np.repeat(self.nodes, self.counts),
            "rank": ranks(self.counts).astype(np.int32) + 1,
            "related": self.related,
            **self.numbers,
        }
        return columns if self.titles is None else columns | {"title": self.titles}

    @property
    def types(self) -> dict[str, str]:
        """Titles of the columns, and what they hold in SQL."""
        name = "VARCHAR" if self.nodes.dtype == object else "BIGINT"
        types = {"node": name, "rank": "INTEGER", "related": name}
        types |= dict.fromkeys(self.numbers, "DOUBLE")
        return types if self.titles is None else types | {"title": "VARCHAR"}

    def each(self) -> Iterator[dict[str, Any]]:
        """What is said of each node, also of one without hits, as JSON has it."""
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
    """What is said of a title, where the graph has any."""
    return {} if titles is None else {"title": titles[place]}


def json_of(page: dict[str, Any]) -> str:
    """Return a page as a line of JSON, with its end; no number is rounded."""
    return json.dumps(page, ensure_ascii=False) + "\n"


Pages = Iterable[OutputPages]


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
    """Whether it can be written to a pipe, page after page (:meth:`text`)."""

    @abstractmethod
    def check(self, path: Path, overwrite: bool) -> Path:
        """Return the path, if it may be written; raise :class:`~cocite.errors.OutputExists`."""

    def expect(self, pages: OutputPages) -> None:  # noqa: B027 - most take any
        """See that pages with the types of these can be written, before any work is done."""

    @abstractmethod
    def write(
        self, path: Path, pages: Pages, empty: OutputPages, scratch: Path, facts: dict[str, Any]
    ) -> int | None:
        """Write all ``pages``, and let them have the name ``path`` when they are whole; return the
        bytes, None if they are not known.

        ``empty`` has the types of pages without any of them; ``scratch`` is a directory on the same
        disk, where what is half done may stay; ``facts`` say what is written.
        """

    @abstractmethod
    def trial(self, pages: list[OutputPages], scratch: Path) -> int:
        """Write some pages into a scratch directory, or take them back; return their bytes."""

    def text(self, pages: OutputPages, first: bool) -> bytes:
        """Return what a file of pages begins with, if they are the ``first``, or goes on with."""
        raise NotImplementedError


def timed_trial(output: Output, pages: OutputPages, scratch: Path) -> tuple[int, float]:
    """Return the bytes that some pages take, and the seconds that it takes to write them."""
    began = time.perf_counter()
    return output.trial([pages], scratch), time.perf_counter() - began
