"""PageRank: how important nodes are, by the links to them; and how it converges."""

from cocite.ranking.convergence import (
    Agreement,
    ConvergenceStudy,
    Histogram,
    Iteration,
    Settled,
    study,
)
from cocite.ranking.pagerank import Dangling, Ranks, pagerank
from cocite.ranking.queries import Query, query_of_nodes, query_of_words
from cocite.ranking.room import RankRoom, plan_ranks
from cocite.ranking.stopping import Convergence, Residual, StoppingRule, Sweeps, TopOrder

__all__ = [
    "Agreement",
    "Convergence",
    "ConvergenceStudy",
    "Dangling",
    "Histogram",
    "Iteration",
    "Query",
    "RankRoom",
    "Ranks",
    "Residual",
    "Settled",
    "StoppingRule",
    "Sweeps",
    "TopOrder",
    "pagerank",
    "plan_ranks",
    "query_of_nodes",
    "query_of_words",
    "study",
]
