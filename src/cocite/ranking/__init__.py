"""PageRank: how important nodes are, by the links to them."""

from cocite.ranking.pagerank import Dangling, Ranks, pagerank
from cocite.ranking.stopping import Convergence, Residual, StoppingRule, Sweeps, TopOrder
from cocite.ranking.system import RankRoom, plan_memory

__all__ = [
    "Convergence",
    "Dangling",
    "RankRoom",
    "Ranks",
    "Residual",
    "StoppingRule",
    "Sweeps",
    "TopOrder",
    "pagerank",
    "plan_memory",
]
