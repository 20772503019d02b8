"""Generated webs: valid, of exact size, equal for all piece sizes, and web-like."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph
from cocite.errors import UsageError
from cocite.graph import generate
from cocite.graph.generate import generate_web

NODES, LINKS = 6000, 60_000
WEB: dict[str, Any] = {"nodes": NODES, "links": LINKS, "seed": 3}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of web.graph and topics.tsv."""
    folder = tmp_path_factory.mktemp("made")
    generate_web(folder / "web.graph", labels=folder / "topics.tsv", **WEB)
    return folder


@pytest.fixture
def graph(generated: Path) -> Graph:
    return Graph.open(generated / "web.graph")


def host(name: str) -> str:
    return name.partition(")")[0]


def assert_valid(graph: Graph, nodes: int, links: int) -> None:
    """Check that a stored graph is valid, and of exactly this size."""
    assert (graph.nodes, graph.edges) == (nodes, links)
    offsets = graph.in_offsets.astype(np.int64)
    sources = graph.in_sources.astype(np.int64)
    assert (offsets.size, offsets[0], offsets[-1], sources.size) == (nodes + 1, 0, links, links)
    degrees = np.diff(offsets)
    assert (degrees >= 0).all()
    destinations = np.repeat(np.arange(nodes), degrees)
    assert (sources < nodes).all()
    assert (sources != destinations).all()
    keys = destinations * nodes + sources
    assert (np.diff(keys) > 0).all()  # ascending and distinct within a destination
    assert np.array_equal(np.bincount(sources, minlength=nodes), graph.out_degrees)


def test_generate_web_makes_valid_graph_of_given_size(graph: Graph) -> None:
    assert_valid(graph, NODES, LINKS)
    info = graph.info()
    assert (info.rows, info.duplicates, info.self_loops, info.bad_rows) == (LINKS, 0, 0, 0)
    assert [graph.store.verify(name) for name in graph.store.manifest.files] == [None] * 7


