"""Scores to a file: all of them as an array, or the pairs that matter as a table.

An array (``.npy``) is the full matrix by id, written row after row; a table has a row a pair: each
pair once if its score is large enough, or the best of every node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.scores import Pairs, Scores
from cocite.graph.writers import Columns, FileTarget, Target

__all__ = ["PAIR_TYPES", "write_scores"]

PAIR_TYPES = {"node": "VARCHAR", "other": "VARCHAR", "score": "DOUBLE"}
"""The columns of a table of pairs; scores of single precision are FLOAT."""

Done = Callable[[int], None]


def write_scores(
    scores: Scores,
    target: Target,
    *,
    least: float,
    top: int | None = None,
    progress: Done = lambda nodes: None,
) -> None:
    """Write to ``target``, whose kind decides the form (see :mod:`cocite.graph.writers`).

    ``least`` is the least score of a pair and ``top`` the number of pairs a node instead; neither
    is for an array. ``progress`` is called with the number of nodes done.
    """
    if isinstance(target, FileTarget) and target.is_array:
        shape = (scores.nodes, scores.nodes)
        target.write_array(_rows(scores, progress), scores.dtype, shape)
        return
    pairs = scores.best(top) if top else scores.pairs(least)
    types = PAIR_TYPES | ({"score": "FLOAT"} if scores.dtype == np.float32 else {})
    target.write_table(_named(scores, pairs, progress), types)


def _named(scores: Scores, pairs: Iterator[Pairs], progress: Done) -> Iterator[Columns]:
    names = np.array(scores.names.stored.names(np.arange(scores.nodes)), dtype=object)
    for batch in pairs:
        yield {"node": names[batch.nodes], "other": names[batch.others], "score": batch.scores}
        if batch.nodes.size:
            progress(int(batch.nodes[-1]) + 1)


def _rows(scores: Scores, progress: Done) -> Iterator[NDArray[Any]]:
    """float32 or float64[nodes], for each node in order of id."""
    for node in range(scores.nodes):
        yield scores.row(node)
        progress(node + 1)
