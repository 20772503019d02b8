"""Readers of the backend beside NetworkX's: the same graph, in the same order."""

from __future__ import annotations

import io
from typing import Any

import networkx as nx
import numpy as np
import pandas
import pytest
import scipy.sparse

from cocite.integrations.networkx import backend
from cocite.integrations.networkx.graph import BackendGraph
from tests.integrations.networkx.oldest import pytestmark

__all__ = ["pytestmark"]

KINDS = [None, nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def same(ours: Any, theirs: Any) -> None:
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
def test_read_edgelist(case: str, kind: Any) -> None:
    text, options = TEXTS[case]
    files = (io.BytesIO(text.encode()) for _ in range(2))
    ours = backend.read_edgelist(next(files), create_using=kind, **options)
    same(ours, nx.read_edgelist(next(files), create_using=kind, **options))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a b\n", {"nodetype": int}),
        ("a b {'w'\n", {}),
        ("a b x\n", {"data": (("w", float),)}),
        ("a b 1 2\n", {"data": (("w", float),)}),
    ],
)
def test_read_edgelist_refuses_as_networkx_does(text: str, options: dict[str, Any]) -> None:
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
def test_from_scipy_sparse_array(number: int, kind: Any) -> None:
    A = matrices()[number]
    for options in ({}, {"parallel_edges": True}, {"edge_attribute": "w"}):
        ours = backend.from_scipy_sparse_array(A, create_using=kind, **options)
        same(ours, nx.from_scipy_sparse_array(A, create_using=kind, **options))


def test_a_matrix_that_is_not_square() -> None:
    with pytest.raises(nx.NetworkXError, match="not square"):
        backend.from_scipy_sparse_array(scipy.sparse.csr_array((2, 3)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", [None, True, "w", ["w", "t"]])
def test_from_pandas_edgelist(attributes: Any, kind: Any) -> None:
    frame = pandas.DataFrame(
        {"source": [1, 2, 1, 3, 2], "target": [2, 1, 2, 3, 5], "w": [1, 2, 3, 4, 5]}
    ).assign(t=list("abcde"))
    ours = backend.from_pandas_edgelist(frame, edge_attr=attributes, create_using=kind)
    same(ours, nx.from_pandas_edgelist(frame, edge_attr=attributes, create_using=kind))


def test_from_pandas_refuses_as_networkx_does() -> None:
    frame = pandas.DataFrame({"source": [1], "target": [2]})
    for attributes in ("no", ["no"], True):
        with pytest.raises(nx.NetworkXError, match="Invalid edge_attr"):
            backend.from_pandas_edgelist(frame, edge_attr=attributes)
    with pytest.raises(ValueError, match="None cannot be a node"):
        backend.from_pandas_edgelist(pandas.DataFrame({"source": [None], "target": ["a"]}))


def test_what_was_read_is_asked_at_once() -> None:
    text = b"a b 1\nb c 2\nc a 3\na c 1\n"
    options: dict[str, Any] = {"data": (("weight", float),), "create_using": nx.DiGraph}
    ours = backend.read_edgelist(io.BytesIO(text), **options)
    theirs = nx.read_edgelist(io.BytesIO(text), **options)
    assert backend.pagerank(ours) == pytest.approx(nx.pagerank(theirs))
    ours = backend.from_scipy_sparse_array(nx.to_scipy_sparse_array(theirs))
    assert backend.pagerank(ours) == pytest.approx(nx.pagerank(nx.Graph(nx.to_numpy_array(theirs))))
