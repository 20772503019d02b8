"""All-pairs SimRank and PSimRank on the whole matrix, exact to a stated accuracy."""

from cocite.allpairs.links import MEASURES, METHODS, Options
from cocite.allpairs.run import AllPairs, exact_simrank
from cocite.allpairs.scores import ExactConvergence, Scores

__all__ = [
    "MEASURES",
    "METHODS",
    "AllPairs",
    "ExactConvergence",
    "Options",
    "Scores",
    "exact_simrank",
]
