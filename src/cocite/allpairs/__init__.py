"""All-pairs SimRank and PSimRank on the whole matrix, exact to a stated accuracy."""

from cocite.allpairs.options import MEASURES, METHODS, Options
from cocite.allpairs.run import AllPairs, exact_simrank
from cocite.allpairs.scores import Scores
from cocite.allpairs.stopping import ExactConvergence

__all__ = [
    "MEASURES",
    "METHODS",
    "AllPairs",
    "ExactConvergence",
    "Options",
    "Scores",
    "exact_simrank",
]
