"""Sibling Gamma: by hand, at its ends, and against all triples."""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.studies.rankers import RowRanker
from hypothesis import given
from hypothesis import strategies as st

from cocite.errors import UsageError
from cocite.evaluation import Judge, Labels, count_pairs
from cocite.evaluation.labels import OTHER, SAME, SIBLING
from tests.oracles import quality


def count(scores: list[float], relation: list[int], **options: bool) -> tuple[int, ...]:
    return count_pairs(np.array(scores, float), np.array(relation, np.int8), **options)


def test_count_pairs_matches_hand_count() -> None:
    # .9 is before the siblings .8 and .5: 2 right. .5 ties with one, and is below .8: 1 wrong.
    scores = [0.9, 0.8, 0.5, 0.5, 0.1]
    relation = [SAME, SIBLING, SAME, SIBLING, OTHER]
    assert count(scores, relation) == (2, 1)
    assert count_pairs(np.array(scores), np.array(relation, np.int8)).gamma == pytest.approx(1 / 3)
    assert count(scores, relation, with_query=True) == (4, 1)


def test_judge_refuses_negative_gamma_least() -> None:
    with pytest.raises(UsageError, match="gamma_least is -1; it must be a number, 0 or more"):
        Judge(np.array([0], np.uint32), gamma_least=-1)


def test_gamma_reaches_both_ends() -> None:
    scores = np.linspace(1, 0.1, 10)
    best = np.array([SAME] * 4 + [SIBLING] * 6, np.int8)
    assert count_pairs(scores, best).gamma == 1
    assert count_pairs(scores, best[::-1]).gamma == -1


def test_gamma_without_pairs_is_nan() -> None:
    assert math.isnan(count_pairs(np.empty(0), np.empty(0, np.int8)).gamma)
    assert math.isnan(count_pairs(np.array([1.0, 1.0]), np.array([SAME, SIBLING], np.int8)).gamma)
    assert count([1.0, 0.5], [SAME, SAME]) == (0, 0)


PATHS = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"), ("a",), ("a", "x", "p")]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[list[float]], quality.Paths]:
    """Scores with many ties and zeros, symmetric or not; nodes in none to three categories."""
    n = draw(st.integers(2, 9))
    score = st.sampled_from([0.0, 0.0, 0.1, 0.2, 0.2, 0.5, 0.9])
    matrix = [[draw(score) for _ in range(n)] for _ in range(n)]
    paths = {
        node: found
        for node in range(n)
        if (found := draw(st.sets(st.sampled_from(PATHS), max_size=3)))
    }
    return matrix, paths


def labels_of(paths: quality.Paths) -> Labels:
    pairs = sorted((node, PATHS.index(path)) for node, found in paths.items() for path in found)
    nodes, labels = np.array(pairs).T
    return Labels(tuple(PATHS), nodes.astype(np.uint32), labels)


@given(worlds(), st.integers(1, 3), st.integers(2, 6), st.sampled_from([0.0, 0.1, 0.3]))
def test_judge_gamma_matches_all_triples(
    world: tuple[list[list[float]], quality.Paths], depth: int, top: int, least: float
) -> None:
    matrix, paths = world
    if not paths:
        return
    labels = labels_of(paths)
    rows = np.array(matrix)
    ranker = RowRanker(lambda node: rows[node], len(matrix), labels.labeled)
    judge = Judge(labels.labeled, familial=labels.collapsed(depth), top=top, gamma_least=least)
    found = judge(ranker)
    queries = sorted(paths)
    gammas = found.column("gamma")
    micro = np.nanmean(gammas) if not np.isnan(gammas).all() else math.nan
    expected = quality.micro_gamma(matrix, paths, depth, top, queries, least)
    assert micro == pytest.approx(expected, nan_ok=True)
    macro, pairs = quality.macro_gamma(matrix, paths, depth, queries, least)
    column = found.titles.index("gamma_macro")
    assert found.pairs == found.wholes[:, column].sum() == pairs
    if pairs:
        assert found.parts[:, column].sum() / pairs == pytest.approx(macro)


@pytest.mark.long
@given(worlds(), st.integers(1, 3))
def test_collapsed_labels_relation_matches_definition(world: Any, depth: int) -> None:
    _, paths = world
    if not paths:
        return
    hierarchy = labels_of(paths).collapsed(depth)
    nodes = range(10)
    for u in nodes:
        found = hierarchy.relation(u, np.array(nodes, np.uint32))
        own = paths.get(u, set())
        for v in nodes:
            other = paths.get(v, set())
            expected = OTHER
            if quality.same_class(own, other, depth):
                expected = SAME
            elif quality.siblings(own, other, depth):
                expected = SIBLING
            assert found[v] == expected
        others = [v for v in paths if v != u and quality.same_class(own, paths[v], depth)]
        assert hierarchy.same_count(u) == len(others)


def test_labels_usual_depth_is_most_common() -> None:
    labels = labels_of({0: {PATHS[0], PATHS[4]}, 1: {PATHS[1]}, 2: {PATHS[5]}})
    assert labels.usual_depth == 2
    assert labels.collapsed(2).classes == (("a",), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"))
