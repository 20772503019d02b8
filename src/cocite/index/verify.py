"""Verification of a store's checksums and of its conformance with ``storage/FORMAT.md``.

Each file is compared with its checksum, and the manifest's facts with the requirements for the kind
of store. Checksums detect only accidental damage, so if all match, the contents are also checked
against the format. Surplus files in the directory are listed, but are not faults.

Verification makes two or three passes over all files, in chunks, and needs at most four times a
sample's size in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NOWHERE, Bools, Labels, Words
from cocite.errors import Damaged, StoreError
from cocite.graph.blocks import rows_fault
from cocite.graph.exclude import graph_faults, name_faults, title_faults
from cocite.graph.graph import Graph, check_graph
from cocite.graph.partitions import BLOCK, BLOCKED, BlockedGraph, check_block, check_head
from cocite.index.layouts.contract import DIGESTS, MEMBERS, WANTED, is_shard, shard_file
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.snapshots import SINCE
from cocite.index.layouts.trees.format import (
    PACKED,
    POSITIONS,
    labels_of,
    members_of,
    tree_words,
    unpacked,
)
from cocite.index.manifest import DIAGONAL, IndexFacts, check_files, read_diagonal
from cocite.index.stored import StoredIndex
from cocite.measures import LENGTH, SAMPLES, PartSettings
from cocite.results import Document
from cocite.storage import MANIFEST, Manifest, Store, evict, kind_of

Fault = tuple[str, str]
"""(File name without the part's prefix, description of the damage)."""
_PIECE = 1 << 20


def part_faults(part: StoredPart) -> Iterator[Fault]:
    """Yield a part's faults: only the first damaged sample of a shard, and no lost files."""
    if SAMPLES in part.settings:
        faults = list(_sample_faults(part))
        yield from faults or (_position_faults(part) if part.layout == "trees" else ())
        return
    there = [name for name in part.format.files if part.store.has(part.prefix + name)]
    for name, members in pairwise(there):  # ids, or letters, follow their offsets
        if not name.endswith("offsets"):
            continue
        bound = _bound(part, name)
        if bound < 0:
            fault = _words_fault(part.array(name), part.array(members))
        else:
            twice = name == "any_offsets"
            fault = rows_fault(part.array(name), part.array(members), bound, twice=twice)
        if fault:
            yield (name if "offsets" in fault else members), fault
    for name in there:
        if part.array(name).dtype.kind == "f":
            values = part.array(name).reshape(-1)
            if not _all(values, np.isfinite):
                yield name, "a value is not finite"
            elif "weights" in name and not _all(values, lambda piece: piece > 0):
                yield name, "a weight is not positive"


def _bound(part: StoredPart, name: str) -> int:
    """Return the upper limit of the ids in the rows of an offsets file; -1 for letters."""
    if name == "words.offsets":
        return -1
    if name == "texts.offsets":
        return part.array("words.offsets").size - 1
    if name == "rows.offsets":  # rows and lists contain the graph's node ids
        return (part.array("columns.offsets").size - 1) // part.array("weights").size
    if name == "nearest.offsets":
        return part.array("holders.offsets").size - 1
    return part.nodes


def _words_fault(offsets: NDArray[np.uint64], letters: Labels) -> str:
    """Describe the damage in concatenated words, which must be in byte order, or return ""."""
    ends = offsets.astype(np.int64)
    if ends[0] != 0 or ends[-1] != letters.size or (np.diff(ends) < 1).any():
        return "word offsets do not span the letters"
    whole = letters.tobytes()
    words = [whole[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    if any(a >= b for a, b in pairwise(words)):
        return "words do not ascend"
    try:
        for word in words:
            word.decode()
    except UnicodeDecodeError:
        return "a word is not valid UTF-8"
    return ""


def _all(values: NDArray[np.floating], fine: Callable[..., Bools]) -> bool:
    """Return whether a condition holds for the whole array, reading it in chunks."""
    found = all(bool(fine(values[at : at + _PIECE]).all()) for at in range(0, values.size, _PIECE))
    evict(values)
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
                fault = "the digest differs"
            evict(words)
            if fault:
                yield shard_file(shard.number), f"in sample {number}, {fault}"
                break


def _trees(words: Words, nodes: int, count: int, settings: PartSettings) -> str:
    member = members_of(words, count)
    if count and int(member.max()) >= nodes:
        return "a member is not a node"
    if np.unique(member).size != count:
        return "a node occurs twice"
    return _label_fault(labels_of(words, count), settings)


def _position_faults(part: StoredPart) -> Iterator[Fault]:
    """Compare the stored positions with the members' positions."""
    from cocite.index.layouts.trees.reader import table_of
    from cocite.kernels import trees

    table, expected = table_of(part), np.empty(part.nodes, np.uint32)
    columns = part.freshness.held - part.freshness.numbers.start
    for column, (_, begin, _, count) in zip(columns.tolist(), table, strict=True):
        trees.seat(begin, int(count), np.uint32(0), expected)
        if not np.array_equal(part.array(POSITIONS)[:, column], expected):
            yield POSITIONS, f"column {column} does not match its sample"
            break


def _label_fault(labels: Labels, settings: PartSettings) -> str:
    if labels.size and labels[0] != 0:
        return "the first label is not 0"
    most = int(labels.max(initial=0))
    return f"label {most} exceeds the walk length of {settings[LENGTH]} steps" * (
        most > settings[LENGTH]
    )


def _packed(words: Words, nodes: int, count: int, settings: PartSettings) -> str:
    from cocite.index.layouts.trees.build import packed_blob
    from cocite.kernels import runs

    if not 0 < count <= nodes:
        return f"there are {count} runs for {nodes} nodes"
    blobs, size = PACKED.place(nodes, [count], settings)
    row = blobs[0]
    row[:3] = row[:3] * np.uint64(4) + np.uint64(words.ctypes.data)
    member, joined = np.empty(nodes, np.uint32), np.empty(nodes, np.uint8)
    members = int(runs.unpack(row, member, joined)) if size == words.size else runs.DAMAGED
    if members == runs.DAMAGED:
        return "the runs do not cover all nodes"
    member, joined = member[:members], joined[:members]
    if np.unique(member).size != members:
        return "a node occurs in two runs"
    again = packed_blob(member, joined, np.empty(nodes, np.uint32))
    if again.members != count or not np.array_equal(np.concatenate([*again.parts]), words):
        return "the nodes' run positions are wrong"
    return _label_fault(joined, settings)


def _paths(words: Words, nodes: int, count: int, settings: PartSettings) -> str:
    position, member = words[:nodes], members_of(words[nodes:], nodes)
    if int(member.max()) >= nodes or not np.array_equal(position[member], np.arange(nodes)):
        return "the positions do not match the members"
    eighths = -(-nodes // 8)
    rest = words[nodes + tree_words(nodes) :]
    labels, steps = labels_of(words[nodes:], nodes), unpacked(rest[:eighths], nodes)
    ends = np.cumsum(steps, dtype=np.int64)
    begins = np.concatenate(([0], ends))[:-1][::8]
    if ends[-1] != count or not np.array_equal(rest[eighths : 2 * eighths], begins):
        return "the offsets of own points are wrong"
    if count and int(rest[2 * eighths : 2 * eighths + count].max()) >= nodes:
        return "a point is not a node"
    return _label_fault(labels, settings)


def _compact(words: Words, nodes: int, count: int, settings: PartSettings) -> str:
    forward, begin = words[:nodes], words[nodes : 2 * nodes + 1].astype(np.int64)
    child = words[2 * nodes + 1 : 2 * nodes + 1 + count]
    if begin[0] != 0 or begin[-1] != count or (np.diff(begin) < 0).any():
        return "the offsets of children do not ascend"
    if count and int(child.max()) >= nodes:
        return "a child is not a node"
    parents = np.repeat(np.arange(nodes), np.diff(begin))
    if int(np.count_nonzero(forward != NOWHERE)) != count or (forward[child] != parents).any():
        return "the children of a node do not match the steps to it"
    ascends = (child[1:] > child[:-1]) | (parents[1:] != parents[:-1])
    return "" if ascends.all() else "children do not ascend"


def _minhash(words: Words, nodes: int, count: int, settings: PartSettings) -> str:
    cells = nodes * settings[LENGTH]
    cell, group = words[:cells], words[cells : cells + count].astype(np.int64)
    starts, held = np.unique(cell[cell != NOWHERE], return_counts=True)
    starts = starts.astype(np.int64)
    if not starts.size:
        return "there are groups without nodes" * (count > 0)
    if int(starts[-1]) + 2 >= count:
        return "a cell points outside the groups"
    sizes = group[starts + 1]
    ends = starts + 2 + sizes
    if not np.array_equal(sizes, held) or not np.array_equal([0, *ends], [*starts, count]):
        return "the groups do not match the nodes' cells"
    inside = np.ones(count, np.bool_)
    inside[starts] = inside[starts + 1] = False
    if int(group[inside].max()) >= nodes:
        return "a group member is not a node"
    return ""


def _sketch(words: Words, nodes: int, count: int, settings: PartSettings) -> str:
    beyond = nodes % 512
    if count != nodes:
        return f"the count is {count}"
    if not beyond:
        return ""
    blocks = -(-nodes // 512)
    last = words.reshape(blocks, -1, 16)[-1]
    full, bits = divmod(beyond, 32)
    more = last[:, full + 1 :].any() or (last[:, full] >> np.uint32(bits)).any()
    return "there are bits beyond the last node" if more else ""


_SAMPLES: dict[str, Callable[[Words, int, int, PartSettings], str]] = {
    "trees": _trees,
    "packed": _packed,
    "paths": _paths,
    "compact": _compact,
    "minhash": _minhash,
    "sketch": _sketch,
}
"""Sample checks by layout: (words, nodes, count in ``members``, settings) -> damage, or ""."""


_NAMED = 5
"""Maximum number of surplus files to list in a message."""


@dataclass(frozen=True)
class VerifyDocument(Document):
    """The result of verifying ``files`` files. ``faults`` is [] if all are intact; ``sound`` is
    true if the manifest is intact. ``left`` describes an index that has lost only samples;
    ``surplus`` lists files that are not part of the store.
    """

    path: str
    kind: str
    files: int
    bytes: int
    sound: bool
    faults: Sequence[str]
    left: str = ""
    surplus: Sequence[str] = ()

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Verify the store at ``path``; raises a :class:`~cocite.errors.StoreError`."""
        name = os.fspath(path)
        found_kind = kind_of(name)
        kind = found_kind if found_kind in ("index", BLOCKED, BLOCK) else "graph"
        store = Store(Path(name), Manifest.read(Path(name), kind))
        files = store.manifest.files
        faults = {file: fault for file in files if (fault := store.verify(file))}
        reported = _report(store)
        if not reported and not faults:
            faults = _content(store)
        left, found = "" if reported else _left(store, faults), [*reported, *faults.values()]
        return cls(name, kind, len(files), store.nbytes, not reported, found, left, store.surplus())

    def facts(self) -> dict[str, Any]:
        """Return the fields, omitting ``left`` and ``surplus`` if empty."""
        facts, spare = super().facts(), {"left": self.left, "surplus": self.surplus}
        return {name: facts[name] for name in facts if spare.get(name, True)}

    @property
    def leftovers(self) -> str:
        """Describe the surplus files, or return ""."""
        if not self.surplus:
            return ""
        more = len(self.surplus) - _NAMED
        named = ", ".join(self.surplus[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        return f"{self.path} contains files that are not part of the store: {named}"

    @property
    def verdict(self) -> str:
        """Summarize the result in a few words."""
        damaged = len(self.faults) - (not self.sound)
        files = [f"{damaged} of {self.files} files are damaged"] if damaged else []
        if self.sound:
            return files[0] if files else "all intact"
        return " and ".join(["the manifest", *files]) + ("" if files else " is damaged")


@dataclass(frozen=True)
class VerifiedLinks(Document):
    """Results for all ``stores`` of an edge list or a partitioned graph."""

    path: str
    stores: Sequence[VerifyDocument]

    def facts(self) -> dict[str, Any]:
        """Return the facts of all stores."""
        return {"path": self.path, "stores": [each.facts() for each in self.stores]}


def _left(store: Store, faults: dict[str, str]) -> str:
    """Describe an index in which only samples are damaged; return "" for other stores."""
    if store.manifest.kind != "index" or not faults or not all(map(is_shard, faults)):
        return ""
    try:
        whole = Store.open(store.path, "index", spare=faults.__contains__)
        return StoredIndex(replace(whole, lost=faults)).loss
    except StoreError as error:
        return str(error)


def _content(store: Store) -> dict[str, str]:
    """Map each file that contradicts the format, although its checksum matches, to its fault."""
    try:
        if store.manifest.kind == BLOCK:
            check_block(store.path)
            return {}
        if store.manifest.kind == BLOCKED:
            found = dict(_of_graph(BlockedGraph.open(store.path.parent)))
        elif store.manifest.kind == "graph":
            found = dict(_of_graph(Graph.open(store.path)))
        else:
            found = dict(_of_index(StoredIndex.open(store.path)))
    except StoreError as error:
        return {MANIFEST: str(error)}
    return {
        file: f"{store.path / file} matches its checksum, but violates the format: {what}"
        for file, what in found.items()
    }


def _of_graph(graph: Graph) -> Iterator[Fault]:
    if isinstance(graph, BlockedGraph):
        graph.check_links()
    else:
        yield from graph_faults(graph)
    yield from name_faults(graph.names)
    yield from title_faults(graph.titles)


def _of_index(index: StoredIndex) -> Iterator[Fault]:
    yield from name_faults(index.names)
    yield from title_faults(index.titles)
    if index.wanted is not None:
        ids = index.wanted
        if int(ids[-1]) >= index.graph_nodes or (ids[1:] <= ids[:-1]).any():
            yield WANTED, "page ids do not ascend, or are not in the graph"
    since = index.freshness.since
    if since is not None and int(since.max()) >= index.freshness.numbers.stop:
        yield SINCE, "a node is in no sample"
    for part in index.parts:
        yield from ((part.prefix + name, what) for name, what in part_faults(part))
        if index.refined:
            table = read_diagonal(part.array(DIAGONAL), index.refined[part.prefix + DIAGONAL])
            if not table.is_valid:
                yield part.prefix + DIAGONAL, "a value is not within its bounds"


def _report(store: Store) -> list[str]:
    """Return the manifest's faults."""
    try:
        if store.manifest.kind == "index":
            facts = IndexFacts.read(store.path, store.facts)
            check_files(store.path, store.manifest, facts)
        elif store.manifest.kind == BLOCKED:
            check_head(store)
        elif store.manifest.kind == "graph":
            check_graph(store)
    except Damaged as error:
        return [str(error)]
    return []
