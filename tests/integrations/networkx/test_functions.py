"""The backend against NetworkX: equal results and exceptions for equal arguments.

NetworkX's own functions are the oracle: they share only random numbers with the backend.
The backend is called as NetworkX calls it, on graphs from ``convert_from_nx``, so that no entry
point needs to be installed.
"""

import io
from collections.abc import Callable
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pandas
import pytest
import scipy.sparse

from cocite.errors import ResourceError
from cocite.integrations.networkx import algorithms, backend
from cocite.integrations.networkx.graph import BackendGraph
from tests.integrations.networkx.oldest import pytestmark

__all__ = ["pytestmark"]

Make = Callable[[], Any]


def undirected() -> Any:
    """Names of several kinds, weights on some links, a self-loop, an isolated node."""
    graph = nx.gnm_random_graph(40, 90, seed=3)
    rng = np.random.default_rng(1)
    for _, _, attributes in list(graph.edges(data=True))[::2]:
        attributes["weight"] = float(rng.random())
    graph.add_edge(5, 5)
    graph = nx.relabel_nodes(graph, {0: "zero", 7: ("a", 7)})
    graph.add_node("alone")
    return graph


def directed() -> Any:
    graph = nx.gnm_random_graph(50, 160, seed=4, directed=True)
    for number, (_, _, attributes) in enumerate(graph.edges(data=True)):
        attributes["weight"] = 1 + number % 3
    graph.add_edge(9, 9)
    graph.add_node(1000)
    return graph


def parallel() -> Any:
    graph = nx.MultiDiGraph()
    rng = np.random.default_rng(2)
    for a, b in rng.integers(0, 20, (90, 2)).tolist():
        graph.add_edge(a, b, weight=float(rng.random()))
    graph.add_edge(0, 1, key="named", weight=2.0)
    return graph


GRAPHS: dict[str, Make] = {"undirected": undirected, "directed": directed, "parallel": parallel}


def plain() -> Any:
    return nx.karate_club_graph()


