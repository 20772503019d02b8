"""How PageRank converges, and how its order depends on the personalization.

Source: Haveliwala, *Efficient computation of PageRank*, section 5.
"""

from benchmarks.convergence.comparison import Comparison, Difference, compare
from benchmarks.convergence.queries import (
    Query,
    queries_of_words,
    query_of_nodes,
    query_of_words,
)
from benchmarks.convergence.study import Agreement, ConvergenceStudy, Iteration, Settled, study

__all__ = [
    "Agreement",
    "Comparison",
    "ConvergenceStudy",
    "Difference",
    "Iteration",
    "Query",
    "Settled",
    "compare",
    "queries_of_words",
    "query_of_nodes",
    "query_of_words",
    "study",
]
