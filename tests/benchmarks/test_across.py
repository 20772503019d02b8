"""Several suites at once: the plan, the answers, the tables, the errors."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.studies.across import Across, across_tables, run_across
from benchmarks.studies.rankers import RowRanker
from benchmarks.studies.suite import load_across, load_suite

from cocite.errors import UsageError
from cocite.evaluation import Judge, read_labels
from cocite.measures import DEFAULT, MEASURES
from tests.conftest import MakeGraph

PLAN = """
about = "Two <webs>"
baseline = "fusion both"

[judge]
queries = 40
sweep_queries = 15
cutoffs = [10]
quick = true
resamples = 50

[[method]]
measures = ["fusion"]

[[embedding]]
name = "vectors"
dimensions = 8

[[sweep]]
setting = "form"
values = ["cosine", "jaccard"]
measures = ["cocitation"]
directions = ["in", "both"]

[[sweep]]
setting = "mutual"
values = [false, true]
measures = ["fusion"]

[best]
"""
LABELED = "[data]\nweb = {nodes = 300, links = 2000, seed = 3}\n"
PLAIN = '[data]\nlinks = "l.tsv"\nfolder = "other"\nunlabeled = true\n'
LINKS = [(i, (i * i + j) % 31) for i in range(31) for j in (1, 5)] + [(100, 101), (102, 102)]

LINK_MEASURES = [name for name, measure in MEASURES.items() if not measure.texts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two suites, a plan, and a data folder with one subfolder."""
    folder = tmp_path_factory.mktemp("suites")
    (folder / "data" / "other").mkdir(parents=True)
    (folder / "data" / "other" / "l.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in LINKS))
    for name, text in (("plan", PLAN), ("made", LABELED), ("plain", PLAIN)):
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def across(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Across:
    pytest.importorskip("sklearn")
    suites = [load_suite(str(folder / f"{name}.toml")) for name in ("made", "plain")]
    plan = load_suite(str(folder / "plan.toml"))
    return run_across(suites, folder / "data", tmp_path_factory.mktemp("work"), plan, threads=2)


def test_load_across_plan_covers_every_measure() -> None:
    plan = load_across()
    swept = {name for sweep in plan.sweep for name in sweep.measures}
    assert swept == set(LINK_MEASURES)
    for sweep in plan.sweep:
        for name in sweep.measures:
            settings = (*MEASURES[name].build, *MEASURES[name].ask)
            assert sweep.setting in {each.name for each in settings}, name
    (default,) = plan.methods().items()
    measure = MEASURES[DEFAULT]
    assert default[0] == plan.baseline == f"{measure.name} {measure.direction}"
    assert {setting.default for setting in measure.ask} == set(dict(default[1].ask).values())
    assert {embedding.kind for embedding in plan.embedding} == {"spectral", "walks"}
    assert 0 < plan.judge.sweep_queries < plan.judge.queries
    assert plan.best is not None


@pytest.mark.long
def test_run_across_covers_every_suite_and_method(across: Across) -> None:
    labeled = [row for row in across.rows if row.suite == "made"]
    assert labeled[0].method == "fusion both"
    assert {row.point.measure for row in labeled if row.point} == {"fusion", "cocitation"}
    assert labeled[-1].method == "vectors"
    plain = [row for row in across.rows if row.suite == "plain"]
    assert [row.point.measure if row.point else row.method for row in plain] == [
        *LINK_MEASURES,
        "vectors",
    ]
    assert not any(row.figures for row in plain)
    assert across.chosen == {"made": (15, 25)}
    assert all(row.build_seconds > 0 and row.bytes > 0 for row in across.rows)


def test_judge_longest_keeps_figures_within_cutoffs(make_graph: MakeGraph, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((60, 60))
    graph = make_graph([(i, (i + 1) % 60) for i in range(60)])
    text = "".join(f"{i}\t{'ab'[i % 2]}\n" for i in range(60))
    (tmp_path / "l.tsv").write_text(text)
    labels = read_labels(tmp_path / "l.tsv", graph.names)
    ranker = RowRanker(lambda node: scores[node], 60)
    queries, classes = labels.labeled, labels.collapsed()
    full = Judge(queries, relevance=classes, cutoffs=[1, 10])(ranker)
    short = Judge(queries, relevance=classes, cutoffs=[1, 10], longest=10)(ranker)
    for title in ("precision@1", "precision@10", "ndcg@10", "answered"):
        assert short.value(title) == full.value(title)
    with pytest.raises(UsageError, match="longest is 5; it must be at least 10, or 0"):
        Judge(queries, relevance=classes, cutoffs=[10], longest=5)
    with pytest.raises(UsageError, match="longest is 10, but Gamma needs whole lists"):
        Judge(queries, familial=classes, cutoffs=[1], longest=10)


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_across_tables_have_method_rows_and_suite_columns(across: Across) -> None:
    tables = {table.heading: table for table in across_tables(across)}
    assert list(tables)[:3] == ["precision@10", "gamma", "gamma_macro"]
    precision = tables["precision@10"]
    assert list(precision.titles) == ["", "made"]
    assert precision.rows[0][0] == "the default, fusion"
    cells = {row[0]: row[1] for row in precision.rows}
    assert ", +" in cells["cocitation"] or ", -" in cells["cocitation"]
    lists = tables["answered / full lists of 20"]
    assert list(lists.titles) == ["", "made", "plain"]
    assert {"the default, fusion", "vectors", *LINK_MEASURES} - {"fusion"} <= {
        row[0] for row in lists.rows
    }
