"""Evaluation of results by labels and texts, and tuning of measures and settings."""

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
from cocite.evaluation.rankers import IndexRanker, Ranker
from cocite.evaluation.report import Study
from cocite.evaluation.run import evaluate

__all__ = [
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
    "Study",
    "count_pairs",
    "evaluate",
    "read_labels",
    "read_texts",
    "relevance_at",
]
