"""Options of PageRank and HITS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cocite.options import CLI, NodeNames, Options, option

PRECISIONS = ("double", "single")
DANGLING = ("spread", "uniform", "remove")


@dataclass(frozen=True)
class RankOptions(Options):
    """How ranks are computed. HITS takes ``tolerance``, ``max_sweeps``, ``until_top_stable``,
    ``weighted`` and ``blocks``.
    """

    score: str = option(
        "pagerank",
        "What to rank by. authorities, hubs: the scores of HITS; good hubs link to good "
        "authorities.",
        choices=("pagerank", "authorities", "hubs"),
        fronts=CLI,
    )
    k: int = option(20, "How many ranks to print.", low=1, flag="-k", fronts=CLI)
    side: str | None = option(
        None,
        "Of a bipartite graph print the ranks of this side alone, such as item.",
        metavar="NAME",
        unset="both",
        fronts=CLI,
    )

    toward: tuple[str, ...] = option(
        (),
        "Personalize: jumps go to this node, as often as its weight says, 1 if there is none. "
        "Repeatable.",
        metavar="NODE[=WEIGHT]",
        unset="to any node",
        fronts=CLI,
    )
    personalization: tuple[str, ...] = option(
        (),
        "Personalize: jumps go to the nodes in FILE, which has a node and its weight a line, with "
        "a tab between them; or .csv, or Parquet. Repeatable.",
        metavar="FILE",
        fronts=CLI,
    )

    trust: Any = option(
        None,
        "Trusted nodes, one a line in this file; in Python their names, or names with weights. "
        "Every node also gets its trust, the rank of a walk that jumps to these nodes alone "
        "(TrustRank), and its spam mass, the part of its rank that does not come from good nodes.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        unset="none",
    )
    good_fraction: float = option(
        0.85,
        "The share of all nodes that is good, for the spam mass: trusted nodes are a sample of "
        "these.",
        low=0,
        high=1,
    )

    start: str | None = option(
        None,
        "Start from the ranks in FILE, as --output wrote them, also of an older version of the "
        "graph: nodes are matched by name. The ranks are as exact, after fewer sweeps.",
        metavar="FILE",
        unset="from the jumps",
        fronts=CLI,
    )

    damping: float = option(
        0.85, "The probability that a step follows a link; else it jumps.", low=0, high=1, open=True
    )
    dangling: str = option(
        "spread",
        "Nodes without out-links. spread: it goes where jumps go. uniform: it goes to all nodes "
        "alike. remove: such nodes are removed first, --removals N times.",
        choices=DANGLING,
    )
    removals: int = option(
        2, "How often nodes without out-links are removed, with --dangling remove.", low=0
    )
    tolerance: float = option(
        1e-8,
        "Stop when the L1 residual, the sum over all nodes, is this small.",
        low=0,
        high=1,
        open=True,
    )
    max_sweeps: int = option(10_000, "How many sweeps to make at most.", low=1)
    until_top_stable: int | None = option(
        None, "Stop when the order of the top K stands, too, for three sweeps.", low=1, metavar="K"
    )
    precision: str = option(
        "double", "How to store ranks meanwhile. Sums are always double.", choices=PRECISIONS
    )
    weighted: bool = option(
        True,
        "Share a rank by the weights of links, if there are any.",
        flag="--unweighted",
        negated="Ignore the weights of links.",
    )
    blocks: int | None = option(
        None,
        "Keep everything on disk but one of so many blocks, even if it fits; the ranks are the "
        "same.",
        low=1,
        metavar="COUNT",
        unset="as --memory needs",
    )
