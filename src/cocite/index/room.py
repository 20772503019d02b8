"""How a build fits its memory budget: how many threads, how many blocks.

    one block      own + graph + threads * maker <= budget       the graph stays in memory
    many blocks    own + maker + largest block <= budget         one thread, block after block

Block limits are nodes: a block is a range of destinations whose offsets and in-links take at most
so many bytes (8 a node, 4 a link). A node's in-links are never cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from cocite.errors import ResourceError, UsageError
from cocite.graph import Graph
from cocite.index.trees import maker_bytes
from cocite.memory import available, format_size

__all__ = ["Room", "cut_blocks", "plan_memory"]

_OWN_MEMORY = 150 << 20
_LEAST_BLOCK = 16 << 20


@dataclass(frozen=True)
class Room:
    """What a build may use: ``cuts`` is the first node of every block but the first."""

    memory: int
    threads: int
    cuts: tuple[int, ...]

    @property
    def keep(self) -> bool:
        """Whether blobs live on while the next ones are made."""
        return self.threads > 1

    def __str__(self) -> str:
        text = f"{format_size(self.memory)} of memory on {self.threads} thread"
        text += "s" * (self.threads > 1)
        if self.cuts:
            text += f", {len(self.cuts) + 1} blocks of the graph one after another"
        return text


def plan_memory(graph: Graph, threads: int, memory: int, blocks: int | None) -> Room:
    """The most threads that fit beside the whole graph; else blocks. ``blocks`` forces a number.

    Raises :class:`ResourceError` if not even one thread with small blocks fits.
    """
    nodes = graph.nodes
    links = graph.in_offsets.nbytes + graph.in_sources.nbytes
    if blocks is not None:
        if blocks < 1:
            raise UsageError(f"blocks is {blocks}; it is 1 or more")
        need = _OWN_MEMORY + maker_bytes(nodes, False) + -(-links // blocks)
        return Room(need, 1, _cut_evenly(graph, blocks))
    for count in range(threads, 0, -1):
        need = _OWN_MEMORY + links + count * maker_bytes(nodes, count > 1)
        if need <= memory:
            return Room(need, count, ())
    least = _OWN_MEMORY + maker_bytes(nodes, False)
    if memory < least + min(_LEAST_BLOCK, links):
        raise ResourceError(
            f"a graph of {nodes:,} nodes needs {format_size(least + min(_LEAST_BLOCK, links))} of "
            f"memory to index, in blocks and with one thread; {format_size(memory)} may be used "
            f"and {format_size(available())} are free. Give more with --memory"
        )
    return Room(memory, 1, cut_blocks(graph, memory - least))


def cut_blocks(graph: Graph, block: int) -> tuple[int, ...]:
    """The first node of every block but the first, for blocks of at most ``block`` bytes."""
    cuts: list[int] = []
    first = 0
    while True:
        fitting = _first_beyond(graph, _bytes_before(graph, first) + block) - 1
        first = max(fitting, first + 1)  # a node alone may be larger than a block
        if first >= graph.nodes:
            return tuple(cuts)
        cuts.append(first)


def _cut_evenly(graph: Graph, blocks: int) -> tuple[int, ...]:
    """Cuts into ``blocks`` blocks of about equal size; fewer if there are fewer nodes."""
    whole = _bytes_before(graph, graph.nodes)
    cuts = {_first_beyond(graph, whole * i // blocks) for i in range(1, blocks)}
    return tuple(sorted(cuts - {0, graph.nodes, graph.nodes + 1}))


def _bytes_before(graph: Graph, node: int) -> int:
    """What the rows of all smaller nodes take."""
    return 8 * node + 4 * int(graph.in_offsets[node])


def _first_beyond(graph: Graph, size: int) -> int:
    """The first node with more than ``size`` bytes before it; nodes + 1 if none has."""
    low, high = 0, graph.nodes + 1
    while low < high:
        middle = (low + high) // 2
        if _bytes_before(graph, middle) > size:
            high = middle
        else:
            low = middle + 1
    return low
