"""docs/performance.md is made of the results, and what makes it computes right."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.arithmetic import Ratio, exponent, ratio, slower
from benchmarks.kept import Kept, said
from benchmarks.peers import document
from benchmarks.peers.tasks import PACKAGES, TASKS, missing
from benchmarks.performance import DOCUMENT, STUDIES, block, marks, newest, whole

from benchmarks import growth_told, limits, limits_told, papers_told


def test_the_document_is_that_of_the_newest_results() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert whole(text, newest) == text
    assert all(marks(name)[0] in text for name in STUDIES)


def test_what_was_not_measured_has_no_figures() -> None:
    for name in STUDIES:
        assert block(name, {}) == f"Not measured yet: `python -m benchmarks.{name} --write`."
    with pytest.raises(ValueError, match="no mark"):
        whole("", newest)


def test_a_ratio_is_that_of_medians_beside_those_of_turns() -> None:
    assert ratio([1, 2, 9], [4, 4, 6]) == Ratio(0.5, 0.25, 1.5)
    assert str(Ratio(0.5, 0.25, 1.5)) == "0.50 (0.25–1.5)"
    with pytest.raises(ValueError, match="zip"):
        ratio([1], [1, 2])


def test_slower_is_what_is_beyond_the_spread_too() -> None:
    kept = Ratio(0.5, 0.4, 0.6)
    assert slower(Ratio(0.8, 0.7, 0.9), kept)
    assert not slower(Ratio(0.8, 0.59, 0.9), kept)  # a turn was as fast as one then
    assert not slower(Ratio(0.52, 0.61, 0.9), kept)  # by less than 5 %
    assert not slower(Ratio(0.8, 0.7, 0.9), kept, by=2)
    now = {"solve": Ratio(0.8, 0.7, 0.9), "wall": Ratio(1, 1, 1)}
    (line,) = document.warnings(now, {"solve": kept, "gone": kept}, 1.25)
    assert line == "solve: 0.80 (0.70–0.90) of its time, and 0.50 (0.40–0.60) when last kept"


def test_intervals_of_exponents_are_those_of_scipy() -> None:
    from scipy.stats import linregress, t

    rng = np.random.default_rng(5)
    x = np.array([1, 2, 4, 8, 16, 32.0])
    y = x**0.9 * np.exp(rng.normal(0, 0.1, x.size))
    theirs = linregress(np.log(x), np.log(y))
    apart = t.ppf(0.975, x.size - 2) * theirs.stderr
    expected = theirs.slope, theirs.slope - apart, theirs.slope + apart
    assert exponent(x.tolist(), y.tolist()) == pytest.approx(expected)


def test_results_are_kept_part_by_part(tmp_path: Path) -> None:
    old = tmp_path / "study-2001-02-03.json"
    part = {"date": "2001-02-03", "machine": "m", "others": 0.5, "found": {"x": 1}}
    old.write_text(json.dumps({"a": part, "b": part}))
    kept = Kept("study", tmp_path)
    kept.keep("b", {"x": 2}, None)
    kept.keep("c", {"x": 3}, 1.5)
    assert json.loads(old.read_text()) == {"a": part, "b": part}
    found = kept.newest()
    assert [found[key]["found"]["x"] for key in "abc"] == [1, 2, 3]
    assert found["a"] == part
    assert len(kept.files()) == 2
    assert said(found).startswith("2001-02-03 to 20")
    assert said(found).endswith("other programs kept 0.5 to 1.5 cores busy.")
    assert Kept("study", tmp_path / "none").newest() == {}


def run(load: float, first: float, *again: float) -> dict[str, Any]:
    """A run as the worker tells it, twice as long by the clock."""
    return {
        "load": [load, 2 * load],
        "first": [first, 2 * first],
        "again": [[one, 2 * one] for one in again],
        "peak": 1,
    }


def test_a_comparison_is_told() -> None:
    row = {
        "task": "pagerank",
        "graph": "web",
        "library": "igraph",
        "nodes": 1000,
        "links": 2000,
        "error": 5e-12,
        "ours": [run(1, 2, 0.5, 1.0), run(1, 2, 0.5, 1.0)],
        "theirs": [run(4, 5, 4.0), run(4, 5, 4.0)],
    }
    found = document.ratios(row)
    assert {key: each.value for key, each in found.items()} == {
        "solve": 0.25,
        "asked": 0.125,
        "wall": 0.25,
        "whole": 3 / 9,
    }
    part = {"date": "2001-02-03", "machine": "m", "others": None, "found": row}
    text = document.figures({"one": part})
    assert "| web (1,000 / 2,000) | igraph | 5e-12 | 4.0 s | 4.0 s | 0.25 (0.25–0.25) |" in text
    other = {**row, "ours": [], "unlike": True, "error": 0.7}
    assert "another answer" in document.figures({"one": {**part, "found": other}})
    failed = {"task": "pagerank", "graph": "web", "library": "igraph", "why": "failed: x"}
    assert "* igraph on web: failed: x." in document.figures({"one": {**part, "found": failed}})


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "graphblas", ("graphblas", "no_such_module"))
    monkeypatch.setattr("benchmarks.peers.tasks.find_spec", lambda name: None)
    assert missing("graphblas") == "pip install python-graphblas no_such_module"
    assert missing("cocite") == ""
    assert all(set(task.solvers) <= set(PACKAGES) for task in TASKS.values())


def growing(nodes: int) -> dict[str, Any]:
    """A point of which all grows with its size, but for what Python takes."""
    spent = {"spent": [nodes / 1e4, nodes / 1e4], "base": 10**8, "peak": 10**8 + 50 * nodes}
    return {
        "series": "nodes",
        "point": {"nodes": nodes, "links": 10 * nodes, "samples": 10, "length": 10},
        "generate": {**spent, "bytes": 40 * nodes},
        "rank": spent,
        "psimrank": {**spent, "bytes": 90 * nodes},
        "related psimrank": {**spent, "warm_ms": [0.1, 1.0]},
    }


def test_growth_is_told_by_exponents(tmp_path: Path) -> None:
    part = {"date": "2001-02-03", "machine": "m", "others": None}
    parts = {str(n): {**part, "found": growing(n)} for n in (10**5, 10**6, 10**7)}
    text = growth_told.figures(parts)
    assert "| building | 1.00 [1.00, 1.00] |" in text
    assert "| building, memory | 1.00 [1.00, 1.00] |" in text
    assert "| `related`, median | 0.00 [0.00, 0.00] |" in text
    assert "**Nodes** (10 samples, 10 length):" in text
    small = growing(10**4)
    small["psimrank"]["peak"] = small["psimrank"]["base"]
    more = growth_told.figures({**parts, "small": {**part, "found": small}})
    assert "| building, memory | 1.00 [1.00, 1.00] |" in more
    assert "| 10,000 | 1.0 s | 1.0 s | 500 kB | 1.0 s | – |" in more
    growth_told.picture(parts, tmp_path / "growth.svg")
    assert "<svg" in (tmp_path / "growth.svg").read_text()


def test_a_kernel_far_from_its_limit_has_a_reason() -> None:
    assert set(limits_told.KERNELS) == set(limits_told.WHY)
    assert set(limits_told.KERNELS) == {*limits.WORK, "text"}
    row = {
        "kernel": "sweep",
        "graph": "g",
        "nodes": 1,
        "links": 2,
        "seconds": 1.0,
        "limit": 0.4,
        "streamed": 10.0,
        "missed": 5,
        "bandwidth": 1e10,
        "access": 1e-8,
        "cache": 1 << 20,
    }
    part = {"date": "2001-02-03", "machine": "m", "others": None}
    text = limits_told.figures({"sweep g": {**part, "found": row}})
    assert "| 0.40 |" in text
    assert limits_told.WHY["sweep"] in text
    text = limits_told.figures({"sweep g": {**part, "found": {**row, "limit": 0.6}}})
    assert limits_told.WHY["sweep"] not in text


def test_fewer_samples_are_extrapolated_and_said_to_be() -> None:
    found = {
        "spent": [30.0, 60.0],
        "peak": 3 * 10**9,
        "base": 0,
        "bytes": 10**9,
        "samples": 25,
        "length": 10,
        "chosen": {"nodes": 100, "links": 1270, "memory": 4 * 10**9},
    }
    part = {"date": "2001-02-03", "machine": "m", "others": None, "found": found}
    small = {**part, "found": {**found, "chosen": {**found["chosen"], "nodes": 10}}}  # type: ignore[dict-item]
    text = papers_told.figures({"psimrank": part, "simrank": small})
    assert "25 samples of length 10 | 30 s (100: 2 min) | 1 min (100: 4 min) | 3 GB" in text
    assert "1 GB (100: 4 GB)" in text
    assert "SimRank |" in text
    assert "index, SimRank" not in text  # of another web
