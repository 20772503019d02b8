"""The nodes related to every node, page after page to a pipe: nothing is kept, nothing goes on.

Nodes come in the order in which they are asked for. A few thousand are answered at a time, in the
order of their places in a tree if they are answered together, and written before the next: so the
first are there soon, and there is never more than those in memory. What is written is what a file
would hold, to the byte.

Cost: that of ``run.py``; between the nodes of a window more changes than between neighbours in a
tree.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cocite.errors import UsageError
from cocite.layouts.stored import DamagedShard
from cocite.query.batch.outputs import OUTPUTS, output_of
from cocite.query.batch.outputs.output import Output
from cocite.query.batch.pieces import Rows, rows_in
from cocite.query.batch.run import BatchReport
from cocite.query.batch.work import Progress, Work
from cocite.query.opened import DEFAULT_K
from cocite.query.ordered import Ordered

__all__ = ["DEFAULT_STREAM", "Stream"]

DEFAULT_STREAM = "jsonl"
_WINDOW, _SINGLE = 16384, 256
"""Nodes that are answered before any is written, and by how many fewer if each takes its time."""


class Stream:
    """``Stream(index, k, kind="csv").run(file)``; options as for :class:`~.run.Batch`.

    Raises
    ------
    UnknownNode, UsageError
        Before any work is done.
    """

    def __init__(
        self,
        index: Ordered,
        k: int = DEFAULT_K,
        *,
        kind: str | None = None,
        safe: bool = False,
        **options: Any,
    ) -> None:
        self.output: Output = output_of("-", kind or DEFAULT_STREAM, safe)
        if not self.output.streams:
            kinds = ", ".join(kind for kind in OUTPUTS if output_of("-", kind).streams)
            raise UsageError(
                f"{self.output.kind} cannot be written to a pipe: choose one of {kinds} with "
                "--kind (kind=), or name a file"
            )
        self.work = Work(index, k, **options)

    @property
    def nodes(self) -> int:
        """How many nodes are asked for."""
        return self.work.nodes

    def run(
        self, file: BinaryIO, progress: Progress = lambda stage, done, total: None
    ) -> BatchReport:
        """Write all pages to an open file; ``progress`` as for :func:`~.run.related_all`."""
        self.work.advise()
        rows = without = size = 0
        progress("relating", 0, self.nodes)
        window = _WINDOW if self.work.question.together is not None else _SINGLE
        with tempfile.TemporaryDirectory(prefix="cocite-") as folder:
            for low in range(0, max(1, self.nodes), window):
                places = slice(low, min(low + window, self.nodes))
                pages = self.work.pages(self._answered(places), places, places.start)
                content = self.output.text(pages, low == 0, Path(folder))
                file.write(content)
                file.flush()
                rows, size = rows + pages.related.size, size + len(content)
                without += int((pages.counts == 0).sum())
                progress("relating", places.stop, self.nodes)
        return BatchReport(self.nodes, rows, without, size)

    def _answered(self, places: slice) -> Rows:
        """The rows of a window, by the numbers of nodes from its first on. What is written already
        is of all samples: a shard that is found to be damaged ends it.
        """
        order = self.work.order(places)
        contents, found, words = [], [], 0
        try:
            with closing(self.work.pieces(order, [range(order.size)])) as pieces:
                for piece in pieces:
                    contents.append(np.frombuffer(piece.content, np.uint32))
                    found.append((words, (piece.begin, piece.size)))
                    words += contents[-1].size
        except DamagedShard as damaged:
            damaged.add_note("Or name a file as output, which is made without it")
            raise
        joined = np.concatenate([np.empty(0, np.uint32), *contents])
        return rows_in(joined, found, order - np.uint32(places.start), self.work.question.words)
