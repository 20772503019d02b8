"""The public names are complete, sorted and lazily imported."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import StoreError, UsageError
from tests.conftest import MakeGraph, Shell


def test_public_names_exist_and_are_sorted() -> None:
    assert cocite.__all__ == sorted(cocite.__all__)
    assert dir(cocite) == cocite.__all__
    for name in cocite.__all__:
        assert getattr(cocite, name) is not None


def test_unknown_attribute_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simrank'"):
        cocite.simrank  # noqa: B018


def test_version_equals_package_metadata() -> None:
    from importlib.metadata import version

    assert cocite.__version__ == version("cocite")


@pytest.mark.process
@pytest.mark.chosen
def test_import_loads_no_heavy_library() -> None:
    code = "import sys, cocite; print({'numpy', 'numba', 'duckdb', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_dir_lists_public_names_only(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("c", "b")])
    index = cocite.build(graph)
    objects = index, graph, index.related("a"), cocite.pagerank(graph), cocite.exact_simrank(graph)
    for each in objects:
        assert not [name for name in dir(each) if name.startswith("_")]
    assert {"related", "similarity", "why", "measure"} <= set(dir(index))
    assert not {"means", "for_why", "scorer"} & set(dir(index))
    assert {"to_pandas", "certain_ranks", "count"} <= set(dir(index.related("a")))
    assert set(dir(cocite)) == set(cocite.__all__)


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (cocite.Graph, r"cocite\.Graph\.open\(path\).*open_graph"),
        (cocite.Index, r"cocite\.open\(path\)"),
    ],
)
def test_graph_and_index_refuse_path(cls: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"'web.graph'.*{message}"):
        cls("web.graph")


def test_info_and_verify_take_path(make_graph: MakeGraph, tmp_path: Path) -> None:
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


def test_evaluate_equals_command(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = cocite.generate_web("g", nodes=300, links=2000, seed=1, labels="labels.tsv")
    index = cocite.build(graph, "i", samples=10, measure="psimrank")
    command = "evaluate i --labels labels.tsv --queries 30 --cutoffs 5 --set decay=0.3 --seed 2"
    printed = json.loads(shell([*command.split(), "--format", "json"]).out)
    settings: dict[str, Any] = {"queries": 30, "cutoffs": [5], "settings": {"decay": 0.3}}
    for source in ("i", index, Path("i")):
        found = cocite.evaluate(source, labels="labels.tsv", seed=2, **settings)
        assert found.to_json() == printed
    titles, rows = found.rows()
    assert len(list(rows)) == len(printed["figures"])
    assert {"figure", "estimate", "low", "high"} <= set(titles)
    invalid: tuple[dict[str, Any], ...] = (
        {"queries": 0},
        {"queries": "all"},
        {"depth": 0},
        {"gamma_least": -1},
        {"cutoffs": [0]},
        {"cutoffs": []},
        {"label_columns": [1]},
        {"settings": {"form": "x"}},
    )
    for options in invalid:
        with pytest.raises(UsageError):
            cocite.evaluate("i", labels="labels.tsv", **options)
    with pytest.raises(UsageError, match="pass a graph, or indexes of the same graph"):
        cocite.evaluate()
