"""Personalizations: weights by name, in files and on the command line."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import InputError, MalformedRow, UnknownNode, UsageError
from cocite.ranking import WeightsFile, pagerank, toward_of
from tests.conftest import MakeGraph


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> cocite.Graph:
    rng = np.random.default_rng(5)
    edges = [(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (900, 2)).tolist() if b < 200]
    return module_graph([*edges, ("n1", "a=2"), ("a=2", "a"), ("a", "n1")])


def test_weights_file_equals_mapping(graph: cocite.Graph, tmp_path: Path) -> None:
    weights = {"n1": 3.0, "n7": 0.5, "a=2": 0.0}
    truth = pagerank(graph, personalization=weights).values.tobytes()
    rows = list(weights.items())
    tsv, csv, parquet = (tmp_path / f"w.{ending}" for ending in ("tsv", "csv", "parquet"))
    tsv.write_text("# comment\n" + "".join(f"{name}\t{weight}\n" for name, weight in rows))
    csv.write_text("node,weight\n" + "".join(f'"{name}",{weight}\n' for name, weight in rows))
    duckdb.execute(
        "COPY (FROM (VALUES " + ", ".join(map(str, rows)) + f")) TO '{parquet}' (FORMAT parquet)"
    )
    for file in (tsv, csv, parquet):
        assert dict(WeightsFile(file).items()) == weights
        assert pagerank(graph, personalization=WeightsFile(file)).values.tobytes() == truth


def test_weights_file_reads_rank_output(graph: cocite.Graph, tmp_path: Path) -> None:
    found = pagerank(graph)
    for ending in ("csv", "tsv", "parquet"):
        out = tmp_path / f"r.{ending}"
        assert main(["rank", str(graph.path), "-o", str(out)]) == 0
        again = pagerank(graph, personalization=WeightsFile(out), blocks=3)
        by_id = pagerank(graph, personalization=found.values)
        assert np.abs(again.values - by_id.values).sum() < 1e-12


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "n1\t2\nn7\tmuch\n",
            InputError,
            "the weight of 'n7' is 'much'; it must be a finite number, 0",
        ),
        ("n1\t2\nn7\t-1\n", InputError, "the weight of 'n7' is '-1'"),
        ("n1\t2\nn7\tinf\n", InputError, "the weight of 'n7' is 'inf'"),
        ("n1\t2\nn7\n", MalformedRow, "only 1 of 2 columns"),
        ("n1\t2\nnobody\t1\n", UnknownNode, "no node is named 'nobody'"),
        ("n1\t0\n", UsageError, "with a positive, finite sum"),
        ("", UsageError, "with a positive, finite sum"),
    ],
)
def test_weights_file_reports_invalid_weights(
    graph: cocite.Graph, tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    file = tmp_path / "w.tsv"
    file.write_text(text)
    with pytest.raises(error, match=message):
        pagerank(graph, personalization=WeightsFile(file))


def test_toward_of_parses_name_with_weight(graph: cocite.Graph, tmp_path: Path) -> None:
    """``a=2`` is a node, so it is not ``a`` with weight 2."""
    file = tmp_path / "w.tsv"
    file.write_text("n1\t1.5\n")
    toward = toward_of(graph, ["n1=0.5", "a=2", "a=2=3", "n7"], [file])
    assert toward is not None
    assert list(toward.items()) == [("n1", 0.5), ("a=2", 1), ("a=2", 3), ("n7", 1), ("n1", 1.5)]
    assert toward_of(graph, []) is None
    for text in ("nobody", "nobody=2", "n1=much", "n1=-1"):
        with pytest.raises(UnknownNode):
            pagerank(graph, personalization=toward_of(graph, [text]))
