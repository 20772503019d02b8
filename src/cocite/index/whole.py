"""A part made in one go: arrays written as streams, noted when they are whole.

A build that was interrupted in such a part makes it again; one that was interrupted behind it finds
the note and keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from cocite.errors import Damaged
from cocite.graph import Graph
from cocite.graph.rows import Links
from cocite.layouts.part import PartBuild, PartEstimate, Progress
from cocite.layouts.plan import PartPlan
from cocite.layouts.table import whole_builder
from cocite.layouts.whole import WholeBuilder
from cocite.means import Means
from cocite.store import Entry, checksum, disk

__all__ = ["WholePart"]


class WholePart(PartBuild):
    """A part that is made in one go. ``links`` gives those of its direction."""

    def __init__(
        self,
        plan: PartPlan,
        graph: Graph,
        links: Callable[[], Links],
        directory: Path,
        means: Means,
    ) -> None:
        self.plan, self.units = plan, graph.nodes
        self._graph, self._links, self._directory = graph, links, directory
        self._means = means
        self._files: dict[str, Entry] = {}
        self._made: WholeBuilder | None = None

    @property
    def _note(self) -> Path:
        return self._directory / (self.plan.prefix + "whole.json")

    def _layout(self) -> WholeBuilder:
        if self._made is None:
            kind = whole_builder(self.plan.layout)
            self._made = kind(self._graph, self._links(), self.plan, self._means)
        return self._made

    def resume(self) -> None:
        """Keep the part if its note is there and every file is whole."""
        try:
            note = json.loads(self._note.read_bytes())
            files = {name: Entry.from_json(name, value) for name, value in note.items()}
            whole = all(checksum(self._directory / n, e) == e.xxh3_128 for n, e in files.items())
        except (OSError, ValueError, AttributeError, Damaged):
            return
        self._files = files if whole else {}

    @property
    def done(self) -> int:
        """All or nothing."""
        return self.units if self._files else 0

    def estimate(self) -> PartEstimate:
        """As the layout says."""
        if self._files:
            size = sum(entry.nbytes for entry in self._files.values())
            return PartEstimate(size, None, 0.0)
        return self._layout().estimate()

    def run(self, progress: Progress) -> None:
        """Write the arrays, then the note."""
        if self._files:
            return
        self._files = self._layout().write(self._directory, progress)
        note = {name: entry.to_json() for name, entry in self._files.items()}
        beside = self._note.with_suffix(".new")
        with beside.open("wb") as file:
            disk.write(file, json.dumps(note).encode())
            disk.sync_file(file)
        disk.rename(beside, self._note)
        disk.sync_directory(self._directory)
        self._made = None

    def close(self) -> None:
        """The links go, and what was made for an estimate."""
        self._made = None

    def publish(self) -> dict[str, Entry]:
        """Nothing is left to do."""
        return self._files
