"""What is said of a graph when an index is made of it: its hubs, and pages that have no answer."""

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
    for name, measure in MEASURES.items()
    if not measure.texts
    for way in measure.directions
]


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """40 pages, some without in-links, some without out-links, and one without any."""
    folder = tmp_path_factory.mktemp("told")
    rng = np.random.default_rng(0)
    pairs = {(int(a), int(b)) for a, b in rng.integers((0, 8), (30, 40), (90, 2)) if a != b}
    (folder / "links.tsv").write_text("".join(f"p{a}\tp{b}\n" for a, b in sorted(pairs)))
    (folder / "nodes.tsv").write_text("lone\n")
    return cocite.ingest(folder / "links.tsv", folder / "g", nodes=folder / "nodes.tsv")


@pytest.mark.parametrize(("measure", "way"), WAYS)
def test_counted_nodes_lack_answers(some: Graph, tmp_path: Path, measure: str, way: str) -> None:
    options = BuildOptions.checked(measure, way).for_graph(some)
    index = cocite.build(some, tmp_path / "i", measure=measure, direction=way)
    empty = {name for name in some.names if not index.related(name, 1)}
    found = GraphReport.of(some, options)
    linked = {"in": some.in_neighbors, "out": some.out_neighbors}
    ways = list(linked) if found.way == "any" else [found.way]
    lone = {
        some.names[node]
        for node in range(some.nodes)
        if not any(linked[each](node).size for each in ways)
    }
    assert lone <= empty
    assert found.without == len(lone) > 0
    needed = MEASURES[measure].looks_at(way)
    assert found.way in ("any", needed)
    if found.way == "any" and needed in linked:  # else it could be known of more
        assert not {n for n in some.names if not linked[needed](some.names.id(n)).size} <= empty


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(site())


def told(graph: Graph, measure: str, **given: object) -> list[str]:
    options = BuildOptions.checked(measure, None, None, given).for_graph(graph)
    return GraphReport.of(graph, options).lines(graph, options)


def test_advice_is_that_of_the_measure(graph: Graph) -> None:
    named = "index links to 280 of the 302 pages, 150 link to foot: a page linked with so many"
    out = f"cocite ingest {graph.path} -o DIR --exclude-nodes FILE"
    for measure, advice in {
        "psimrank": "--hubs idf",
        "cocitation": "--idf",
        "fusion": "fusion already reduces their weight",
    }.items():
        line = told(graph, measure)[0]
        assert line.startswith(named)
        assert advice in line
        assert out in line
    assert "--hubs" not in told(graph, "xjaccard")[0]
    assert not any("exclude" in line for line in told(graph, "psimrank", hubs="idf"))
