"""How a build fits its memory budget: how many threads, how many blocks, where tokens lie.

    in memory        graph + threads * maker <= budget         the graph stays in memory
    semi-external    maker + largest block <= budget           one thread, block after block
    external         buffers + largest block <= budget         tokens and trees in files, too

A maker takes 26.5 bytes a node. Below that the external form takes over: a block is 21 bytes a node
and 4 a link of its own there, buffers are a quarter of the budget, 16 MiB at most. Its
memory does not grow with the graph; only, a graph is cut into some hundred blocks at most, so that
the budget is no less than a 256th of all blocks (and 4 MiB).

The budget is for the data; Python, its libraries and the kernels take some 150 MB beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from cocite.engine import BLOCK_NODE, ROW_ROOM
from cocite.errors import ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import cut_blocks, cut_evenly
from cocite.index.trees import maker_bytes
from cocite.memory import OWN_MEMORY, available, format_size

__all__ = ["Room", "plan_memory"]

_LEAST_BLOCK = 16 << 20
_LEAST_MEMORY, _LEAST_PART = 4 << 20, 256
_MOST_ROWS = (16 << 20) // ROW_ROOM
_MOST_BLOCKS = 1024
"""A table of four bytes for each pair of blocks is in memory, twice."""


@dataclass(frozen=True)
class Room:
    """What a build may use: ``cuts`` is the first node of every block but the first; ``asked`` how
    many threads were wanted. ``rows`` is how many tokens are under way in the external form, 0 for
    the others; ``tokens`` the bytes that tokens and trees would take in memory, if that is why.
    """

    memory: int
    threads: int
    cuts: tuple[int, ...]
    asked: int = 0
    rows: int = 0
    tokens: int = 0

    @property
    def external(self) -> bool:
        """Whether tokens and trees lie in files, too."""
        return self.rows > 0

    @property
    def keep(self) -> bool:
        """Whether blobs live on while the next ones are made."""
        return self.threads > 1

    def __str__(self) -> str:
        text = f"{format_size(self.memory + OWN_MEMORY)} of memory on {self.threads} thread"
        text += "s" * (self.threads > 1)
        if self.threads < self.asked:
            text += f" (of {self.asked}: the memory given holds no more)"
        blocks = len(self.cuts) + 1
        if self.external:
            text += f", {blocks} block{'s' * (blocks > 1)} from disk, tokens too"
            if self.tokens:
                text += f": in memory they take {format_size(self.tokens)}"
        elif self.cuts:
            text += f", {blocks} blocks of the graph one after another"
        return text


def plan_memory(
    graph: Graph, threads: int, memory: int, blocks: int | None, external: bool = False
) -> Room:
    """The most threads that fit beside the whole graph; else blocks; else the external form.

    ``blocks`` forces a number of blocks, ``external`` the external form.
    Raises :class:`ResourceError` if not even that fits.
    """
    if blocks is not None and blocks < 1:
        raise UsageError(f"blocks is {blocks}; it is 1 or more")
    nodes = graph.nodes
    links = graph.in_offsets.nbytes + graph.in_sources.nbytes
    least = maker_bytes(nodes, False)
    if not external and blocks is not None and least + -(-links // blocks) <= memory:
        return Room(least + -(-links // blocks), 1, cut_evenly(graph, blocks))
    if not external and blocks is None:
        for count in range(threads, 0, -1):
            need = links + count * maker_bytes(nodes, count > 1)
            if need <= memory:
                return Room(need, count, (), threads)
        if memory >= least + min(_LEAST_BLOCK, links):
            # Half of what is left: the pages of a block come along with some of their neighbours.
            return Room(memory, 1, cut_blocks(graph, (memory - least) // 2), threads)
    return _plan_external(graph, threads, memory, blocks, 0 if external else least)


def _plan_external(
    graph: Graph, threads: int, memory: int, blocks: int | None, tokens: int
) -> Room:
    """Blocks with tokens on disk; ``tokens`` is what they take in memory, if they do not fit."""
    nodes = graph.nodes
    links = graph.in_offsets.nbytes + graph.in_sources.nbytes
    whole = links + BLOCK_NODE * nodes
    rows = max(1, min(_MOST_ROWS, memory // 4 // ROW_ROOM))
    if blocks is not None:
        if blocks > _MOST_BLOCKS:
            raise UsageError(
                f"blocks is {blocks:,}; with tokens on disk there are {_MOST_BLOCKS:,} at most"
            )
        need = rows * ROW_ROOM + -(-whole // blocks)
        return Room(need, 1, cut_evenly(graph, blocks), rows=rows, tokens=tokens)
    needed = max(_LEAST_MEMORY, whole // _LEAST_PART)
    if memory < needed:
        raise ResourceError(
            f"a graph of {nodes:,} nodes needs {format_size(needed)} of memory to index, in blocks "
            f"and with all tokens on disk; {format_size(memory)} may be used and "
            f"{format_size(available())} are free. Give more with --memory"
        )
    block = (memory - rows * ROW_ROOM) // 2
    cuts = cut_blocks(graph, block, BLOCK_NODE)
    return Room(min(memory, rows * ROW_ROOM + whole), 1, cuts, threads, rows, tokens)
