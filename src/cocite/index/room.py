"""How a build fits its memory budget: how many threads, how many blocks.

    one block      graph + threads * maker <= budget       the graph stays in memory
    many blocks    maker + largest block <= budget         one thread, block after block

The budget is for the data; Python, its libraries and the kernels take some 150 MB beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cocite.errors import ResourceError, UsageError
from cocite.graph.blocks import cut_blocks, cut_evenly
from cocite.graph.links import Links
from cocite.memory import OWN_MEMORY, available, format_size

__all__ = ["Room", "plan_memory"]

_LEAST_BLOCK = 16 << 20


@dataclass(frozen=True)
class Room:
    """What a build may use: ``cuts`` is the first node of every block but the first; ``asked`` how
    many threads were wanted.
    """

    memory: int
    threads: int
    cuts: tuple[int, ...]
    asked: int = 0

    @property
    def keep(self) -> bool:
        """Whether blobs live on while the next ones are made."""
        return self.threads > 1

    def __str__(self) -> str:
        text = f"{format_size(self.memory + OWN_MEMORY)} of memory on {self.threads} thread"
        text += "s" * (self.threads > 1)
        if self.threads < self.asked:
            text += f" (of {self.asked}: the memory given holds no more)"
        if self.cuts:
            text += f", {len(self.cuts) + 1} blocks of the graph one after another"
        return text


def plan_memory(
    links: Links,
    threads: int,
    memory: int,
    blocks: int | None,
    maker_bytes: Callable[[int, bool], int],
) -> Room:
    """The most threads that fit beside the whole graph; else blocks. ``blocks`` forces a number.

    ``maker_bytes(nodes, keep)`` is what a maker takes, whose blobs live on if ``keep``.

    Raises :class:`ResourceError` if not even one thread with small blocks fits.
    """
    nodes, size = links.nodes, links.nbytes
    if blocks is not None:
        if blocks < 1:
            raise UsageError(f"blocks is {blocks}; it is 1 or more")
        need = maker_bytes(nodes, False) + -(-size // blocks)
        return Room(need, 1, cut_evenly(links, blocks))
    for count in range(threads, 0, -1):
        need = size + count * maker_bytes(nodes, count > 1)
        if need <= memory:
            return Room(need, count, (), threads)
    least = maker_bytes(nodes, False)
    if memory < least + min(_LEAST_BLOCK, size):
        raise ResourceError(
            f"a graph of {nodes:,} nodes needs {format_size(least + min(_LEAST_BLOCK, size))} of "
            f"memory to index, in blocks and with one thread; {format_size(memory)} may be used "
            f"and {format_size(available())} are free. Give more with --memory"
        )
    # Half of what is left: the pages of a block come along with some of their neighbours.
    return Room(memory, 1, cut_blocks(links, (memory - least) // 2), threads)
