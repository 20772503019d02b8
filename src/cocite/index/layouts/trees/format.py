"""Array formats of walk samples (``storage/FORMAT.md``).

    trees      at most 8.5 bytes per node per sample, 4 of them in the positions file
    packed     w + o + 13 bits per run and 1.5 bytes per node; 3.1 bytes per node on cnr-2000, and
               6.6 with shuffled ids, because a run has up to 32 consecutive ids
    paths      9.5 bytes per node, and 4 per point; web graphs have about one point per node
    compact    12 bytes per node, for walks of any length

In ``packed``, w and o are the bit widths of node ids and of run numbers. Its trees are those of the
``trees`` layout, so answers are bit-identical. In ``paths``, a walk that meets the walk of a
smaller node continues as that walk, so each point is stored once.

Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.1; for paths and compact,
their *A scalable randomized method to compute link-based similarity rank on the web graph*,
sections 2 (Algorithm 1) and 3. The runs, and the idea to store shared walks once, are our own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cocite.constants import Labels, Words
from cocite.errors import ResourceError
from cocite.index.layouts.contract import SAMPLES_FILES, SampledFormat, Samples, padded
from cocite.kernels import trees
from cocite.measures import LENGTH, PartSettings
from cocite.storage import ArrayWriter, Entry, evict

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


def group_trees(member: Words, joined: Labels, out: Words | None = None) -> Words:
    """Write members and one-byte labels in groups to ``out``, which must be zero after the last
    whole group, or to a new array; return the array.
    """
    out = np.zeros(tree_words(member.size), np.uint32) if out is None else out
    groups, full = _groups(out, member.size), member.size // GROUP
    groups[:full, :GROUP] = member[: full * GROUP].reshape(full, GROUP)
    groups[full:, : member.size % GROUP] = member[full * GROUP :]
    packed = np.zeros(GROUP // 2 * len(groups), np.uint8)
    trees.pack_labels(joined, packed)
    groups[:, GROUP:] = packed.view(np.uint32).reshape(len(groups), GROUP // 8)
    return out


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


_MOST, _LEAST = 1 << 24, 1 << 20
"""Maximum and minimum bytes of strips."""


def write_positions(path: Path, nodes: int, samples: Samples, memory: int) -> dict[str, Entry]:
    """Write the positions of all nodes in the trees of ``samples`` (words, member count); return
    the file's entry.

    Each sample's column goes to a scratch file, which is then read in strips of rows. Costs one
    pass over the members, and writes each position twice. Uses at most a quarter of ``memory``, but
    at least 1 MiB: two strips, or a chunk of a column.
    """
    from cocite.storage.spool import ScratchFile

    room, count = max(_LEAST, min(_MOST, memory // 4)), 0
    scratch, column = ScratchFile(path.parent), np.empty(min(nodes, room // 4), np.uint32)
    for words, members in samples:
        for low in range(0, nodes, column.size):
            piece = column[: nodes - low]
            trees.seat(np.uint64(words.ctypes.data), members, np.uint32(low), piece)
            scratch.write(4 * (count * nodes + low), piece)
        evict(words)
        count += 1
    del column
    step = min(nodes, max(1, room // (8 * count)))
    with ArrayWriter(path.with_name(path.name + POSITIONS), np.uint32, (count,)) as writer:
        for low in range(0, nodes, step):
            strip = np.empty((count, min(step, nodes - low)), np.uint32)
            for number, row in enumerate(strip):
                scratch.read(4 * (number * nodes + low), row)
            writer.write(strip.T)
    return {path.name + POSITIONS: writer.finished}


TREES = SampledFormat(
    files={**SAMPLES_FILES, POSITIONS: "<u4[n, N]"},
    size=lambda nodes, members, settings: tree_words(members),
    row=lambda base, nodes, members, settings: (base, base, 0, members),
    selects=True,
    carries=lambda settings: True,
    node_bytes=4,
    finish=write_positions,
)
"""The ``trees`` layout. Kernel rows: the offset of the trees (twice), 0, and the member count."""


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


def _packed_row(base: int, nodes: int, runs: int, settings: PartSettings) -> tuple[int, ...]:
    directory, order, _ = parts_of(nodes, runs)
    begins = base, base + directory, base + directory + order
    return *begins, runs, bits_of(nodes), bits_of(runs)


PACKED = SampledFormat(
    size=lambda nodes, members, settings: packed_words(nodes, members),
    row=_packed_row,
    selects=True,
    carries=lambda settings: True,
    carry_node=19,
)
"""The ``packed`` layout. Kernel rows: the offsets of directory, order and runs; the run count; and
w and o.
"""


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


def _paths_row(base: int, nodes: int, points: int, settings: PartSettings) -> tuple[int, ...]:
    words, steps = eighths(nodes), base + nodes + tree_words(nodes)
    return base, base + nodes, 1, nodes, steps, steps + words, steps + 2 * words, points


PATHS = SampledFormat(
    size=lambda nodes, members, settings: path_words(nodes, members),
    row=_paths_row,
    most_members=lambda nodes, settings: nodes * settings[LENGTH],
)
"""The ``paths`` layout. Kernel rows: the offsets of position and trees; 1; nodes; the offsets of
steps, begin and point; and the point count. The first four are a kernel row of the ``trees``
layout.
"""


def compact_words(nodes: int, members: int) -> int:
    """Return the size of a compact blob in 32-bit words."""
    return padded(2 * nodes + 1 + members)


COMPACT = SampledFormat(
    size=lambda nodes, members, settings: compact_words(nodes, members),
    row=lambda base, nodes, members, settings: (
        *(base, base + nodes, base + 2 * nodes + 1),
        *(members, settings[LENGTH]),
    ),
)
"""The ``compact`` layout. Kernel rows: the offsets of forward, begin and child; the member count;
and the length.
"""
