"""Paths and compact samples whose state lies in files, to the byte those of a build in memory.

    paths     the walk of ``engine/walk_blocks.py`` notes points as rows (head, node), by the block
              of the head; when the trees are laid out, rows (place, node) give steps and points
    compact   one scan of the links gives forward, and rows (forward, node); they give children

Memory: that of the walk, and 64 bytes for each row under way. Scratch a node: compact 24 bytes of a
sample; paths 36, and 12 for each point, of a sample that walks, 39 and 16 of one laid out.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NOWHERE
from cocite.engine.row_groups import RowGroups
from cocite.engine.walk import Mover
from cocite.engine.walk_blocks import ExternalWalker
from cocite.graph.blocks import Links
from cocite.index.layouts.batch_maker import BatchMaker, Blob, FileWords
from cocite.index.layouts.trees.assemble import ExternalTrees
from cocite.index.layouts.trees.format import (
    check_points,
    compact_words,
    eighths,
    path_words,
    tree_words,
)
from cocite.storage.spool import ScratchFile, Spool


class ExternalPaths(ExternalTrees):
    """Lays out paths of the samples of a walker that notes points."""

    def __init__(self, walker: ExternalWalker, nodes: int, rows: int, directory: Path) -> None:
        super().__init__(walker, nodes, directory)
        self._groups = RowGroups(nodes, rows)
        self._points = self._groups.spool(directory)

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample that was walked."""
        met, nodes = self._walker(sample), self._nodes
        assert met.points is not None
        members = self._write_members(self._send_places(met, self._blob))
        self._seat(members, met.points)
        self._write_trees(nodes, nodes)
        steps = nodes + tree_words(nodes)
        begin, first = steps + eighths(nodes), 0
        at = begin + eighths(nodes)
        for place, counts, pieces in self._groups.groups(self._points):
            ends = first + np.cumsum(counts)
            check_points(sample, int(ends[-1]))
            self._blob.write(4 * (steps + place // 8), _packed(counts.astype(np.uint8)))
            self._blob.write(4 * (begin + place // 8), (ends - counts)[::8].astype(np.uint32))
            for piece in pieces:
                self._blob.write(4 * at, piece)
                at += piece.size
            first = int(ends[-1])
        words = path_words(nodes, first)
        self._blob.write(4 * at, np.zeros(words - at, np.uint32))
        return Blob.of(FileWords(self._blob, words), first, met.live)

    def _seat(self, place: int, points: Spool) -> None:
        """Give the nodes that met nobody the places from ``place`` on, and points their place."""
        self._points.clear()
        for block, (first, last) in enumerate(pairwise(self._cuts.tolist())):
            position = self._rooms.at[: last - first]
            self._blob.read(4 * first, position)
            alone = np.flatnonzero(position == NOWHERE).astype(np.uint32)
            position[alone] = np.arange(place, place + alone.size, dtype=np.uint32)
            self._blob.write(4 * first, position)
            self._members.write(4 * place, alone + np.uint32(first))
            self._labels.write(place, np.zeros(alone.size, np.uint8))
            place += alone.size
            for _, rows in points.pieces(block, self._rooms.merged[: self._groups.rows]):
                self._groups.add(self._points, position[rows[:, 0] - np.uint32(first)], rows[:, 1])


def _packed(steps: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Pack steps, eight per word."""
    from cocite.kernels import trees

    packed = np.zeros(-(-steps.size // 8), np.uint32)
    trees.pack_labels(steps, packed.view(np.uint8))
    return packed


class ExternalCompact:
    """Makes compact samples, each in a file of its own, ``together`` in one scan of the links."""

    def __init__(
        self,
        links: Links,
        mover: Mover,
        cuts: tuple[int, ...],
        rows: int,
        directory: Path,
        together: int,
    ) -> None:
        self._links, self._mover, self._cuts = links, mover, (0, *cuts, links.nodes)
        self._groups = RowGroups(links.nodes, rows)
        self._files = [
            (ScratchFile(directory), self._groups.spool(directory)) for _ in range(together)
        ]
        self._ready: dict[int, tuple[ScratchFile, Spool]] = {}

    def make(self, samples: range) -> None:
        """Move every node once in each of these samples; earlier ones become invalid."""
        self._ready = dict(zip(samples, self._files, strict=False))
        moves = {sample: self._mover.kernel(sample, 1) for sample in self._ready}
        for _, spool in self._ready.values():
            spool.clear()
        for first, last in pairwise(self._cuts):
            self._links.fetch(first, last)
            for sample, (file, spool) in self._ready.items():
                for low in range(first, last, self._groups.rows):
                    at = np.arange(low, min(low + self._groups.rows, last), dtype=np.uint32)
                    moved = np.empty_like(at)
                    moves[sample](at, moved, np.uint32(first), np.uint32(last))
                    file.write(4 * low, moved)
                    there = moved != NOWHERE
                    self._groups.add(spool, moved[there], at[there])
            self._links.evict()

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample that was made."""
        file, spool = self._ready[sample]
        nodes, members = self._links.nodes, 0
        child = 2 * nodes + 1
        for low, counts, pieces in self._groups.groups(spool):
            begins = members + np.cumsum(counts) - counts
            file.write(4 * (nodes + low), begins.astype(np.uint32))
            for piece in pieces:
                file.write(4 * (child + members), piece)
                members += piece.size
        file.write(4 * (child - 1), np.array([members], np.uint32))
        words = compact_words(nodes, members)
        file.write(4 * (child + members), np.zeros(words - child - members, np.uint32))
        return Blob.of(FileWords(file, words), members, (members,))


def compact_maker(external: ExternalCompact, numbers: range, together: int) -> BatchMaker:
    """Return a maker of the blobs of compact samples."""
    return BatchMaker(numbers, together, external.make, [external])


def paths_maker(
    walker: ExternalWalker, nodes: int, rows: int, directory: Path, numbers: range
) -> BatchMaker:
    """Return a maker of the blobs of paths, from a walker that notes points."""
    paths = ExternalPaths(walker, nodes, rows, directory)
    return BatchMaker(numbers, walker.together, walker.walk, [paths])
