"""Whether the files of a part hold what ``FORMAT.md`` says, beyond that their checksums fit.

Checksums tell chance. Who signs a file of his own makes them fit: so ``cocite verify`` goes through
what is in the files, too, and so does what copies rows out of them into new ones. Kernels check for
themselves, as they go, whatever could lead them out of an array.

Cost: a pass over the files, in numpy; a sample at a time, at most four times its size in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cocite.codes import NOWHERE
from cocite.graph.rows import rows_fault
from cocite.layouts.format import DIGESTS, MEMBERS, shard_file
from cocite.layouts.stored import StoredPart
from cocite.measures import LENGTH, SAMPLES, PartSettings
from cocite.store import forget

__all__ = ["Fault", "part_faults"]

Fault = tuple[str, str]
"""A file behind its part's prefix, and what is wrong with it, in words."""
_PIECE = 1 << 20
_Words = NDArray[np.uint32]


def part_faults(part: StoredPart) -> Iterator[Fault]:
    """What is wrong with a part, a file at a time; of shards the first sample that is not sound.
    Files that are lost are left out.
    """
    if SAMPLES in part.settings:
        yield from _sample_faults(part)
        return
    ends: dict[str, tuple[str, int]] = {}
    for name in part.format.files if part.format else ():
        if not part.store.has(part.prefix + name):
            continue
        if name.endswith("offsets"):
            ends[name] = _rows_of(part, name)
    for name, (members, bound) in ends.items():
        if bound < 0:
            fault = _words_fault(part.array(name), part.array(members))
        else:
            twice = name == "any_offsets"
            fault = rows_fault(part.array(name), part.array(members), bound, twice=twice)
        if fault:
            yield (name if "begin" in fault else members), fault
    for name in part.format.files if part.format else ():
        if part.store.has(part.prefix + name) and part.array(name).dtype.kind == "f":
            values = part.array(name).reshape(-1)
            if not _all(values, np.isfinite):
                yield name, "there is what is no number"
            elif "weights" in name and not _all(values, lambda piece: piece > 0):
                yield name, "there are weights that are not above 0"


def _rows_of(part: StoredPart, name: str) -> tuple[str, int]:
    """The members of rows that begin as ``name`` says, and what they are below; -1 for letters."""
    words = part.array("words.offsets").size - 1 if part.layout == "text" else 0
    if name == "words.offsets":
        return "words.letters", -1
    if name == "texts.offsets":
        return "texts.words", words
    if name.endswith(".offsets"):
        return name.replace("offsets", "nodes"), part.nodes
    return name.replace("offsets", "neighbours"), part.nodes


