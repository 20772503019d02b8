"""The arrays of a sample of walks: trees, packed, paths, compact (``storage/FORMAT.md``).

Bytes per node and sample: trees at most 8.5, 4 of them in the file of positions. Packed: w + o + 13
bits per run and 1.5 bytes per node; 3.1 on cnr-2000, and 6.6 with shuffled ids, as a run is up to
32 nodes with consecutive ids. Paths: 9.5 and 4 for each point, about one per node on webs. Compact:
12, for any length of walks. Packed trees equal those of the layout ``trees``, so answers are equal
to the bit. In paths, a walk that has met a smaller one continues as that one, so each point is
stored once.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1; paths and compact: their *A
scalable randomized method to compute link-based similarity rank on the web graph*, 2 (Algorithm 1)
and 3. Runs, and storing shared walks once, are our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import numpy as np

from cocite.constants import Labels, Words
from cocite.errors import ResourceError
from cocite.index.layouts.contract import SampledFormat, padded
from cocite.measures import LENGTH, PartSettings
from cocite.storage import Entry

POSITIONS = "positions"
"""File of uint32[nodes, samples]: the place of each node in each sample, 2**32 - 1 if its walk
meets no other. A query reads one or two rows.
"""
GROUP, GROUP_WORDS = 64, 72
"""Members in a group of trees, and its words: the members, then their labels, eight per word. So a
small tree lies on one page, and a scan of labels reads half as many cache lines as one of members.
"""


def tree_words(members: int) -> int:
    """Return the 32-bit words of the trees of a sample."""
    return padded(GROUP_WORDS * -(-members // GROUP))


def _groups(words: Words, members: int) -> Words:
    groups = -(-members // GROUP)
    return words[: GROUP_WORDS * groups].reshape(groups, GROUP_WORDS)


def group_trees(member: Words, joined: Labels, out: Words) -> None:
    """Write members and their labels, a byte each, in groups into ``out``, which is zero after the
    last whole group.
    """
    from cocite.kernels import trees

    groups, full = _groups(out, member.size), member.size // GROUP
    groups[:full, :GROUP] = member[: full * GROUP].reshape(full, GROUP)
    groups[full:, : member.size % GROUP] = member[full * GROUP :]
    packed = np.zeros(GROUP // 2 * len(groups), np.uint8)
    trees.pack_labels(joined, packed)
    groups[:, GROUP:] = packed.view(np.uint32).reshape(len(groups), GROUP // 8)


def members_of(words: Words, members: int) -> Words:
    """Return the members of trees, uint32[members], which begin at the first word."""
    return _groups(words, members)[:, :GROUP].reshape(-1)[:members]


def labels_of(words: Words, members: int) -> Labels:
    """Return the labels of trees, uint8[members]."""
    return unpacked(np.ascontiguousarray(_groups(words, members)[:, GROUP:]).reshape(-1), members)


def unpacked(words: Words, count: int) -> Labels:
    """Return numbers of four bits, uint8[count]."""
    packed = words.view(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=1).ravel()[:count]


class TreesFormat(SampledFormat):
    """The layout ``trees``."""

    files: ClassVar[dict[str, str]] = SampledFormat.files | {POSITIONS: "<u4[n, N]"}
    node_bytes = 4
    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Return True for all samples."""
        return True

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the groups, padded to whole lines."""
        return tree_words(members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where the trees begin, in the form of a kernel's row, and p."""
        return base, base, 0, members

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which every node meets another."""
        return tree_words(nodes)

    def finish(
        self, path: Path, nodes: int, samples: Iterable[tuple[Words, int]], memory: int
    ) -> dict[str, Entry]:
        """Write the positions."""
        file = path.with_name(path.name + POSITIONS)
        return {file.name: write_positions(file, nodes, samples, memory)}


WIDTH = 6
"""Numbers that locate a sample."""
_RUN = 13
"""Bits of a run without its first node."""
_BEHIND = 2
"""Words after the last run, because runs are read in words of 64 bits."""


def bits_of(count: int) -> int:
    """Return the bits of the numbers below ``count``."""
    return max(1, (count - 1).bit_length())


def parts_of(nodes: int, runs: int) -> tuple[int, int, int]:
    """Return the words of the directory, the order and the runs of a sample."""
    order, size = runs * bits_of(runs), runs * (bits_of(nodes) + _RUN)
    return 3 * (nodes // 64 + 1), -(-order // 32), -(-size // 32)


def packed_words(nodes: int, runs: int) -> int:
    """Return the 32-bit words of a blob."""
    return padded(sum(parts_of(nodes, runs)) + _BEHIND)


class PackedFormat(SampledFormat):
    """The layout ``packed``."""

    carry_node = 19
    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Return True for all samples."""
        return True

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the arrays, padded to whole lines."""
        return packed_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where directory, order and runs begin; r, w and o."""
        directory, order, _ = parts_of(nodes, members)
        begins = base, base + directory, base + directory + order
        return *begins, members, bits_of(nodes), bits_of(members)

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which every run is one node."""
        return packed_words(nodes, nodes)


_MOST_POINTS = 2**32 - 1


def check_points(sample: int, points: int) -> None:
    """Raise :class:`ResourceError` if paths have more points than can be numbered."""
    if points > _MOST_POINTS:
        raise ResourceError(
            f"sample {sample} has {points:,} points of walks; the layout paths holds "
            f"{_MOST_POINTS:,} at most. Choose a smaller length, or the layout trees"
        )


def eighths(nodes: int) -> int:
    """Return the words that hold four bits per node."""
    return -(-nodes // 8)


def path_words(nodes: int, points: int) -> int:
    """Return the 32-bit words of a blob."""
    return padded(nodes + tree_words(nodes) + 2 * eighths(nodes) + points)


class PathsFormat(SampledFormat):
    """The layout ``paths``."""

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the arrays, padded to whole lines."""
        return path_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where position and trees begin; 1; nodes; where steps, begin and point begin; and
        p. The first four are a row of kernels.
        """
        words, steps = eighths(nodes), base + nodes + tree_words(nodes)
        begins = steps, steps + words, steps + 2 * words
        return base, base + nodes, 1, nodes, *begins, members

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the words of a sample in which no walks meet."""
        return path_words(nodes, nodes * settings[LENGTH])


