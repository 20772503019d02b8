"""How good are the answers: quality by labels and content, accuracy, structure, whole studies."""

from cocite.evaluation.html_report import Study
from cocite.evaluation.judge import (
    Content,
    Judge,
    Judgment,
    PairCount,
    count_pairs,
    read_texts,
    relevance_at,
)
from cocite.evaluation.labels import Bootstrap, Hierarchy, Interval, Labels, read_labels
from cocite.evaluation.points import Suite
from cocite.evaluation.rankers import (
    BlendedRanking,
    IndexRanker,
    Ranker,
    RowRanker,
    Scale,
    VectorRanker,
)
from cocite.evaluation.run import evaluate
from cocite.evaluation.studies import Accuracy, accuracy, embed, live_tokens, tree_sizes
from cocite.evaluation.suite_file import built_in_suites, load_suite
from cocite.evaluation.suite_run import run_suite

__all__ = [
    "Accuracy",
    "BlendedRanking",
    "Bootstrap",
    "Content",
    "Hierarchy",
    "IndexRanker",
    "Interval",
    "Judge",
    "Judgment",
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
