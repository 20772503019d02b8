"""The public names: complete, sorted, and lazily imported."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import StoreError, UsageError
from tests.conftest import MakeGraph, Shell


def test_all_public_names_exist_and_are_sorted() -> None:
    assert cocite.__all__ == sorted(cocite.__all__)
    assert dir(cocite) == cocite.__all__
    for name in cocite.__all__:
        assert getattr(cocite, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simrank'"):
        cocite.simrank  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert cocite.__version__ == version("cocite")


@pytest.mark.process
@pytest.mark.chosen
def test_importing_it_imports_nothing_heavy() -> None:
    code = "import sys, cocite; print({'numpy', 'numba', 'duckdb', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_graph_and_its_names_are_asked_by_id(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("a", "c"), ("c", "b"), ("d", "a")])
    ids = [graph.names.id(name) for name in "abcd"]
    assert [graph.names[node] for node in ids] == list("abcd")
    assert graph.names[-1] == graph.names[3]
    assert graph.names[1:3] == [graph.names[1], graph.names[2]]
    assert repr(graph.names) == "<4 names: 'a', 'b', 'c', ...>"
    a, b, c, _ = ids
    assert graph.in_neighbors(b).tolist() == sorted([a, c])
    assert graph.out_neighbors(a).tolist() == sorted([b, c])
    assert graph.out_neighbors(b).tolist() == []
    wrong: tuple[Any, ...] = (4, -5, "a", 1.0, None, True)
    for bad in wrong:
        with pytest.raises(UsageError, match="not an id of a node"):
            graph.names[bad]
        with pytest.raises(UsageError, match="not an id of a node"):
            graph.out_neighbors(bad)
        with pytest.raises(UsageError, match="not an id of a node"):
            graph.in_neighbors(bad)


def test_ranks_stop_where_they_are_told(make_graph: MakeGraph) -> None:
    graph = make_graph([(v, v * v % 17) for v in range(17)] + [(v, v + 1) for v in range(16)])
    near, far = (cocite.pagerank(graph, tolerance=at) for at in (1e-12, 1e-2))
    assert far.convergence.sweeps < near.convergence.sweeps
    assert near.convergence.residual <= 1e-12
    few = cocite.pagerank(graph, tolerance=1e-12, max_sweeps=2)
    assert (few.convergence.sweeps, few.convergence.converged) == (2, False)
    stops: tuple[dict[str, Any], ...] = (
        {"tolerance": 0},
        {"tolerance": "low"},
        {"max_sweeps": 0},
        {"max_sweeps": 2.5},
    )
    for bad in stops:
        with pytest.raises(UsageError):
            cocite.pagerank(graph, **bad)
    with pytest.raises(UsageError, match="there is no option stop"):
        cocite.pagerank(graph, stop=1e-3)


def test_a_tab_completes_public_names_only(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("c", "b")])
    index = cocite.build(graph)
    ours = index, graph, index.related("a"), cocite.pagerank(graph), cocite.exact_simrank(graph)
    for value in ours:
        assert not [name for name in dir(value) if name.startswith("_")]
    assert {"related", "similarity", "why", "measure"} <= set(dir(index))
    assert not {"means", "for_why", "scorer"} & set(dir(index))
    assert {"to_pandas", "certain_ranks", "count"} <= set(dir(index.related("a")))
    assert set(dir(cocite)) == set(cocite.__all__)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (cocite.Graph, r"cocite\.Graph\.open\(path\).*open_graph"),
        (cocite.Index, r"cocite\.open\(path\)"),
    ],
)
def test_a_path_is_no_store(kind: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"'web.graph'.*{says}"):
        kind("web.graph")


def test_info_and_verify_are_functions_too(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("a", "c"), ("c", "b")])
    index = tmp_path / "i"
    cocite.build(graph, index, measure="psimrank", samples=3)
    assert cocite.info(graph.path).to_json()["nodes"] == 3
    assert cocite.info(index).to_json()["measure"] == "psimrank"
    assert not cocite.verify(index).faults
    file = next(index.glob("*.members*"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert cocite.verify(index).faults
    with pytest.raises(StoreError):
        cocite.info(tmp_path / "none")


def test_command_evaluation(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = cocite.generate_web("g", nodes=300, links=2000, seed=1, labels="labels.tsv")
    index = cocite.build(graph, "i", samples=10, measure="psimrank")
    command = "evaluate i --labels labels.tsv --queries 30 --cutoffs 5 --set decay=0.3 --seed 2"
    printed = json.loads(shell([*command.split(), "--format", "json"]).out)
    settings: dict[str, Any] = {"queries": 30, "cutoffs": [5], "settings": {"decay": 0.3}}
    for given in ("i", index, Path("i")):
        found = cocite.evaluate(given, labels="labels.tsv", seed=2, **settings)
        assert found.to_json() == printed
    titles, rows = found.rows()
    assert len(list(rows)) == len(printed["figures"])
    assert {"figure", "estimate", "low", "high"} <= set(titles)
    wrong: tuple[dict[str, Any], ...] = (
        {"queries": 0},
        {"queries": "all"},
        {"depth": 0},
        {"gamma_least": -1},
        {"cutoffs": [0]},
        {"cutoffs": []},
        {"label_columns": [1]},
        {"settings": {"form": "x"}},
    )
    for bad in wrong:
        with pytest.raises(UsageError):
            cocite.evaluate("i", labels="labels.tsv", **bad)
    with pytest.raises(UsageError, match="name indexes of one graph, or a graph"):
        cocite.evaluate()
