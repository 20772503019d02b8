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
    with pytest.raises(UsageError, match="pass a graph, or indexes of the same graph"):
        cocite.evaluate()
