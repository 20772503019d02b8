"""``benchmarks/exact_figures.py`` and ``benchmarks/exact_changes.py`` measure what they say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import exact_figures as figures
from tests.conftest import MakeGraph


def test_methods_run_to_their_accuracy_or_say_why(make_graph: MakeGraph) -> None:
    rng = np.random.default_rng(5)
    web = make_graph({(int(a), int(b)) for a, b in rng.integers(0, 300, (2400, 2))}, range(300))
    list(figures._spaces("warm", web))
    rows = {row["method"]: row for row in figures._spaces("random", web)}
    assert list(rows) == list(figures.KINDS)
    psum, pruned = rows["PSUM-SR (psum)"], rows["SOR-SR (sor 1.3, pruned at 0.009)"]
    assert 16 * 300**2 <= psum["measured"] <= psum["planned"] + 300_000
    assert pruned["planned"] is None
    assert pruned["scores kept"] >= pruned["rows"]
    for row in (psum, pruned, rows["gauss-seidel"]):
        assert row["converged"]
        assert row["true error"] <= row["bound"] <= 0.05
    assert not rows["SVD-SR (svd, rank 50)"]["converged"]


def test_tables_and_pictures(tmp_path: Path) -> None:
    kinds = list(figures.KINDS)
    rows: list[dict[str, Any]] = [
        {"graph": "authors as DBLP 98-99", "method": kinds[2], "planned": 2e6, "measured": 1e6},
        {"graph": "cora", "method": kinds[0], "planned": None, "measured": 5e5, "seconds": 1e-4},
    ]
    lines = figures.table(rows).splitlines()
    assert lines[0] == "| graph | method | planned | measured | seconds |"
    assert lines[2] == f"| authors as DBLP 98-99 | {kinds[2]} | 2 MB | 1 MB |  |"
    assert lines[3] == f"| cora | {kinds[0]} |  | 500 kB | 1.00e-04 |"
    pytest.importorskip("matplotlib")
    figures.space_picture(rows, tmp_path)
    assert (tmp_path / "space.svg").stat().st_size > 1000
