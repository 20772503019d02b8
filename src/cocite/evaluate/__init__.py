"""How good are the answers: quality by labels and content, accuracy, structure, whole studies."""

from cocite.evaluate.accuracy import Accuracy, accuracy
from cocite.evaluate.bootstrap import Bootstrap, Interval
from cocite.evaluate.content import Content, read_texts
from cocite.evaluate.embedding import embed
from cocite.evaluate.gamma import PairCount, count_pairs
from cocite.evaluate.judge import Judge, Judgement
from cocite.evaluate.labels import Hierarchy, Labels, read_labels
from cocite.evaluate.rankings import (
    BlendedRanking,
    IndexRanker,
    Ranker,
    RowRanker,
    Scale,
    VectorRanker,
)
from cocite.evaluate.relevance import relevance_at
from cocite.evaluate.running import run_suite
from cocite.evaluate.structure import live_tokens, tree_sizes
from cocite.evaluate.study import Study
from cocite.evaluate.suite import Suite
from cocite.evaluate.suite_file import built_in_suites, load_suite

__all__ = [
    "Accuracy",
    "BlendedRanking",
    "Bootstrap",
    "Content",
    "Hierarchy",
    "IndexRanker",
    "Interval",
    "Judge",
    "Judgement",
    "Labels",
    "PairCount",
    "Ranker",
    "RowRanker",
    "Scale",
    "Study",
    "Suite",
    "VectorRanker",
    "accuracy",
    "built_in_suites",
    "count_pairs",
    "embed",
    "live_tokens",
    "load_suite",
    "read_labels",
    "read_texts",
    "relevance_at",
    "run_suite",
    "tree_sizes",
]