def assert_close(ours: Any, theirs: Any) -> None:
    assert list(ours) == list(theirs)
    assert all(type(value) is float for value in ours.values())
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def both(name: str, graph: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """(backend, NetworkX)."""
    ours = getattr(backend, name)(backend.convert_from_nx(graph), *args, **options)
    theirs = getattr(nx, name, None) or getattr(nx.bipartite, name)
    return ours, theirs(graph, *args, **options)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("weight", ["weight", None])
def test_pagerank_equals_networkx(kind: str, weight: str | None) -> None:
    graph = GRAPHS[kind]()
    few = {node: i + 1 for i, node in enumerate(list(graph)[:5])}
    assert_close(*both("pagerank", graph, weight=weight))
    assert_close(*both("pagerank", graph, 0.6, personalization=few, weight=weight, tol=1e-12))
    assert_close(*both("pagerank", graph, nstart=few, dangling=few, weight=weight))


def steps_suffice(
    name: str, limit: str, end: int, error: type[Exception], **options: Any
) -> list[bool]:
    """Whether 1, 2, ... steps suffice, equally for both."""
    graph, found = directed(), list[bool]()
    ours = backend.convert_from_nx(graph)
    for steps in range(1, end):
        arguments = options | {limit: steps}
        try:
            getattr(nx, name)(graph, **arguments)
        except error:
            found.append(False)
            with pytest.raises(error):
                getattr(backend, name)(ours, **arguments)
        else:
            found.append(True)
            getattr(backend, name)(ours, **arguments)
    return found


def test_pagerank_converges_in_same_iteration_as_networkx() -> None:
    found = steps_suffice("pagerank", "max_iter", 60, nx.PowerIterationFailedConvergence, tol=1e-9)
    assert 5 < found.count(False) < 50
    assert_close(*both("pagerank", directed(), max_iter=1 + found.index(True), tol=1e-9))


@pytest.mark.parametrize("kind", GRAPHS)
def test_hits_equal_networkx(kind: str) -> None:
    ours, theirs = both("hits", GRAPHS[kind](), tol=1e-12)
    for actual, expected in zip(ours, theirs, strict=True):
        assert actual == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", GRAPHS)
def test_simrank_similarity_equals_networkx(kind: str) -> None:
    graph = GRAPHS[kind]()
    ours, theirs = both("simrank_similarity", graph)
    for node in graph:
        assert_close(ours[node], theirs[node])
    a, b = list(graph)[1:3]
    assert_close(*both("simrank_similarity", graph, a))
    one, other = both("simrank_similarity", graph, a, b)
    assert type(one) is float
    assert one == pytest.approx(other, rel=1e-9)


def test_simrank_similarity_raises_as_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = backend.convert_from_nx(directed())
    found = steps_suffice("simrank_similarity", "max_iterations", 40, nx.ExceededMaxIterations)
    assert {*found} == {True, False}
    with pytest.raises(nx.NodeNotFound, match="Source node no not in G"):
        backend.simrank_similarity(ours, "no")
    monkeypatch.setattr(algorithms, "available", lambda: 1000)
    with pytest.raises(ResourceError, match="all pairs of 51 nodes"):
        backend.simrank_similarity(ours, 1)


PAIRED = [
    "jaccard_coefficient",
    "adamic_adar_index",
    "resource_allocation_index",
    "preferential_attachment",
    "common_neighbor_centrality",
]


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize("make", [undirected, plain, lambda: nx.star_graph(60)])
def test_link_prediction_equals_networkx(name: str, make: Make) -> None:
    graph = make()
    for pairs in (None, list(combinations(graph, 2))):
        ours, theirs = map(list, both(name, graph, pairs))
        assert [row[:2] for row in ours] == [row[:2] for row in theirs]
        values = [[row[2] for row in rows] for rows in (ours, theirs)]
        assert values[0] == pytest.approx(values[1], rel=1e-12)
        assert all(type(value) in (int, float) for value in values[0])


def test_link_prediction_checks_nodes_early_and_values_lazily() -> None:
    ours = backend.convert_from_nx(nx.path_graph(3))
    for name in PAIRED:
        with pytest.raises(nx.NodeNotFound, match="Node 9 not in G"):
            getattr(backend, name)(ours, [(0, 9)])
    for alpha in (0.8, 1):
        found = backend.common_neighbor_centrality(ours, [(0, 2), (1, 1)], alpha=alpha)
        assert next(found)[:2] == (0, 2)
        with pytest.raises(nx.NetworkXAlgorithmError, match="Self loops"):
            next(found)
    for function in (backend.adamic_adar_index, nx.adamic_adar_index):
        graph: Any = ours if function is backend.adamic_adar_index else nx.path_graph(3)
        with pytest.raises(ZeroDivisionError):
            list(function(graph, [(1, 1)]))


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_eigenvector_and_katz_centrality_equal_networkx(kind: str) -> None:
    graph = GRAPHS[kind]()
    start = {node: 1 + i % 4 for i, node in enumerate(reversed(list(graph)))}
    for weight in (None, "weight"):
        assert_close(*both("eigenvector_centrality", graph, 1000, weight=weight))
        assert_close(*both("eigenvector_centrality", graph, 1000, nstart=start, weight=weight))
        assert_close(*both("katz_centrality", graph, 0.05, weight=weight))
        assert_close(*both("katz_centrality", graph, 0.05, start, nstart=start, normalized=False))
    ours = backend.convert_from_nx(graph)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        backend.eigenvector_centrality(ours, 2)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        backend.katz_centrality(ours, 10.0)
    with pytest.raises(nx.NetworkXError, match="for every node"):
        backend.katz_centrality(ours, beta={1: 2})
    with pytest.raises(nx.NetworkXError, match="all zero"):
        backend.eigenvector_centrality(ours, nstart=dict.fromkeys(graph, 0))


def test_birank_equals_networkx() -> None:
    graph = nx.bipartite.gnmk_random_graph(20, 30, 120, seed=5)
    for number, (_, _, attributes) in enumerate(graph.edges(data=True)):
        attributes["weight"] = 1 + number % 4
    top = range(20)
    for options in ({}, {"top_personalization": {1: 2}}, {"alpha": 0.5, "beta": 0.7}):
        ours, theirs = both("birank", graph, top, weight="weight", **options)
        assert ours == pytest.approx(theirs, rel=1e-9)
    ours = backend.convert_from_nx(graph)
    with pytest.raises(nx.NetworkXAlgorithmError, match="bipartite"):
        backend.birank(ours, [])
    with pytest.raises(nx.NetworkXAlgorithmError, match="alpha"):
        backend.birank(ours, top, alpha=2)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dok", "lil"])
def test_to_scipy_sparse_array_equals_networkx(kind: str, format: str) -> None:
    graph = GRAPHS[kind]()
    nodes = list(graph)[::-2]
    for options in (
        {"weight": None},
        {"nodelist": nodes},
        {"dtype": np.float32},
        {"nodelist": nodes[:3], "weight": "weight"},
    ):
        ours, theirs = both("to_scipy_sparse_array", graph, format=format, **options)
        assert (type(ours), ours.dtype, ours.shape) == (type(theirs), theirs.dtype, theirs.shape)
        assert np.array_equal(ours.toarray(), theirs.toarray())


def test_to_scipy_sparse_array_dtype_and_errors() -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=2)
    graph.add_edge(1, 2, weight=0.5)
    graph.add_edge(2, 2, weight=True)
    for nodes in (None, [0, 1], [2]):
        ours, theirs = both("to_scipy_sparse_array", graph, nodes)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours.toarray(), theirs.toarray())
    converted = backend.convert_from_nx(graph)
    for nodes, message in (([], "no nodes"), ([0, 0], "duplicates"), ([9], "Node 9")):
        for function, argument in (
            (backend.to_scipy_sparse_array, converted),
            (nx.to_scipy_sparse_array, graph),
        ):
            with pytest.raises(nx.NetworkXError, match=message):
                function(argument, nodelist=nodes)
    with pytest.raises(nx.NetworkXError, match="Unknown sparse matrix format"):
        backend.to_scipy_sparse_array(converted, format="wrong")


