"""``benchmarks/exact_figures.py`` and ``benchmarks/exact_changes.py`` measure what they say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.sor import Shop

from benchmarks import exact_changes as changes
from benchmarks import exact_figures as figures
from cocite.allpairs import core as cores
from cocite.allpairs.prune import PrunedSweeps
from cocite.cluster import Team
from cocite.graph.links import in_links
from tests.conftest import MakeGraph
from tests.oracles import simrank as exact


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path, False, [])


def test_the_mean_change_is_equation_13_over_all_pairs_of_nodes(make_graph: MakeGraph) -> None:
    """With nodes that share a row, in the iterates of the whole and of the pruned matrix."""
    rng = np.random.default_rng(3)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, 25, (70, 2)) if a != b}
    edges |= {(a, 25 + i) for a, b in edges if b == 7 for i in range(3)}
    web = make_graph(sorted(edges), range(30))
    ids = {name: web.names.id(str(name)) for name in range(30)}
    links = exact.dense(30, [(ids[a], ids[b]) for a, b in edges])
    right = [exact.simrank(links, 0.6, rounds) for rounds in range(7)]
    core = cores.reduce(in_links(web), order=False)
    assert core.size < 28
    with Team(1) as team:
        found = changes._changes(core, changes._iterations(core, team)["PSUM-SR (plain)"]())
        sparse = PrunedSweeps(core, float, team, (0.6, 1.0, 1e-12), False, (0, 1 << 30))
        pruned = changes._changes(core, sparse)
    for k in (2, 4, 6):
        change = np.abs(right[k] - right[k - 1]).mean()
        assert found[f"k={k}"] == pytest.approx(change, rel=1e-9)
        assert pruned[f"k={k}"] == pytest.approx(change, rel=1e-9)


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


def test_run_beyond_memory_is_plan(make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "available", lambda: 1)
    rows = list(figures._spaces("line", make_graph([(i, i + 1) for i in range(20)])))
    assert all(("seconds" in row) == (row["planned"] is None) for row in rows)


def test_a_line_has_its_links_at_the_diagonal_once_it_is_ordered(make_graph: MakeGraph) -> None:
    shuffled = np.random.default_rng(1).permutation(50)
    web = make_graph([(int(shuffled[i]), int(shuffled[i + 1])) for i in range(49)])
    (_, *stored), (_, *ordered) = figures._orders(web)
    assert np.abs(stored[0] - stored[1]).max() > 10
    assert np.abs(ordered[0] - ordered[1]).max() == 1
    assert figures._empty_blocks(ordered[0], ordered[1], 50) == 25 - (5 + 4)


def test_categories_lead_to_those_below_and_to_their_articles(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(changes, "DATA", tmp_path)
    assert changes.categories(shop) is None
    assert list(changes.real(shop, "cora")) == []
    told = capsys.readouterr().out
    assert "categories are left out" in told
    assert "cora is left out" in told
    (tmp_path / "wikispeedia").mkdir()
    text = "# a comment\nZebra\tsubject.Science.Mammals\nZebra\tsubject.Africa\n"
    (tmp_path / "wikispeedia" / "categories.tsv").write_text(text)
    web = changes.categories(shop)
    assert web is not None
    names: list[str] = web.names.names(np.arange(web.nodes))
    target = np.repeat(np.arange(web.nodes), np.diff(web.in_offsets.astype(int)))
    links = {(names[a], names[b]) for a, b in zip(web.in_sources, target, strict=True)}
    assert links == {
        ("subject", "subject.Science"),
        ("subject", "subject.Africa"),
        ("subject.Science", "subject.Science.Mammals"),
        ("subject.Science.Mammals", "Zebra"),
        ("subject.Africa", "Zebra"),
    }


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