def _words_fault(offsets: NDArray[np.uint64], letters: NDArray[np.uint8]) -> str:
    """What is wrong with words one behind the other, in ascending order of their bytes."""
    ends = offsets.astype(np.int64)
    if ends[0] != 0 or ends[-1] != letters.size or (np.diff(ends) < 1).any():
        return "words do not begin and end with the letters"
    whole = letters.tobytes()
    words = [whole[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    if any(a >= b for a, b in pairwise(words)):
        return "words do not ascend"
    try:
        for word in words:
            word.decode()
    except UnicodeDecodeError:
        return "there is a word that is no text"
    return ""


def _all(values: NDArray[np.floating], fine: Callable[..., NDArray[np.bool_]]) -> bool:
    """Whether all of an array are so; in pieces, which are given back."""
    found = all(bool(fine(values[at : at + _PIECE]).all()) for at in range(0, values.size, _PIECE))
    forget(values)
    return found


def _sample_faults(part: StoredPart) -> Iterator[Fault]:
    from xxhash import xxh3_64_intdigest

    sound = _SAMPLES[part.layout]
    digests, oldest = part.array(DIGESTS), part.freshness.numbers.start
    for shard in part.shards:
        ends = [*shard.blobs[1:, 0].tolist(), shard.words.size]
        for at, (begin, end) in enumerate(zip(shard.blobs[:, 0].tolist(), ends, strict=True)):
            words, number = shard.words[begin:end], shard.number + at
            count = int(part.array(MEMBERS)[number - oldest])
            fault = sound(words, part.nodes, count, part.settings)
            if not fault and xxh3_64_intdigest(words.view(np.uint8).data) != int(
                digests[number - oldest]
            ):
                fault = "it has another digest"
            forget(words)
            if fault:
                yield shard_file(shard.number), f"in sample {number} {fault}"
                break


def _labels(words: _Words, count: int) -> NDArray[np.uint8]:
    """uint8[count]: half-bytes, eight to a word, low first."""
    packed = words.view(np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=1).ravel()[:count]


def _trees(words: _Words, nodes: int, count: int, settings: PartSettings) -> str:
    position, member = words[:nodes], words[nodes : nodes + count]
    labels = _labels(words[nodes + count :], count)
    if count and int(member.max()) >= nodes:
        return "there are members that are no nodes"
    if int(np.count_nonzero(position != NOWHERE)) != count or not np.array_equal(
        position[member], np.arange(count)
    ):
        return "positions are not those of the members"
    return _label_fault(labels, settings)


def _label_fault(labels: NDArray[np.uint8], settings: PartSettings) -> str:
    if labels.size and labels[0] != 0:
        return "the first tree does not begin with 0"
    most = int(labels.max(initial=0))
    return f"there is a label {most} in walks of {settings[LENGTH]} steps" * (
        most > settings[LENGTH]
    )


def _packed(words: _Words, nodes: int, count: int, settings: PartSettings) -> str:
    from cocite.kernels import packed
    from cocite.layouts.packed.build import packed_blob
    from cocite.layouts.packed.format import PackedFormat

    if not 0 < count <= nodes:
        return f"there are {count} runs of {nodes} nodes"
    blobs, size = PackedFormat().place(nodes, [count], settings)
    row = blobs[0]
    row[:3] = row[:3] * np.uint64(4) + np.uint64(words.ctypes.data)
    member, joined = np.empty(nodes, np.uint32), np.empty(nodes, np.uint8)
    members = int(packed.unpack(row, member, joined)) if size == words.size else packed.DAMAGED
    if members == packed.DAMAGED:
        return "runs are not those of all nodes"
    member, joined = member[:members], joined[:members]
    if np.unique(member).size != members:
        return "there are nodes in two runs"
    again = packed_blob(member, joined, np.empty(nodes, np.uint32))
    if again.members != count or not np.array_equal(np.concatenate([*again.parts]), words):
        return "runs are not where nodes say they are"
    return _label_fault(joined, settings)


def _paths(words: _Words, nodes: int, count: int, settings: PartSettings) -> str:
    position, member = words[:nodes], words[nodes : 2 * nodes]
    if int(member.max()) >= nodes or not np.array_equal(position[member], np.arange(nodes)):
        return "positions are not those of the members"
    eighths = -(-nodes // 8)
    rest = words[2 * nodes :]
    labels, steps = _labels(rest, nodes), _labels(rest[eighths:], nodes).astype(np.int64)
    ends = np.cumsum(steps)
    begins = np.concatenate(([0], ends))[:-1][::8]
    if ends[-1] != count or not np.array_equal(rest[2 * eighths : 3 * eighths], begins):
        return "own points do not begin where they are said to"
    if count and int(rest[3 * eighths : 3 * eighths + count].max()) >= nodes:
        return "there are points that are no nodes"
    return _label_fault(labels, settings)


def _compact(words: _Words, nodes: int, count: int, settings: PartSettings) -> str:
    forward, begin = words[:nodes], words[nodes : 2 * nodes + 1].astype(np.int64)
    child = words[2 * nodes + 1 : 2 * nodes + 1 + count]
    if begin[0] != 0 or begin[-1] != count or (np.diff(begin) < 0).any():
        return "the beginnings of children do not ascend"
    if count and int(child.max()) >= nodes:
        return "there are children that are no nodes"
    parents = np.repeat(np.arange(nodes), np.diff(begin))
    if int(np.count_nonzero(forward != NOWHERE)) != count or (forward[child] != parents).any():
        return "children are not those that step to a node"
    ascends = (child[1:] > child[:-1]) | (parents[1:] != parents[:-1])
    return "" if ascends.all() else "children do not ascend"


def _minhash(words: _Words, nodes: int, count: int, settings: PartSettings) -> str:
    cells = nodes * settings[LENGTH]
    cell, group = words[:cells], words[cells : cells + count].astype(np.int64)
    starts, held = np.unique(cell[cell != NOWHERE], return_counts=True)
    starts = starts.astype(np.int64)
    if not starts.size:
        return "there are groups that no node is in" * (count > 0)
    if int(starts[-1]) + 2 >= count:
        return "cells point outside of the groups"
    sizes = group[starts + 1]
    ends = starts + 2 + sizes
    if not np.array_equal(sizes, held) or not np.array_equal([0, *ends], [*starts, count]):
        return "groups are not those of their nodes"
    inside = np.ones(count, np.bool_)
    inside[starts] = inside[starts + 1] = False
    if int(group[inside].max()) >= nodes:
        return "groups have members that are no nodes"
    return ""


def _sketch(words: _Words, nodes: int, count: int, settings: PartSettings) -> str:
    beyond = nodes % 512
    if count != nodes:
        return f"its count is {count}"
    if not beyond:
        return ""
    blocks = -(-nodes // 512)
    last = words.reshape(blocks, -1, 16)[-1]
    full, bits = divmod(beyond, 32)
    more = last[:, full + 1 :].any() or (last[:, full] >> np.uint32(bits)).any()
    return "there are bits beyond the last node" if more else ""


_SAMPLES: dict[str, Callable[[_Words, int, int, PartSettings], str]] = {
    "trees": _trees,
    "packed": _packed,
    "paths": _paths,
    "compact": _compact,
    "minhash": _minhash,
    "sketch": _sketch,
}
"""What is wrong with a sample: its words, the nodes, its count in ``members``, the settings."""
