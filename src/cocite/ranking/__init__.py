"""PageRank: how important nodes are, by the links to them."""

from cocite.ranking.pagerank import Dangling, Ranks, pagerank
from cocite.ranking.stopping import Convergence, Residual, StoppingRule, Sweeps, TopOrder

__all__ = [
    "Convergence",
    "Dangling",
    "Ranks",
    "Residual",
    "StoppingRule",
    "Sweeps",
    "TopOrder",
    "pagerank",
]
