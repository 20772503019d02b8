"""PageRank: how important nodes are, by the links to them; and how it converges."""

from cocite.ranking.convergence import Agreement, Histogram, Iteration, Settled, Study, study
from cocite.ranking.pagerank import Dangling, Ranks, pagerank
from cocite.ranking.queries import Query, query_of_nodes, query_of_words
from cocite.ranking.room import RankRoom, plan_memory
from cocite.ranking.stopping import Convergence, Residual, StoppingRule, Sweeps, TopOrder

__all__ = [
    "Agreement",
    "Convergence",
    "Dangling",
    "Histogram",
    "Iteration",
    "Query",
    "RankRoom",
    "Ranks",
    "Residual",
    "Settled",
    "StoppingRule",
    "Study",
    "Sweeps",
    "TopOrder",
    "pagerank",
    "plan_memory",
    "query_of_nodes",
    "query_of_words",
    "study",
]
