"""Memory plans of builds: threads, blocks, and the location of walk tokens.

    in memory        graph + threads * maker <= budget         the graph stays in memory
    semi-external    threads * maker + block <= budget         one block at a time
    external         buffers + largest block <= budget         tokens and samples also in files

A maker needs 26.5 bytes per node. With blocks, 16 samples of trees share one scan of the links for
each step. If the links exceed the free memory, more samples share a scan: as many as fit in half of
the free disk space. In the external form, a block needs 21 bytes per node and 4 per link, and
buffers need a quarter of the budget, at most 16 MiB; the budget must be at least 4 MiB, and at
least a 256th of the size of all blocks. A weighted step needs 4 bytes per link, mostly in a scratch
file, and, with ``hubs``, 4 bytes per node in memory. The budget covers data only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from cocite.engine.walk_batch import STATE_NODE, TOGETHER
from cocite.engine.walk_blocks import BLOCK_NODE, ROW_ROOM, tables
from cocite.errors import ResourceError, UsageError
from cocite.graph.blocks import Links, cut_blocks, cut_evenly
from cocite.graph.partitions import BlockedLinks
from cocite.index.layouts.contract import PartPlan
from cocite.measures.evidence import floor_text
from cocite.resources import Resources, format_least, format_size, format_total, short_of
from cocite.storage.spool import Scratch

_LEAST_BLOCK, _SMALL_BLOCK = 16 << 20, 1 << 20
_LEAST_MEMORY, _LEAST_PART = 4 << 20, 256
"""Minimum memory of an external build: 4 MiB, or a 256th of the size of all blocks, if more."""
_MOST_ROWS = (16 << 20) // ROW_ROOM
WALK_NODE, _TREE_NODE = 36, 33
"""Scratch bytes per node in the external form: per walking sample, and for one that is laid out."""
_MOST_TOGETHER = 128
"""Maximum number of samples per batch, because each has three open files."""
_MOST_BLOCKS = 1024
"""Maximum number of blocks, because two tables of four bytes per pair of blocks are in memory."""


Progress = Callable[[int, int], None]
"""Called with (done, total) in units of work."""


@dataclass(frozen=True)
class StepBytes:
    """A weighted step's additional memory: ``link`` bytes per link, ``node`` bytes per node, and
    ``fixed`` bytes. ``read`` overrides the bytes per link that a step reads.
    """

    link: int = 0
    node: int = 0
    read: int | None = None
    fixed: int = 0

    def baseline(self, nodes: int) -> int:
        """Return the bytes in memory for ``nodes`` nodes."""
        return self.node * nodes + self.fixed

    def taken(self, links: Links) -> int:
        """Return the total bytes for these links."""
        return self.link * links.edges + self.node * links.nodes


@dataclass(frozen=True)
class Demand:
    """The memory for building a part.

    ``maker(nodes, keep)`` is the memory of a maker in bytes; with ``keep``, its blobs persist.
    ``step`` is the additional memory of weighted steps. With blocks, a maker makes ``together``
    samples at once, with their state between steps on disk. The external form makes ``external``
    samples at once; 0 means that it is unsupported. It needs ``scratch`` bytes per node: for each
    walking sample, and for the sample that is laid out.
    """

    layout: str
    maker: Callable[[int, bool], int]
    step: StepBytes = StepBytes()
    together: int = 1
    external: int = 0
    scratch: tuple[int, int] = WALK_NODE, _TREE_NODE


@dataclass(frozen=True)
class MemoryPlan:
    """The memory, threads and disk that a build may use.

    ``cuts`` contains the first node of every block except the first; ``wanted`` is the requested
    thread count. In the external form, ``rows`` is the number of buffered tokens (otherwise 0), and
    ``tokens`` the memory that tokens and trees would need, or 0 if that is not why files are used.
    ``together`` samples share each scan of the links, and need at most ``scratch_bytes`` on disk
    between steps. ``apart`` is the number of graph partitions, each of which needs ``memory``.
    """

    memory: int
    threads: int
    cuts: tuple[int, ...]
    wanted: int = 0
    rows: int = 0
    tokens: int = 0
    together: int = 1
    scratch_bytes: int = 0
    apart: int = 0

    @property
    def external(self) -> bool:
        """Return whether tokens and trees are stored in files."""
        return self.rows > 0

    def scratch(self, folder: Path) -> Scratch:
        """Return an allocator for arrays as long as the links, on disk if the links are on disk."""
        return Scratch.near(folder) if self.cuts or self.external else Scratch(None)

    @property
    def keep(self) -> bool:
        """Return whether blobs must remain valid while others are made."""
        return self.threads > 1

    @property
    def head(self) -> str:
        """Describe memory and threads."""
        text = f"{format_total(self.memory)} of memory on {self.threads} thread"
        text += "s" * (self.threads > 1)
        if self.threads < self.wanted:
            text += f" (of {self.wanted}: limited by memory)"
        return text

    def __str__(self) -> str:
        if self.apart:
            return (
                f"{self.apart} separate block{'s' * (self.apart > 1)}, each with "
                f"{format_total(self.memory)} of memory, for {self.together} "
                f"sample{'s' * (self.together > 1)} at once"
            )
        text, blocks = self.head, len(self.cuts) + 1
        if self.external:
            text += (
                f", {blocks} block{'s' * (blocks > 1)} from disk, and the state of walks on disk"
            )
            if self.tokens:
                text += f": in memory, it would take {format_size(self.tokens)}"
        elif self.cuts:
            text += f", {blocks} blocks of the graph one after another"
        if self.scratch_bytes:
            text += (
                f", for {self.together} sample{'s' * (self.together > 1)} at once, which take at "
                f"most {format_size(self.scratch_bytes)} of scratch on disk"
            )
        return text


@dataclass(frozen=True)
class PartEstimate:
    """A part's estimated cost: ``bytes`` on disk, ``seconds``, and the memory plan ``fit``, which
    is None if the part is already finished.
    """

    bytes: int
    fit: MemoryPlan | None
    seconds: float


def plan_fit(links: Links, means: Resources, demand: Demand) -> MemoryPlan:
    """Plan as many threads as fit with all links in memory, otherwise blocks, otherwise the
    external form.

    Raises :class:`ResourceError` if nothing fits, and :class:`UsageError` for partitioned graphs.
    """
    if isinstance(links, BlockedLinks):
        raise UsageError(
            f"the {demand.layout} layout needs the whole graph, and {links.whole.path} is "
            "partitioned. Use the original graph, simrank or psimrank in the trees layout, or "
            "xjaccard"
        )
    blocks, memory, step = means.blocks, means.memory, demand.step
    if means.external and not demand.external:
        raise UsageError(
            "--out-of-core (external=True) does not apply to the "
            f"{demand.layout} layout, which is always in memory: omit --out-of-core"
        )
    nodes, size = links.nodes, links.nbytes + step.link * links.edges
    beside = step.baseline(nodes)
    least = demand.maker(nodes, False) + beside
    if not means.external:
        for count in range(means.threads, 0, -1) if blocks is None else ():
            need = size + beside + count * demand.maker(nodes, count > 1)
            if need <= memory:
                return MemoryPlan(need, count, (), means.threads)
        block = min(_LEAST_BLOCK, max(_SMALL_BLOCK, size // _LEAST_PART), size)
        block = block if blocks is None else -(-size // blocks)
        if memory >= least + block or not (blocks is None or demand.external):
            return _plan_blocks(links, means, demand, block)
        if not demand.external:
            raise too_little(
                demand.layout, nodes, least + block, memory, "even in blocks and with one thread"
            )
    tokens = 0 if means.external else least
    return _plan_external(links, means, demand, tokens)


def fit_partitions(
    links: BlockedLinks,
    part: PartPlan,
    means: Resources,
    together: int,
    need: Callable[[int, int, int], int],
    rows: int = 0,
) -> MemoryPlan:
    """Plan the memory of partitions, with as many samples at a time as fit, up to ``together``.

    A block needs ``need(samples, nodes, links)`` bytes. Raises :class:`ResourceError` if one sample
    does not fit, and :class:`UsageError` for options that partitions do not support.
    """
    if part.by_page or part.wanted is not None:
        what, given = ("--hubs", "hubs") if part.by_page else ("--only-nodes", "only_nodes")
        raise UsageError(
            f"{what} ({given}=...) needs the whole graph, and {links.whole.path} is partitioned. "
            f"Omit {what}, or use the original graph"
        )
    graph, offsets = links.whole, links.offsets
    blocks = [(b - a, int(offsets[b] - offsets[a])) for a, b in pairwise(graph.cuts)]
    for count in range(together, 0, -1):
        most = max(need(count, nodes, edges) for nodes, edges in blocks)
        if most <= means.memory:
            cuts = tuple(graph.cuts[1:-1])
            return MemoryPlan(most, 1, cuts, rows=rows, together=count, apart=graph.blocks)
    how = f"in its {graph.blocks} blocks"
    raise too_little(part.layout, links.nodes, most, means.memory, how)


def _plan_blocks(links: Links, means: Resources, demand: Demand, block: int) -> MemoryPlan:
    """Plan graph blocks with a sample's tokens in memory, and as many threads as fit next to
    ``block`` bytes, but at most one for each sample of a batch.
    """
    nodes, together = links.nodes, demand.together
    scratch = STATE_NODE * nodes * together if together > 1 else 0
    beside, most = demand.step.baseline(nodes), min(means.threads, together)
    each, room = demand.maker(nodes, True), means.memory - beside - block
    threads = next((count for count in range(most, 1, -1) if count * each <= room), 1)
    need = threads * demand.maker(nodes, threads > 1) + beside
    if means.blocks is not None:
        cuts = cut_evenly(links, means.blocks)
        return MemoryPlan(need + block, threads, cuts, 0, 0, 0, together, scratch)
    # Use half of the rest, because reading a block also loads some adjacent memory pages.
    cuts = cut_blocks(links, (means.memory - need) // 2, link=demand.step.read)
    memory, wanted = means.memory, means.threads
    return MemoryPlan(memory, threads, cuts, wanted, 0, 0, together, scratch)


def _plan_external(links: Links, means: Resources, demand: Demand, tokens: int) -> MemoryPlan:
    """Plan blocks with tokens on disk; ``tokens`` is their size if it exceeds the memory, or 0."""
    step, nodes, blocks = demand.step, links.nodes, means.blocks
    beside = step.baseline(nodes)
    memory = means.memory - beside
    whole = links.nbytes + step.link * links.edges + BLOCK_NODE * nodes
    rows = max(1, min(_MOST_ROWS, memory // 4 // ROW_ROOM))
    if blocks is not None:
        if blocks > _MOST_BLOCKS:
            raise UsageError(
                f"blocks is {blocks:,}; with the state of walks on disk, the maximum is "
                f"{_MOST_BLOCKS:,}"
            )
        cuts, wanted, room, held = cut_evenly(links, blocks), 0, means.memory, -(-whole // blocks)
    else:
        needed = max(_LEAST_MEMORY, whole // _LEAST_PART)
        if memory < needed:
            how = "even in blocks and with the state of walks on disk"
            raise too_little(demand.layout, nodes, needed + beside, means.memory, how)
        cuts = cut_blocks(links, (memory - rows * ROW_ROOM) // 2, BLOCK_NODE, step.read)
        wanted, room, held = means.threads, memory, whole

    def tables_of(together: int) -> int:
        return tables(nodes, len(cuts) + 1, rows, together)

    counts = range(demand.external, 1, -1)
    together = next((count for count in counts if tables_of(count) <= room // 6), 1)
    need = rows * ROW_ROOM + held + tables_of(together)
    need = beside + (need if blocks is not None else min(memory, need))
    scratch = nodes * (demand.scratch[0] * together + demand.scratch[1])
    return MemoryPlan(need, 1, cuts, wanted, rows, tokens, together, scratch)


def samples_together(samples: int, nodes: int, disk: int, node: int = WALK_NODE) -> int:
    """Return how many samples share a scan of the links: as many as fit in half of the free
    ``disk`` at ``node`` bytes per node, but at least ``TOGETHER``, and at most as many as the limit
    on open files allows.
    """
    room = disk // 2 // (node * max(1, nodes))
    return max(TOGETHER, min(samples, room, _MOST_TOGETHER))


def too_little(layout: str, nodes: int, needed: int, memory: int, how: str) -> ResourceError:
    """Return the exception for ``memory`` below the minimum ``needed``."""
    return ResourceError(
        f"indexing a graph of {nodes:,} nodes needs {format_least(needed)} of memory, {how}; "
        f"{short_of(memory)}{floor_text(layout)}"
    )
