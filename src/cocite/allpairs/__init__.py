"""All-pairs SimRank and PSimRank over the full matrix, exact to a stated accuracy."""

from cocite.allpairs.run import AllPairs, exact_simrank
from cocite.allpairs.scores import ExactConvergence, Scores
from cocite.options.all_pairs import AllPairsOptions

__all__ = [
    "AllPairs",
    "AllPairsOptions",
    "ExactConvergence",
    "Scores",
    "exact_simrank",
]
