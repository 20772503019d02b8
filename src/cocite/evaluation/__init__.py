"""How good are the answers: quality by labels and content, accuracy, structure, whole studies."""

from cocite.evaluation.accuracy import Accuracy, accuracy
from cocite.evaluation.bootstrap import Bootstrap, Interval
from cocite.evaluation.content import Content, read_texts
from cocite.evaluation.embedding import embed
from cocite.evaluation.evaluating import evaluate
from cocite.evaluation.gamma import PairCount, count_pairs
from cocite.evaluation.judge import Judge, Judgement
from cocite.evaluation.labels import Hierarchy, Labels, read_labels
from cocite.evaluation.rankings import (
    BlendedRanking,
    IndexRanker,
    Ranker,
    RowRanker,
    Scale,
    VectorRanker,
)
from cocite.evaluation.relevance import relevance_at
from cocite.evaluation.running import run_suite
from cocite.evaluation.structure import live_tokens, tree_sizes
from cocite.evaluation.study import Study
from cocite.evaluation.suite import Suite
from cocite.evaluation.suite_file import built_in_suites, load_suite

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
    "evaluate",
    "live_tokens",
    "load_suite",
    "read_labels",
    "read_texts",
    "relevance_at",
    "run_suite",
    "tree_sizes",
]