@pytest.mark.parametrize("kind", GRAPHS)
def test_convert_to_nx_restores_graph(kind: str) -> None:
    graph = GRAPHS[kind]()
    graph.graph["title"] = "web"
    graph.nodes[next(iter(graph))]["color"] = "red"
    for _, _, attributes in list(graph.edges(data=True))[:3]:
        attributes["tfidf"] = ["any"]
    ours = backend.convert_from_nx(
        graph, preserve_edge_attrs=True, preserve_node_attrs=True, preserve_graph_attrs=True
    )
    back = backend.convert_to_nx(ours)
    assert type(back) is type(graph)
    assert back.graph == graph.graph
    assert dict(back._node) == dict(graph._node)
    assert dict(back._adj) == dict(graph._adj)
    assert list(back) == list(graph)
    assert [list(back._adj[node]) for node in back] == [list(graph._adj[node]) for node in graph]
    if graph.is_directed():
        assert dict(back._pred) == dict(graph._pred)
    assert ours.number_of_edges() == graph.number_of_edges()
    assert (len(ours), list(ours)) == (len(graph), list(graph))
    for node in graph:
        assert list(ours.neighbors(node)) == list(graph.neighbors(node))


def test_convert_from_nx_accepts_view() -> None:
    graph = undirected()
    part = graph.subgraph(list(graph)[5:20])
    back = backend.convert_to_nx(backend.convert_from_nx(part, preserve_edge_attrs=True))
    assert dict(back._adj) == {node: dict(row) for node, row in part._adj.items()}


def test_backend_graph_answers_basic_queries() -> None:
    ours = backend.convert_from_nx(plain())
    assert isinstance(ours, BackendGraph)
    assert 0 in ours
    assert [] not in ours
    assert ours.has_edge(0, 1)
    assert not ours.has_edge(0, 33)
    assert repr(ours) == "<cocite Graph: 34 nodes, 78 edges>"
    with pytest.raises(TypeError, match="it must be a graph"):
        backend.convert_from_nx(3, name="pagerank", graph_name="G")


# -- readers ---------------------------------------------------------------------------


