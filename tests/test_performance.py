"""docs/performance.md follows from the results, and its figures are computed correctly."""

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


def test_performance_doc_matches_newest_results() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert whole(text, newest) == text
    assert all(marks(name)[0] in text for name in STUDIES)


def test_block_without_results_has_no_figures() -> None:
    for name in STUDIES:
        assert block(name, {}) == f"Not measured yet: `python -m benchmarks.{name} --write`."
    with pytest.raises(ValueError, match="no mark"):
        whole("", newest)


def test_ratio_is_of_medians_with_range_of_turns() -> None:
    assert ratio([1, 2, 9], [4, 4, 6]) == Ratio(0.5, 0.25, 1.5)
    assert str(Ratio(0.5, 0.25, 1.5)) == "0.50 (0.25–1.5)"
    with pytest.raises(ValueError, match="zip"):
        ratio([1], [1, 2])


def test_slower_requires_difference_beyond_spread() -> None:
    before = Ratio(0.5, 0.4, 0.6)
    assert slower(Ratio(0.8, 0.7, 0.9), before)
    assert not slower(Ratio(0.8, 0.59, 0.9), before)  # one turn was as fast as before
    assert not slower(Ratio(0.52, 0.61, 0.9), before)  # by less than 5%
    assert not slower(Ratio(0.8, 0.7, 0.9), before, by=2)
    now = {"solve": Ratio(0.8, 0.7, 0.9), "wall": Ratio(1, 1, 1)}
    (line,) = document.warnings(now, {"solve": before, "gone": before}, 1.25)
    assert line == "solve: 0.80 (0.70–0.90) of its time, and 0.50 (0.40–0.60) when last kept"


def test_exponent_interval_equals_scipy() -> None:
    from scipy.stats import linregress, t

    rng = np.random.default_rng(5)
    x = np.array([1, 2, 4, 8, 16, 32.0])
    y = x**0.9 * np.exp(rng.normal(0, 0.1, x.size))
    fit = linregress(np.log(x), np.log(y))
    margin = t.ppf(0.975, x.size - 2) * fit.stderr
    expected = fit.slope, fit.slope - margin, fit.slope + margin
    assert exponent(x.tolist(), y.tolist()) == pytest.approx(expected)


def test_result_store_keeps_parts_separately(tmp_path: Path) -> None:
    old = tmp_path / "study-2001-02-03.json"
    part = {"date": "2001-02-03", "machine": "m", "others": 0.5, "found": {"x": 1}}
    old.write_text(json.dumps({"a": part, "b": part}))
    store = ResultStore("study", tmp_path)
    store.keep("b", {"x": 2}, None)
    store.keep("c", {"x": 3}, 1.5)
    assert json.loads(old.read_text()) == {"a": part, "b": part}
    found = store.newest()
    assert [found[key]["found"]["x"] for key in "abc"] == [1, 2, 3]
    assert found["a"] == part
    assert len(store.files()) == 2
    assert provenance(found).startswith("2001-02-03 to 20")
    assert provenance(found).endswith("other programs kept 0.5 to 1.5 cores busy.")
    assert ResultStore("study", tmp_path / "none").newest() == {}


def test_missing_gives_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "graphblas", ("graphblas", "no_such_module"))
    monkeypatch.setattr("benchmarks.peers.tasks.find_spec", lambda name: None)
    assert missing("graphblas") == "pip install python-graphblas no_such_module"
    assert missing("cocite") == ""
    assert all(set(task.solvers) <= set(PACKAGES) for task in TASKS.values())


def test_limits_table_explains_kernel_far_from_limit() -> None:
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
