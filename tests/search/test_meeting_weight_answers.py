"""Functions of the meeting time: against exact laws and plain walks, in every kind of query."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Index
from cocite.cli.main import main
from cocite.errors import UsageError
from cocite.options.query import INTERVALS
from cocite.search.results import RelatedDocument
from cocite.storage import Store
from tests.batches import all_rows
from tests.conftest import MakeGraph, json_hits
from tests.oracles import meeting
from tests.oracles.bounds import bernstein

LENGTH = 6
OPTIONS: dict[str, Any] = {"length": LENGTH, "measure": "psimrank"}
INCREASING, UNEVEN = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0], [0, 1, 0, 0.5, 0, 0.25]
FUNCTIONS: dict[str, tuple[Any, Callable[[int], float]]] = {
    "expression": ("0.8**t", lambda t: 0.8**t),
    "within": ("t <= 2", lambda t: t <= 2),
    "hitting": ("hitting", lambda t: 1 - t / (LENGTH + 1)),
    "later is more": (INCREASING, lambda t: INCREASING[t - 1]),
    "up and down": (np.array(UNEVEN), lambda t: UNEVEN[t - 1]),
    "callable": (lambda t: 1 / t**2, lambda t: 1 / t**2),
}
every = pytest.mark.parametrize("name", FUNCTIONS)
LINKED = "3"
"""A node with in-links, like others near it."""
EDGES = [(a, b) for a, b in np.random.default_rng(4).integers(0, 12, (40, 2)).tolist() if a != b]


# -- scores ------------------------------------------------------------------------------


def pair_scores(index: Index, weight: Any) -> np.ndarray:
    """Scores of all pairs, each queried in one order only."""
    size = len(index.nodes)
    pairs = list(itertools.combinations_with_replacement(range(size), 2))
    scores = index.similarities(pairs, ids=True, meeting_weight=weight, interval="bernstein")
    found = np.zeros((size, size))
    for (u, v), score in zip(pairs, scores, strict=True):
        found[u, v] = found[v, u] = score.score
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("measure", meeting.STEPS)
def test_meeting_weight_scores_match_exact_law(make_graph: MakeGraph, measure: str) -> None:
    graph, samples = make_graph(EDGES, range(12)), 15_000
    options: dict[str, Any] = {"samples": samples, "length": LENGTH, "seed": 1, "shard": 2000}
    index = cocite.build(graph, measure=measure, threads=1, **options)
    neighbors = [graph.in_neighbors(v).tolist() for v in range(graph.nodes)]
    chances = meeting.law(neighbors, meeting.STEPS[measure], LENGTH)
    for weight, function in FUNCTIONS.values():
        truth = meeting.expected(chances, function)
        found = pair_scores(index, weight)
        largest = max(function(t) for t in range(1, LENGTH + 1))
        allowed = bernstein(truth, samples, largest, len(FUNCTIONS) * truth.size)
        np.fill_diagonal(allowed, 1e-12)
        assert (np.abs(found - truth) <= allowed).all()
        assert np.median(allowed) < 0.02  # the test can fail
    powers = meeting.expected(chances, lambda t: 0.6**t)
    hitting = meeting.expected(chances, FUNCTIONS["hitting"][1])
    assert np.abs(powers - hitting).max() > 0.1


def test_meeting_weight_hitting_gives_expected_time(make_graph: MakeGraph) -> None:
    """Two pages with the same single in-link always meet after one step; a page without in-links
    never meets another.
    """
    graph = make_graph([("w", "a"), ("w", "b"), ("x", "w"), ("x", "y"), ("y", "c")])
    index = cocite.build(graph, length=LENGTH, samples=50, measure="psimrank")
    for pair, steps in ((("a", "b"), 1), (("a", "c"), 2), (("w", "y"), 1), (("x", "a"), 7)):
        score = index.similarity(*pair, meeting_weight="hitting").score
        assert abs((1 - score) * (LENGTH + 1) - steps) < 1e-9
    assert [hit.node for hit in index.related("a", meeting_weight="hitting")] == ["b", "c"]


# -- the contract, for any function --------------------------------------------------------


@pytest.mark.statistical
def test_meeting_weight_intervals_allow_later_meetings(make_graph: MakeGraph) -> None:
    """Walks from the ends of two chains meet at step 12, beyond the index's 10 steps."""
    chains = [("root", "a1"), ("root", "b1")]
    chains += [(f"{c}{i}", f"{c}{i + 1}") for c in "ab" for i in range(1, 12)]
    graph = make_graph(chains)
    index = cocite.build(graph, length=10, samples=200, measure="psimrank")
    weights = ("0.9**t", 0.9**12), ("t<=15", 1.0), ("t==12", 1.0), ("1/t", 1 / 12)
    for weight, truth in weights:
        if weight == "t==12":
            with pytest.raises(UsageError, match="is 0 for all meetings of walks of 10 steps"):
                index.similarity("a12", "b12", meeting_weight=weight)
            continue
        for bound in INTERVALS:
            found = index.similarity("a12", "b12", meeting_weight=weight, interval=bound)
            assert found.score == 0
            assert found.low <= truth <= found.high
        refined = index.similarity("a12", "b12", meeting_weight=weight, target_error=0.03)
        assert refined.low <= truth <= refined.high
    for bounded in ("t<=10", "hitting", [0.5] * 10):  # later meetings weigh 0: nothing is unknown
        found = index.similarity("a12", "b12", meeting_weight=bounded)
        assert found.score == 0
        assert found.high < 0.1