@settings(max_examples=60)
@given(
    nodes=st.one_of(st.integers(1, 40), st.integers(41, 3000)),
    share=st.one_of(st.floats(0, 0.05), st.floats(0, 1), st.just(1.0)),
    seed=st.integers(0, 2**64 - 1),
)
def test_generate_web_meets_any_size_exactly(
    tmp_path: Path, nodes: int, share: float, seed: int
) -> None:
    links = min(int(share * nodes * ((nodes - 1) // 2)), 50_000)
    output = tmp_path / "any.graph"
    size: dict[str, Any] = {"nodes": nodes, "links": links, "seed": seed}
    assert_valid(generate_web(output, names="integers", overwrite=True, **size), nodes, links)


@pytest.mark.parametrize("pieces", [{}, {"_PAGES": 37, "_LINKS": 101, "_NAMES": 48, "": 53}])
def test_generate_web_bytes_ignore_piece_size(
    generated: Path,
    graph: Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pieces: dict[str, int],
) -> None:
    for name, size in pieces.items():
        monkeypatch.setattr(generate, f"{name}_PIECE", size)
    again = generate_web(tmp_path / "again", labels=tmp_path / "topics.tsv", **WEB)
    manifest = (graph.path / "manifest.json").read_bytes()
    assert (again.path / "manifest.json").read_bytes() == manifest
    assert (tmp_path / "topics.tsv").read_bytes() == (generated / "topics.tsv").read_bytes()


def test_generate_web_depends_on_seed(graph: Graph, tmp_path: Path) -> None:
    assert generate_web(tmp_path / "other", **WEB | {"seed": 4}).digest != graph.digest


def test_generate_web_keeps_bytes_of_model(graph: Graph) -> None:
    """If this fails, graphs of a seed have changed: raise the number in MODEL."""
    assert graph.store.facts["generated"] == {
        "model": "web 1",
        "seed": 3,
        "hosts": 60,
        "tail": 0.8973388671875,
    }
    assert graph.digest == "2d70f0be637c92d0a41dfcf307648a48"


def test_generate_web_names_ascend_and_are_found(graph: Graph) -> None:
    names = list(graph.names)
    encoded = [name.encode() for name in names]
    assert all(before < name for before, name in pairwise(encoded))
    assert [graph.names.find(name) for name in names] == list(range(NODES))
    assert graph.names.find("com,d0,h00)/nowhere") is None
    assert graph.names.with_prefix(names[100]).tolist() == [100]
    assert len(set(map(host, names))) == 60
    assert not graph.store.has("names.by_name")


def test_generate_web_takes_integer_names(graph: Graph, tmp_path: Path) -> None:
    labels = tmp_path / "topics.tsv"
    plain = generate_web(tmp_path / "plain", names="integers", labels=labels, **WEB)
    assert np.array_equal(plain.in_sources, graph.in_sources)
    assert plain.info().names == "integers 0 to n - 1"
    rows = labels.read_text().splitlines()
    assert [row.split("\t")[0] for row in rows] == list(map(str, range(NODES)))


def test_generate_web_labels_cover_pages_and_form_tree(generated: Path, graph: Graph) -> None:
    rows = [row.split("\t") for row in (generated / "topics.tsv").read_text().splitlines()]
    assert [name for name, _ in rows] == list(graph.names)
    topics = {host(name): topic for name, topic in rows}
    assert all(topics[host(name)] == topic for name, topic in rows)  # each host has one topic
    leaves = Counter(topics.values())
    paths = [leaf.split(".") for leaf in leaves]
    assert {len(path) for path in paths} == {4}
    assert {path[0] for path in paths} == {"topic"}
    assert all(digit in ("0", "1") for path in paths for digit in path[1:])
    assert len(leaves) > 4
    assert max(leaves.values()) >= 2 * min(leaves.values())


def test_generate_web_links_sites_of_one_topic(generated: Path, graph: Graph) -> None:
    rows = [row.split("\t") for row in (generated / "topics.tsv").read_text().splitlines()]
    topic = dict(rows)
    names = list(graph.names)
    shares = []
    for node, name in enumerate(names):
        sources = [names[source] for source in graph.in_neighbors(node).tolist()]
        external = [source for source in sources if host(source) != host(name)]
        if name.endswith(")/") and external:
            shares.append(np.mean([topic[source] == topic[name] for source in external]))
    # A tenth of the links starts anywhere, and popular front pages outgrow topics of seven hosts.
    assert len(shares) > 50
    assert np.mean(shares) > 0.35  # 0.17 by chance


def test_generate_web_is_web_like(tmp_path: Path) -> None:
    graph = generate_web(tmp_path / "like", nodes=50_000, links=500_000, seed=1, names="integers")
    degrees = np.diff(graph.in_offsets).astype(np.int64)
    assert np.median(degrees) == 1
    assert 5 <= np.quantile(degrees, 0.9) <= 20
    assert np.quantile(degrees, 0.999) > 300  # a geometric tail of mean 10 would end near 70
    assert degrees.max() > 2000
    assert (degrees > 0).all()
    assert 0.27 < (graph.out_degrees == 0).mean() < 0.58
    starts = generate.plan_web(50_000, 500_000, 1).starts
    sources = np.searchsorted(starts, graph.in_sources, side="right")
    nodes = np.repeat(np.searchsorted(starts, np.arange(graph.nodes), side="right"), degrees)
    assert 0.75 < (sources == nodes).mean() < 0.95
    assert np.diff(starts).max() > 50 * np.median(np.diff(starts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 0}, "nodes is 0; a graph has 1 to 4,294,967,295"),
        ({"nodes": 2**32}, "nodes is 4,294,967,296; a graph has 1 to 4,294,967,295"),
        ({"nodes": 10.0}, "nodes is 10.0; it must be a whole number"),
        ({"nodes": True}, "nodes is True; it must be a whole number"),
        ({"links": -1}, "links is -1; a generated graph of 100 nodes has 0 to 4,900 links. Re"),
        ({"links": 4901}, "links is 4,901; a generated graph of 100 nodes has 0 to 4,900"),
        ({"links": "5"}, "links is '5'; it must be a whole number"),
        ({"seed": -1}, "seed is -1; it must be 0 to 2**64 - 1"),
        ({"seed": 2**64}, "seed is 18446744073709551616; it must be 0 to 2**64 - 1"),
        ({"names": "urls"}, "names is 'urls'; it must be text or integers"),
    ],
)
def test_generate_web_refuses_invalid_arguments(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    arguments: dict[str, Any] = {"nodes": 100, "links": 300, "seed": 1} | change
    with pytest.raises(UsageError) as raised:
        generate_web(tmp_path / "g", **arguments)
    assert str(raised.value).startswith(message)
    assert list(tmp_path.iterdir()) == []