KINDS = [None, nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def assert_same(ours: Any, theirs: Any) -> None:
    assert isinstance(ours, BackendGraph)
    assert ours.number_of_edges() == theirs.number_of_edges()
    back = backend.convert_to_nx(ours)
    assert type(back) is type(theirs)
    assert list(back) == list(theirs)
    assert [type(node) for node in back] == [type(node) for node in theirs]
    assert dict(back._adj) == dict(theirs._adj)
    assert [list(back._adj[node]) for node in back] == [list(theirs._adj[node]) for node in back]
    if back.is_directed():
        assert dict(back._pred) == dict(theirs._pred)
        rows = [[list(graph._pred[node]) for node in back] for graph in (back, theirs)]
        assert rows[0] == rows[1]


TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("# links\n3 1\n1 2  # twice\n\n2 1\nalone\n1 2\n3 3\n2 3\n", {}),
    "numbers": ("3 1\n1 2\n2 1\n1 2\n3 3\n", {"nodetype": int}),
    "whole numbers": ("# a\n# b\n30 1\r\n\n 1\t2\n007 1\n30 30\n2 1", {"nodetype": int}),
    "comments among": ("30 1\n# 1 2\n2 1 # a\n", {"nodetype": int}),
    "single ones": ("30 1\n5\n2 1\n", {"nodetype": int}),
    "long numbers": (f"30 1\n{10**20} 1\n", {"nodetype": int}),
    "signs": ("-30 1\n+1 1_000\n", {"nodetype": int}),
    "more cells": ("1 2 3\n4\n", {"nodetype": int, "data": (("n", int),)}),
    "only comments": ("# 1 2", {"nodetype": int}),
    "no comments": ("1 2\n", {"nodetype": int, "comments": None}),
    "all is comment": ("1 2\n", {"nodetype": int, "comments": ""}),
    "a digit for comments": ("1 20\n3 4\n", {"nodetype": int, "comments": "0"}),
    "dictionaries": ("a b {'w': 1}\nb c\na b {'x': 2.5}\nb a {'w': 3}\nc c {'w': 'text'}\n", {}),
    "columns": ("a b 1 0.5\nb a 2 1.5\nc d 3 2\n", {"data": (("n", int), ("w", float))}),
    "no data": ("a b 1\nb c 2\n", {"data": False}),
    "commas": ("a,b,{'w':1,'x':2}\nb,c\n", {"delimiter": ","}),
    "nothing": ("", {}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", TEXTS)
def test_read_edgelist_equals_networkx(case: str, kind: Any) -> None:
    text, options = TEXTS[case]
    files = (io.BytesIO(text.encode()) for _ in range(2))
    ours = backend.read_edgelist(next(files), create_using=kind, **options)
    assert_same(ours, nx.read_edgelist(next(files), create_using=kind, **options))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a b\n", {"nodetype": int}),
        ("a b {'w'\n", {}),
        ("a b x\n", {"data": (("w", float),)}),
        ("a b 1 2\n", {"data": (("w", float),)}),
    ],
)
def test_read_edgelist_raises_as_networkx(text: str, options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, IndexError)) as theirs:
        nx.read_edgelist(io.BytesIO(text.encode()), **options)
    with pytest.raises(theirs.type) as ours:
        backend.read_edgelist(io.BytesIO(text.encode()), **options)
    assert str(ours.value) == str(theirs.value)


def matrices() -> list[Any]:
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 4, (12, 12)) * (rng.random((12, 12)) < 0.3)
    formats = [scipy.sparse.csr_array(cells).asformat(f) for f in ("csr", "csc", "dok", "coo")]
    return [*formats, scipy.sparse.csr_array(cells * 0.5), scipy.sparse.csr_array((3, 3))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(6))
def test_from_scipy_sparse_array_equals_networkx(number: int, kind: Any) -> None:
    A = matrices()[number]
    for options in ({}, {"parallel_edges": True}, {"edge_attribute": "w"}):
        ours = backend.from_scipy_sparse_array(A, create_using=kind, **options)
        assert_same(ours, nx.from_scipy_sparse_array(A, create_using=kind, **options))


def test_from_scipy_sparse_array_refuses_non_square() -> None:
    with pytest.raises(nx.NetworkXError, match="not square"):
        backend.from_scipy_sparse_array(scipy.sparse.csr_array((2, 3)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", [None, True, "w", ["w", "t"]])
def test_from_pandas_edgelist_equals_networkx(attributes: Any, kind: Any) -> None:
    frame = pandas.DataFrame(
        {"source": [1, 2, 1, 3, 2], "target": [2, 1, 2, 3, 5], "w": [1, 2, 3, 4, 5]}
    ).assign(t=list("abcde"))
    ours = backend.from_pandas_edgelist(frame, edge_attr=attributes, create_using=kind)
    assert_same(ours, nx.from_pandas_edgelist(frame, edge_attr=attributes, create_using=kind))


def test_from_pandas_edgelist_raises_as_networkx() -> None:
    frame = pandas.DataFrame({"source": [1], "target": [2]})
    for attributes in ("no", ["no"], True):
        with pytest.raises(nx.NetworkXError, match="Invalid edge_attr"):
            backend.from_pandas_edgelist(frame, edge_attr=attributes)
    with pytest.raises(ValueError, match="None cannot be a node"):
        backend.from_pandas_edgelist(pandas.DataFrame({"source": [None], "target": ["a"]}))


def test_pagerank_accepts_graphs_from_readers() -> None:
    text = b"a b 1\nb c 2\nc a 3\na c 1\n"
    options: dict[str, Any] = {"data": (("weight", float),), "create_using": nx.DiGraph}
    ours = backend.read_edgelist(io.BytesIO(text), **options)
    theirs = nx.read_edgelist(io.BytesIO(text), **options)
    assert backend.pagerank(ours) == pytest.approx(nx.pagerank(theirs))
    ours = backend.from_scipy_sparse_array(nx.to_scipy_sparse_array(theirs))
    assert backend.pagerank(ours) == pytest.approx(nx.pagerank(nx.Graph(nx.to_numpy_array(theirs))))