# -- refined answers ------------------------------------------------------------------------


def test_meeting_weight_rejected_by_refined_simrank(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(EDGES, range(12))
    index = cocite.build(graph, tmp_path / "i", measure="simrank", samples=10)
    with pytest.raises(UsageError, match="only with the default: pass --meeting-weight"):
        index.related(LINKED, refine=True, meeting_weight="hitting")
    with pytest.raises(UsageError, match="only with the default: pass --meeting-weight"):
        index.similarity(LINKED, "4", target_error=0.01, meeting_weight="t<=3")
    assert index.related(LINKED, refine=True, decay=0.5)
    with pytest.raises(UsageError, match="refined only with the default"):
        index.related_all(tmp_path / "all.csv", refine=True, meeting_weight="hitting")
    assert not list(tmp_path.glob("all*"))


# -- default of an index ----------------------------------------------------------------------


def test_meeting_weight_default_is_stored_in_index(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(EDGES, range(12))
    without_weight = cocite.build(graph, tmp_path / "plain", samples=20, **OPTIONS)
    weight = lambda t: t <= 2  # noqa: E731
    index = cocite.build(graph, tmp_path / "i", samples=20, meeting_weight=weight, **OPTIONS)
    for name, entry in without_weight.stored.store.manifest.files.items():
        assert index.stored.store.manifest.files[name] == entry  # the same samples
    assert "meeting_weight" not in Store.open(str(tmp_path / "plain"), "index").facts
    reopened = cocite.open(tmp_path / "i")
    stored = "1.0, 1.0, 0.0, 0.0, 0.0, 0.0"
    assert reopened.stored.meeting_weight == stored
    expected = without_weight.related(LINKED, meeting_weight="t<=2")
    assert reopened.related(LINKED) == expected != without_weight.related(LINKED)
    assert reopened.related(LINKED, meeting_weight="decay**t") == without_weight.related(LINKED)
    assert reopened.related(LINKED, decay=0.3) == without_weight.related(LINKED, decay=0.3)
    assert RelatedDocument.of(reopened, LINKED).settings["meeting_weight"] == stored
    assert RelatedDocument.of(without_weight, LINKED).settings["decay"] == 0.6
    assert [row[::2][:2] for row in all_rows(reopened, tmp_path / "all", 3)] == [
        (n, h.node)
        for n in without_weight.nodes
        for h in without_weight.related(n, 3, meeting_weight="t<=2")
    ]
    options: dict[str, Any] = {"meeting_weight": "t<=2", **OPTIONS}
    for n in (0, 10):
        cocite.build(graph, tmp_path / str(n), numbers=range(n, n + 10), **options)
    merged = cocite.merge([tmp_path / "0", tmp_path / "10"], tmp_path / "joined")
    assert merged.stored.meeting_weight == "t <= 2"
    assert merged.related(LINKED) == reopened.related(LINKED)
    with pytest.raises(UsageError, match="meeting_weight 't <= 2'"):
        cocite.merge([tmp_path / "0", tmp_path / "plain"], tmp_path / "no")
    refreshed = cocite.refresh(tmp_path / "i", graph, fraction=0.5, force=True)
    assert refreshed.stored.meeting_weight == stored


def test_meeting_weight_rejects_invalid_values(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph, failing = make_graph(EDGES, range(12)), lambda t: 1 / (t - 3)
    for weight, message in (
        ("t", "after 2 steps"),
        ("1, 0.5", "2 numbers"),
        ("t>9", "is 0 for all meetings"),
        (failing, "failed for a step from 1 to 6: division by zero"),
    ):
        with pytest.raises(UsageError, match=message):
            cocite.build(graph, tmp_path / "i", meeting_weight=weight, **OPTIONS)
    with pytest.raises(UsageError, match="has no setting 'meeting_weight'"):
        cocite.build(graph, tmp_path / "i", measure="cocitation", meeting_weight="t<=3")
    assert not (tmp_path / "i").exists()
    mixed = cocite.build(graph, measure="blend:simrank(length=3)+psimrank", length=5, samples=9)
    with pytest.raises(UsageError, match="it must have 5, one for each step"):
        mixed.related(LINKED, meeting_weight=[1, 0.5, 0.25])
    numbers = [0.9, 0.5, 0.25, 0.1, 0.1]
    assert mixed.related(LINKED, meeting_weight=numbers) == mixed.related(
        LINKED, meeting_weight=lambda t: numbers[t - 1]
    )


# -- the command line --------------------------------------------------------------------------


def test_meeting_weight_flag_accepts_files_and_expressions(
    make_graph: MakeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, index = str(make_graph(EDGES, range(12)).path), str(tmp_path / "i")
    command, numbers = ["index", graph, "--measure", "psimrank"], tmp_path / "worth.txt"
    numbers.write_text("0.9\n0.5\n\n0.1\n")
    assert main([*command, "-o", index, "--length", "3", "--meeting-weight", str(numbers)]) == 0
    assert "0.9, 0.5, 0.1, unless a query overrides it" in capsys.readouterr().out
    assert main(["info", index]) == 0
    assert "0.9, 0.5, 0.1, unless a query overrides it" in capsys.readouterr().out
    found = cocite.open(index)
    for flags, weight in (
        ([], [0.9, 0.5, 0.1]),
        (["--meeting-weight", "t<=2"], "t<=2"),
        (["--meeting-weight", "0.9, 0.5, 0.2"], [0.9, 0.5, 0.2]),
        (["--meeting-weight", "hitting"], "hitting"),
        (["--decay", "0.3"], "0.3**t"),
    ):
        assert main(["related", index, LINKED, "--format", "json", *flags]) == 0
        document = json.loads(capsys.readouterr().out)
        assert json_hits(document) == found.related(LINKED, meeting_weight=weight)
    assert main(["similarity", index, LINKED, "4", "--meeting-weight", "hitting"]) == 0
    output = capsys.readouterr().out
    mean = (1 - found.similarity(LINKED, "4", meeting_weight="hitting").score) * 4
    assert f"{mean:.2f} steps on average, 4 if they do not meet" in output
    options = ["--meeting-weight", "t<=2", "--length", "3", "--measure", "psimrank"]
    assert main(["why", graph, LINKED, "4", *options]) == 0
    path = str(tmp_path / "all.csv")
    assert main(["related-all", index, "-o", path, "--meeting-weight", "t<=2"]) == 0
    numbers.write_text("0.9\nhalf\n")
    capsys.readouterr()
    assert main(["related", index, LINKED, "--meeting-weight", str(numbers)]) == 1
    assert "the file must contain a number from 0 to 1 for each step" in capsys.readouterr().err
    assert main(["related", index, LINKED, "--meeting-weight", "t<=2", "--decay", "0.5"]) == 2
