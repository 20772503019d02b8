"""What a build reports of its graph: hubs, and pages without answers."""

from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.index.plan import BuildOptions
from cocite.index.reports import GraphReport
from cocite.measures import MEASURES
from tests.conftest import MakeGraph
from tests.graph.test_stored_graph import site

WAYS = [
    (name, way)
    for i, (name, measure) in enumerate(MEASURES.items())
    if not measure.texts
    for way in measure.directions[i % 2 :: 2] or measure.directions
]


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """40 pages, some without in-links, some without out-links, and one without links."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    pairs = {(int(a), int(b)) for a, b in rng.integers((0, 8), (30, 40), (90, 2)) if a != b}
    (folder / "links.tsv").write_text("".join(f"p{a}\tp{b}\n" for a, b in sorted(pairs)))
    (folder / "nodes.tsv").write_text("lone\n")
    return cocite.ingest(folder / "links.tsv", folder / "g", nodes=folder / "nodes.tsv")


@pytest.mark.parametrize(("measure", "way"), WAYS)
def test_graph_report_counts_nodes_without_answers(
    sparse: Graph, tmp_path: Path, measure: str, way: str
) -> None:
    options = BuildOptions.checked(measure, way).for_graph(sparse)
    index = cocite.build(sparse, tmp_path / "i", measure=measure, direction=way)
    empty = {name for name in sparse.names if not index.related(name, 1)}
    report = GraphReport.of(sparse, options)
    linked = {"in": sparse.in_neighbors, "out": sparse.out_neighbors}
    ways = list(linked) if report.way == "any" else [report.way]
    unlinked = {
        sparse.names[node]
        for node in range(sparse.nodes)
        if not any(linked[each](node).size for each in ways)
    }
    assert unlinked <= empty
    assert report.without == len(unlinked) > 0
    needed = MEASURES[measure].looks_at(way)
    assert report.way in ("any", needed)
    if report.way == "any" and needed in linked:  # otherwise the report could count more pages
        assert not {n for n in sparse.names if not linked[needed](sparse.names.id(n)).size} <= empty


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(site())


def report_lines(graph: Graph, measure: str, **settings: object) -> list[str]:
    options = BuildOptions.checked(measure, None, None, settings).for_graph(graph)
    return GraphReport.of(graph, options).lines(graph, options)


def test_graph_report_advice_depends_on_measure(graph: Graph) -> None:
    beginning = "index links to 280 of the 302 pages, 150 link to foot: a page linked with so many"
    command = f"cocite ingest {graph.path} -o DIR --exclude-nodes FILE"
    for measure, advice in {
        "psimrank": "--hubs idf",
        "cocitation": "--idf",
        "fusion": "fusion already reduces their weight",
    }.items():
        line = report_lines(graph, measure)[0]
        assert line.startswith(beginning)
        assert advice in line
        assert command in line
    assert "--hubs" not in report_lines(graph, "xjaccard")[0]
    assert not any("exclude" in line for line in report_lines(graph, "psimrank", hubs="idf"))
