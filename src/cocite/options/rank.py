"""Options of PageRank and HITS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cocite.options import BETWEEN_0_AND_1, CLI, NodeNames, Options, option

PRECISIONS = ("double", "single")
DANGLING = ("spread", "uniform", "remove")


@dataclass(frozen=True)
class RankOptions(Options):
    """Options of ``cocite rank``. HITS accepts ``tolerance``, ``max_sweeps``,
    ``until_top_stable``, ``weighted`` and ``blocks``.
    """

    score: str = option(
        "pagerank",
        "The rank to compute. authorities and hubs are the scores of HITS: good hubs link to "
        "good authorities.",
        choices=("pagerank", "authorities", "hubs"),
        fronts=CLI,
    )
    k: int = option(20, "The number of ranks to print.", low=1, flag="-k", fronts=CLI)
    side: str | None = option(
        None,
        "In a bipartite graph, print only the ranks of this side, such as item.",
        metavar="NAME",
        unset="both",
        fronts=CLI,
    )

    toward: tuple[str, ...] = option(
        (),
        "Personalize: jumps go to this node, in proportion to its weight (1 by default). "
        "Repeatable.",
        metavar="NODE[=WEIGHT]",
        unset="to any node",
        fronts=CLI,
    )
    personalization: tuple[str, ...] = option(
        (),
        "Personalize: jumps go to the nodes in FILE, which has a node, a tab and a weight per "
        "line, or is a .csv or Parquet table. Repeatable.",
        metavar="FILE",
        fronts=CLI,
    )

    trust: Any = option(
        None,
        "A file of trusted nodes, one per line; in Python their names, or names with weights. "
        "Adds two columns: trust, the PageRank with jumps only to trusted nodes (TrustRank), and "
        "spam mass, the part of a node's rank that does not come from good nodes.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        unset="none",
    )
    good_fraction: float = option(
        0.85,
        "The estimated fraction of good nodes, for the spam mass.",
        low=0,
        high=1,
    )

    start: str | None = option(
        None,
        "Start from the ranks in FILE, written by --output, for this graph or an older version: "
        "nodes are matched by name. This takes fewer sweeps and is equally accurate.",
        metavar="FILE",
        unset="the distribution of jumps",
        fronts=CLI,
    )

    damping: float = option(
        0.85,
        "The probability that a step follows a link; otherwise it jumps.",
        **BETWEEN_0_AND_1,
    )
    dangling: str = option(
        "spread",
        "How to handle nodes without out-links. spread: distribute their rank like jumps. uniform: "
        "distribute it equally among all nodes. remove: first remove these nodes, --removals "
        "times.",
        choices=DANGLING,
    )
    removals: int = option(
        2, "The number of times to remove nodes without out-links, with --dangling remove.", low=0
    )
    tolerance: float = option(
        1e-8,
        "Stop when the L1 residual (summed over all nodes) is at most this.",
        **BETWEEN_0_AND_1,
    )
    max_sweeps: int = option(10_000, "The largest number of sweeps.", low=1)
    until_top_stable: int | None = option(
        None,
        "Also stop when the order of the top K has not changed for three sweeps.",
        low=1,
        metavar="K",
    )
    precision: str = option(
        "double",
        "The precision of ranks during the computation. Sums are always double.",
        choices=PRECISIONS,
    )
    weighted: bool = option(
        True,
        "Distribute ranks by link weights, if the graph has weights.",
        flag="--unweighted",
        negated="Ignore the weights of links.",
    )
    blocks: int | None = option(
        None,
        "Split the data into this many blocks, with one in memory at a time, even if all fit. The "
        "ranks do not change.",
        low=1,
        metavar="COUNT",
        unset="as many as --memory requires",
    )
