"""The trees layout: one sample as one blob of 32-bit words.

    position[nodes]          where each node stands, 2**32 - 1 if it met nobody
    member[p]                the nodes in dendrogram order, tree behind tree
    label[ceil(p / 8)]       the labels, eight half-bytes to a word, low first
    padding                  zeros, to a multiple of 16 words (a cache line)

p is the number of nodes that met another one. From ``nodes`` and p everything follows, so a
shard, which is nothing but its samples' blobs one behind the other, needs no table of its own:
shards of any size hold the same bytes in the same order.

Size: 8.5 bytes a node and sample at most. Memory to make one: that, and 26 bytes a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.engine import FingerprintGraph, Step, Walker, walker_bytes
from cocite.graph import Graph

__all__ = ["Blob", "TreeMaker", "blob_words", "maker_bytes", "place_blobs"]

_LINE = 16


@dataclass(frozen=True)
class Blob:
    """One sample: its words, how many members it has, live tokens a step, XXH3-64."""

    words: NDArray[np.uint32]
    members: int
    live: tuple[int, ...]
    digest: int


def blob_words(nodes: int, members: int) -> int:
    """32-bit words of a blob."""
    words = nodes + members + -(-members // 8)
    return -(-words // _LINE) * _LINE


def place_blobs(nodes: int, members: Sequence[int]) -> NDArray[np.uint64]:
    """uint64[samples, 4] for the kernels: where position, member and label begin, and p."""
    blobs = np.empty((len(members), 4), np.uint64)
    base = 0
    for sample, count in enumerate(members):
        blobs[sample] = base, base + nodes, base + nodes + count, count
        base += blob_words(nodes, count)
    return blobs


class TreeMaker:
    """Makes blobs; owns a walker and scratch memory, so one for each thread."""

    def __init__(self, graph: Graph, step: Step, length: int, seed: int) -> None:
        self._walker = Walker(graph, step, length, seed)
        self._joined = np.empty(graph.nodes, np.uint8)

    def __call__(self, sample: int) -> Blob:
        """The blob of sample number ``sample``."""
        from cocite.kernels import trees

        found: FingerprintGraph = self._walker(sample)
        nodes = self._joined.size
        words = np.empty(blob_words(nodes, nodes), np.uint32)
        members = int(
            trees.lay_out(
                found.parent, found.label, found.extent, words[:nodes], words[nodes:], self._joined
            )
        )
        words = words[: blob_words(nodes, members)]
        words[nodes + members :] = 0
        labels = words[nodes + members :].view(np.uint8)
        trees.pack_labels(self._joined[:members], labels)
        digest = xxhash.xxh3_64_intdigest(words.view(np.uint8).data)
        return Blob(words, members, found.live, digest)


def maker_bytes(nodes: int) -> int:
    """The memory that one :class:`TreeMaker` takes, with the blob it makes."""
    return walker_bytes(nodes) + nodes + 4 * blob_words(nodes, nodes)
