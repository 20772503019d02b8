"""Array formats of walk samples (``storage/FORMAT.md``).

    trees      at most 8.5 bytes per node and sample, 4 of them in the positions file
    packed     w + o + 13 bits per run and 1.5 bytes per node; 3.1 bytes per node on cnr-2000, and
               6.6 with shuffled ids, as a run has up to 32 nodes with consecutive ids
    paths      9.5 bytes per node, and 4 per point; webs have about one point per node
    compact    12 bytes per node, for walks of any length

Packed trees equal those of the layout ``trees``, so answers are equal to the bit. In ``paths``, a
walk that meets the walk of a smaller node continues as that walk, so each point is stored once.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1; for paths and compact, their *A
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
"""File name of uint32[nodes, samples]: each node's position in each sample, or 2**32 - 1 if the
node's walk meets no other walk. A query reads one or two rows.
"""
GROUP, GROUP_WORDS = 64, 72
"""Members and words of a tree group: the members, then their labels, eight per word. So a small
tree lies on one memory page, and scanning labels reads fewer cache lines than scanning members.
"""


def tree_words(members: int) -> int:
    """Return the size of a sample's trees in 32-bit words."""
    return padded(GROUP_WORDS * -(-members // GROUP))


def _groups(words: Words, members: int) -> Words:
    groups = -(-members // GROUP)
    return words[: GROUP_WORDS * groups].reshape(groups, GROUP_WORDS)


def group_trees(member: Words, joined: Labels, out: Words) -> None:
    """Write members and one-byte labels to ``out`` in groups; ``out`` must be zero after the last
    whole group.
    """
    from cocite.kernels import trees

    groups, full = _groups(out, member.size), member.size // GROUP
    groups[:full, :GROUP] = member[: full * GROUP].reshape(full, GROUP)
    groups[full:, : member.size % GROUP] = member[full * GROUP :]
    packed = np.zeros(GROUP // 2 * len(groups), np.uint8)
    trees.pack_labels(joined, packed)
    groups[:, GROUP:] = packed.view(np.uint32).reshape(len(groups), GROUP // 8)


def members_of(words: Words, members: int) -> Words:
    """Return uint32[members]: the tree members."""
    return _groups(words, members)[:, :GROUP].reshape(-1)[:members]


def labels_of(words: Words, members: int) -> Labels:
    """Return uint8[members]: the tree labels."""
    return unpacked(np.ascontiguousarray(_groups(words, members)[:, GROUP:]).reshape(-1), members)


def unpacked(words: Words, count: int) -> Labels:
    """Unpack four-bit integers to uint8[count]."""
    packed = words.view(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=1).ravel()[:count]


class TreesFormat(SampledFormat):
    """The layout ``trees``."""

    files: ClassVar[dict[str, str]] = SampledFormat.files | {POSITIONS: "<u4[n, N]"}
    node_bytes = 4
    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Return True."""
        return True

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the size of the groups, padded to whole cache lines."""
        return tree_words(members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return the kernel row: the offset of the trees (twice), 0, and the member count."""
        return base, base, 0, members

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the size of a sample in which every node meets another node."""
        return tree_words(nodes)

    def finish(
        self, path: Path, nodes: int, samples: Iterable[tuple[Words, int]], memory: int
    ) -> dict[str, Entry]:
        """Write the positions."""
        file = path.with_name(path.name + POSITIONS)
        return {file.name: write_positions(file, nodes, samples, memory)}


WIDTH = 6
"""Values in a packed sample's kernel row."""
_RUN = 13
"""Bits of a run, excluding its first node."""
_BEHIND = 2
"""Padding words after the last run, because runs are read as 64-bit words."""


def bits_of(count: int) -> int:
    """Return the bit width of integers below ``count``."""
    return max(1, (count - 1).bit_length())


def parts_of(nodes: int, runs: int) -> tuple[int, int, int]:
    """Return the sizes in words of a sample's directory, order, and runs."""
    order, size = runs * bits_of(runs), runs * (bits_of(nodes) + _RUN)
    return 3 * (nodes // 64 + 1), -(-order // 32), -(-size // 32)


def packed_words(nodes: int, runs: int) -> int:
    """Return the size of a packed blob in 32-bit words."""
    return padded(sum(parts_of(nodes, runs)) + _BEHIND)


class PackedFormat(SampledFormat):
    """The layout ``packed``."""

    carry_node = 19
    selects = True

    def carries(self, settings: PartSettings) -> bool:
        """Return True."""
        return True

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the size of the arrays, padded to whole cache lines."""
        return packed_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return the offsets of directory, order and runs; and r, w and o."""
        directory, order, _ = parts_of(nodes, members)
        begins = base, base + directory, base + directory + order
        return *begins, members, bits_of(nodes), bits_of(members)

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the size of a sample in which every run is one node."""
        return packed_words(nodes, nodes)


_MOST_POINTS = 2**32 - 1


def check_points(sample: int, points: int) -> None:
    """Raise :class:`ResourceError` if paths have more points than uint32 can number."""
    if points > _MOST_POINTS:
        raise ResourceError(
            f"sample {sample} has {points:,} walk points; the layout paths can store at most "
            f"{_MOST_POINTS:,}. Choose a smaller length, or the layout trees"
        )


def eighths(nodes: int) -> int:
    """Return the number of words for four bits per node."""
    return -(-nodes // 8)


def path_words(nodes: int, points: int) -> int:
    """Return the size of a paths blob in 32-bit words."""
    return padded(nodes + tree_words(nodes) + 2 * eighths(nodes) + points)


class PathsFormat(SampledFormat):
    """The layout ``paths``."""

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the size of the arrays, padded to whole cache lines."""
        return path_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return the offsets of position and trees; 1; nodes; the offsets of steps, begin and
        point; and p. The first four are a kernel row of the layout ``trees``.
        """
        words, steps = eighths(nodes), base + nodes + tree_words(nodes)
        begins = steps, steps + words, steps + 2 * words
        return base, base + nodes, 1, nodes, *begins, members

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the size of a sample in which no walks meet."""
        return path_words(nodes, nodes * settings[LENGTH])


def compact_words(nodes: int, members: int) -> int:
    """Return the size of a compact blob in 32-bit words."""
    return padded(2 * nodes + 1 + members)


class CompactFormat(SampledFormat):
    """The layout ``compact``."""

    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the size of the arrays, padded to whole cache lines."""
        return compact_words(nodes, members)

    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return the offsets of forward, begin and child; m; and the walk length."""
        return base, base + nodes, base + 2 * nodes + 1, members, settings[LENGTH]

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the size of a sample in which every node moves."""
        return compact_words(nodes, nodes)


_MOST, _LEAST = 1 << 24, 1 << 20
"""Maximum and minimum bytes of strips."""


def write_positions(
    path: Path, nodes: int, samples: Iterable[tuple[Words, int]], memory: int
) -> Entry:
    """Write the positions of all nodes in the trees of ``samples`` (words, member count); return
    the file's entry.

    Each sample's column goes to a scratch file, which is then read in strips of rows. Costs one
    pass over the members, and writes each position twice. Uses at most a quarter of ``memory``, but
    at least 1 MiB: two strips, or a chunk of a column.
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
