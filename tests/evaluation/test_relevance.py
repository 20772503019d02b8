"""Precision, recall, nDCG, content and intervals: by hand; ties, short lists, no relevant nodes."""

import math

import numpy as np
import pytest
from benchmarks.studies.checks import accuracy
from benchmarks.studies.rankers import RowRanker

from cocite.evaluation import Bootstrap, Content, Judge, Labels, relevance_at
from cocite.evaluation.rankers import Related
from tests.oracles.quality import filled


def test_relevance_at_matches_hand_computation() -> None:
    relevant = np.array([True, False, True, False])
    precision, recall, ndcg = relevance_at(relevant, 3, [1, 2, 3, 10])
    assert precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3, 2 / 10])
    assert recall.tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3])
    gain, ideal = 1 + 1 / math.log2(4), 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg.tolist() == pytest.approx(
        [1, 1 / (1 + 1 / math.log2(3)), gain / ideal, gain / ideal]
    )


def test_relevance_at_scores_short_perfect_list() -> None:
    found = relevance_at(np.array([True, True]), 2, [5])
    assert found[:, 0].tolist() == pytest.approx([2 / 5, 1, 1])


@pytest.mark.parametrize("listed", [[], [3], [3, 1, 6], [6, 5, 4, 3, 2, 1]])
@pytest.mark.parametrize("alike", [{1, 3}, {2, 4, 5, 6}, {1, 2, 3, 4, 5, 6}])
def test_relevance_at_filled_is_mean_over_all_orders(listed: list[int], alike: set[int]) -> None:
    others = {1, 2, 3, 4, 5, 6} - set(listed)
    found = relevance_at(np.isin(listed, list(alike)), len(alike), [1, 2, 4, 9], 6)
    for k, actual in zip([1, 2, 4, 9], found.T, strict=True):
        assert actual.tolist() == pytest.approx(filled(listed, others, alike, k), rel=1e-12)


def test_relevance_at_without_relevant_nodes_is_nan() -> None:
    assert np.isnan(relevance_at(np.array([False]), 0, [1, 5])).all()
    assert relevance_at(np.empty(0, bool), 4, [2])[:, 0].tolist() == [0, 0, 0]


def test_judge_skips_queries_without_relevant_nodes() -> None:
    labels = Labels((("a",), ("b",)), np.array([0, 1, 2], np.uint32), np.array([0, 0, 1], np.int64))
    scores = np.array([[0, 2, 1], [1, 0, 2], [1, 1, 0]], float)
    judge = Judge(labels.labeled, relevance=labels.collapsed(), cutoffs=[1])
    found = judge(RowRanker(lambda node: scores[node], 3))
    assert found.column("precision@1").tolist() == pytest.approx([1, 0, math.nan], nan_ok=True)
    figures = found.figures(Bootstrap(3, resamples=200))
    assert figures["precision@1"].value == 0.5
    assert figures["hits"] == (2, 2, 2)


def test_content_matches_hand_computation() -> None:
    pytest.importorskip("sklearn")
    texts = {0: "red apple", 1: "red apple", 2: "blue whale", 3: "red whale"}
    content = Content(texts, 5)
    # With idf(t) = log(5 / (1 + df)) + 1: red 3 texts, apple 2, whale 2, blue 1.
    red, two = math.log(5 / 4) + 1, math.log(5 / 3) + 1
    cosine = red * red / math.hypot(red, two) ** 2
    found = content.cosines(0, np.array([1, 2, 3, 4], np.uint32))
    assert found.tolist() == pytest.approx([1, 0, cosine, 0], abs=1e-6)
    delta = content.delta(0, np.array([1, 3], np.uint32), 3)
    assert delta.tolist() == pytest.approx([1, (1 + cosine) / 2, (1 + cosine) / 3], abs=1e-6)
    assert np.isnan(content.delta(4, np.array([0], np.uint32), 2)).all()


def test_bootstrap_intervals_cover_mean() -> None:
    """95% intervals of the mean of normal values miss in some 5% of runs.

    By the binomial distribution, 4 to 22 of 200 runs miss with probability above 0.998. The bounds
    leave room for percentile intervals, which are a little narrow at 80 values.
    """
    misses = 0
    for seed in range(200):
        values = np.random.default_rng(seed).normal(1.0, 1.0, (80, 1))
        bootstrap = Bootstrap(80, resamples=400, seed=seed)
        found = bootstrap.interval(bootstrap.ratios(values, np.ones((80, 1)))[:, 0])
        assert found.value == pytest.approx(values.mean())
        misses += not found.low <= 1.0 <= found.high
    assert 3 <= misses <= 26


def test_bootstrap_is_independent_of_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(30, 2))
    expected = Bootstrap(30, resamples=50, seed=4).sums(values)
    monkeypatch.setattr("cocite.evaluation.labels._CELLS", 90)
    assert np.allclose(Bootstrap(30, resamples=50, seed=4).sums(values), expected, rtol=1e-12)


def test_differences_of_equal_rankers_are_zero() -> None:
    labels = Labels((("a",),), np.array([0, 1, 2], np.uint32), np.zeros(3, np.int64))
    judge = Judge(labels.labeled, relevance=labels.collapsed())
    found = judge(RowRanker(lambda node: np.ones(3), 3))
    difference = found.differences(found, Bootstrap(3, resamples=20))
    assert set(difference["precision@1"]) == {0.0}


class FixedRanker:
    """A ranker with one list."""

    nodes = 4

    def related(self, node: int, k: int) -> Related:
        return Related(np.array([2, 1], np.uint32)[:k], np.array([0.5, 0.4])[:k])


def test_accuracy_matches_hand_computation() -> None:
    exact = np.array([1, 0.5, 0.5, 0.1])
    found = accuracy(FixedRanker(), lambda node: exact, np.array([0], np.uint32), ks=(1, 2, 3))
    assert found.mean_error == pytest.approx((0.1 + 0 + 0.1) / 3)
    assert found.largest_error == pytest.approx(0.1)
    assert found.ave_err == pytest.approx(0.2 / 4)
    # 1 and 2 tie: either is best
    assert found.precision == pytest.approx({1: 1, 2: 1, 3: 2 / 3})


def test_accuracy_of_empty_ranking_has_no_error() -> None:
    zeros = np.zeros(4)
    found = accuracy(
        RowRanker(lambda node: zeros, 4), lambda node: zeros, np.array([1], np.uint32), (2,)
    )
    assert found.mean_error == 0
    assert math.isnan(found.precision[2])
