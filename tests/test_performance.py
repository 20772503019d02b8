"""docs/performance.md is made of the results, and what makes it computes right."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.arithmetic import Ratio, exponent, ratio, slower
from benchmarks.kept import ResultStore, provenance
from benchmarks.peers import document
from benchmarks.peers.tasks import PACKAGES, TASKS, missing
from benchmarks.performance import DOCUMENT, STUDIES, block, marks, newest, whole

from benchmarks import limits, limits_table


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
    assert not slower(Ratio(0.52, 0.61, 0.9), kept)  # by less than 5%
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
    kept = ResultStore("study", tmp_path)
    kept.keep("b", {"x": 2}, None)
    kept.keep("c", {"x": 3}, 1.5)
    assert json.loads(old.read_text()) == {"a": part, "b": part}
    found = kept.newest()
    assert [found[key]["found"]["x"] for key in "abc"] == [1, 2, 3]
    assert found["a"] == part
    assert len(kept.files()) == 2
    assert provenance(found).startswith("2001-02-03 to 20")
    assert provenance(found).endswith("other programs kept 0.5 to 1.5 cores busy.")
    assert ResultStore("study", tmp_path / "none").newest() == {}


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "graphblas", ("graphblas", "no_such_module"))
    monkeypatch.setattr("benchmarks.peers.tasks.find_spec", lambda name: None)
    assert missing("graphblas") == "pip install python-graphblas no_such_module"
    assert missing("cocite") == ""
    assert all(set(task.solvers) <= set(PACKAGES) for task in TASKS.values())


def test_a_kernel_far_from_its_limit_has_a_reason() -> None:
    assert set(limits_table.KERNELS) == set(limits_table.WHY)
    assert set(limits_table.KERNELS) == {*limits.WORK, "text"}
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
    text = limits_table.figures({"sweep g": {**part, "found": row}})
    assert "| 0.40 |" in text
    assert limits_table.WHY["sweep"] in text
    text = limits_table.figures({"sweep g": {**part, "found": {**row, "limit": 0.6}}})
    assert limits_table.WHY["sweep"] not in text
