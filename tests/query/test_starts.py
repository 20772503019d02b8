"""What a question takes from a shell: real processes, told once a layout, and never an error."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cocite
from cocite.query.plan import starts as module
from cocite.query.plan.starts import shell_quantiles, starts
from tests.conftest import MakeGraph


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_remembered", {})


def of_children() -> float:
    """Seconds that processes took that have ended, whatever else the machine did."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def test_a_start_is_what_a_process_takes(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=of_children))
    cocite.build(make_graph([("a", "x"), ("a", "y"), ("b", "y")]), tmp_path / "i")
    names = ["x", "y", "a", "b"]
    found = starts(tmp_path / "i", "some", names, [0.0] * 4, 0.0)
    assert found is not None
    assert found.size == 2
    begin = of_children()
    command = [sys.executable, "-m", "cocite", "related", str(tmp_path / "i"), "x"]
    subprocess.run(command, check=True, capture_output=True)
    taken = of_children() - begin
    # Five times: others may use the caches and the clock of the processor now, or have then.
    assert found.min() / 5 < taken < 5 * found.max()
    assert starts(tmp_path / "none", "some", names, [0.0] * 4, 0.0) is found


def test_what_cannot_be_asked_is_not_known(tmp_path: Path) -> None:
    assert starts(tmp_path / "none", "other", ["x"] * 3, [0.0] * 3, 0.0) is None
    assert shell_quantiles(None, np.ones(3)) == (None, None)
    assert shell_quantiles(np.ones(3), None) == (None, None)


def test_any_start_meets_any_question() -> None:
    found = shell_quantiles(np.array([1.0, 2.0]), np.array([0.1, 0.2, 0.3]))
    sums = [1.1, 1.2, 1.3, 2.1, 2.2, 2.3]
    assert found == pytest.approx(np.quantile(sums, (0.5, 0.99)).tolist())