def compact_words(nodes: int, members: int) -> int:
    """Return the 32-bit words of a blob."""
    return padded(2 * nodes + 1 + members)


class CompactFormat(SampledFormat):
    """The layout ``compact``."""

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the words of the arrays, padded to whole lines."""
        return compact_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return where forward, begin and child begin, m, and the length of walks."""
        return base, base + nodes, base + 2 * nodes + 1, members, settings[LENGTH]

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the maximum number of words: that of a graph in which every node has an
        in-link.
        """
        return compact_words(nodes, nodes)


_MOST, _LEAST = 1 << 24, 1 << 20
"""Most and least bytes of strips."""


def write_positions(
    path: Path, nodes: int, samples: Iterable[tuple[Words, int]], memory: int
) -> Entry:
    """Write the positions of this many ``nodes`` in the trees of some ``samples``, each with its
    words and number of members, within a quarter of ``memory``; return the entry of the file.

    Builds, merges and refreshes make them alike, when all samples are there: a column for each
    sample into a scratch file, then strips of rows. Cost: a pass over the members, and each
    position is written twice. Memory: two strips, or a piece of a column.
    """
    from cocite.kernels import trees
    from cocite.storage import ArrayWriter, evict
    from cocite.storage.spool import ScratchFile

    room = max(_LEAST, min(_MOST, memory // 4))
    scratch, count = ScratchFile(path.parent), 0
    column = np.empty(min(nodes, room // 4), np.uint32)
    for words, members in samples:
        for low in range(0, nodes, column.size):
            piece = column[: nodes - low]
            trees.seat(np.uint64(words.ctypes.data), members, np.uint32(low), piece)
            scratch.write(4 * (count * nodes + low), piece)
        evict(words)
        count += 1
    del column
    step = min(nodes, max(1, room // (8 * count)))
    with ArrayWriter(path, np.uint32, (count,)) as writer:
        for low in range(0, nodes, step):
            strip = np.empty((count, min(step, nodes - low)), np.uint32)
            for number, row in enumerate(strip):
                scratch.read(4 * (number * nodes + low), row)
            writer.write(strip.T)
    return writer.finished
