"""PageRank, TrustRank and HITS on stored graphs."""

from cocite.ranking.hits import HubsAuthorities, hits, plan_hits
from cocite.ranking.pagerank import Dangling, Ranks, WeightsFile, pagerank, toward_of
from cocite.ranking.stopping import Convergence, StoppingRule
from cocite.ranking.vectors import RankRoom, plan_ranks

__all__ = [
    "Convergence",
    "Dangling",
    "HubsAuthorities",
    "RankRoom",
    "Ranks",
    "StoppingRule",
    "WeightsFile",
    "hits",
    "pagerank",
    "plan_hits",
    "plan_ranks",
    "toward_of",
]
