"""PageRank: how important nodes are, by the links to them; and how it converges. Hubs and
authorities.
"""

from cocite.ranking.comparing import Comparison, Difference, compare
from cocite.ranking.convergence import Agreement, ConvergenceStudy, Iteration, Settled, study
from cocite.ranking.hits import Hits, hits, plan_hits
from cocite.ranking.orders import Histogram
from cocite.ranking.pagerank import Dangling, Ranks, pagerank
from cocite.ranking.queries import Query, queries_of_words, query_of_nodes, query_of_words
from cocite.ranking.room import RankRoom, plan_ranks
from cocite.ranking.stopping import Convergence, Residual, StoppingRule, Sweeps, TopOrder
from cocite.ranking.teleport import WeightsFile, toward_of

__all__ = [
    "Agreement",
    "Comparison",
    "Convergence",
    "ConvergenceStudy",
    "Dangling",
    "Difference",
    "Histogram",
    "Hits",
    "Iteration",
    "Query",
    "RankRoom",
    "Ranks",
    "Residual",
    "Settled",
    "StoppingRule",
    "Sweeps",
    "TopOrder",
    "WeightsFile",
    "compare",
    "hits",
    "pagerank",
    "plan_hits",
    "plan_ranks",
    "queries_of_words",
    "query_of_nodes",
    "query_of_words",
    "study",
    "toward_of",
]
