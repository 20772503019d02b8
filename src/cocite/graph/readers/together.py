"""How far many files are read, as one stage of progress.

Cost: a call a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cocite.graph.readers.options import Progress
from cocite.graph.readers.sources import Source

__all__ = ["Together"]

_FEW = 10
"""Files that are named one by one."""


class Together:
    """Progress of ``sources``: of few each is a stage, of many all are one."""

    def __init__(self, progress: Progress, sources: Sequence[Source]) -> None:
        self._progress, self._few = progress, len(sources) <= _FEW
        self._stage = f"reading {len(sources):,} files"
        self._total = 0 if self._few else sum(source.nbytes for source in sources)
        self._done = 0

    @contextmanager
    def of(self, *sources: Source) -> Iterator[Progress]:
        """The progress of some of them, which are read now."""
        if self._few:
            yield self._progress
            return
        yield lambda stage, done, total: self._progress(
            self._stage, min(self._done + done, self._total), self._total
        )
        self._done += sum(source.nbytes for source in sources)
        self._progress(self._stage, min(self._done, self._total), self._total)
