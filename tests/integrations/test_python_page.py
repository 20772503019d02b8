"""docs/python.md is true: its names and extras exist, and its examples run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import networkx

import cocite
from cocite import Graph
from cocite.search.hits import Hits

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
PROSE = " ".join(PAGE.split())


def test_python_page_names_all_conversions() -> None:
    conversions = {name for name in vars(Graph.__mro__[1]) if name.startswith("to_")}
    assert len(conversions) == 6
    assert set(re.findall(r"\b(to_\w+)", PAGE)) == conversions


def test_python_page_names_table_columns() -> None:
    columns = re.findall(r"with the columns (rank|node), ([\w, ]+?)[.`:;(]", PROSE)
    graph = networkx.karate_club_graph()
    index = cocite.build(cocite.ingest(graph))
    documented = [[first, *rest.split(", ")] for first, rest in columns]
    assert documented == [
        list(index.related(0)._columns()),
        list(index.related_many([0])._columns()),
    ]


def test_python_page_examples_run() -> None:
    animals = ROOT / "examples" / "animals.tsv"
    first, query, sklearn = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, Any] = {"links": animals}
    exec(first, names)
    lines = query.splitlines()
    exec("\n".join([*lines[:-1], f"found = {lines[-1]}"]), names)
    assert isinstance(names["found"], Hits)
    assert names["found"] == cocite.related(animals, "Zebra", 10)
    graph = networkx.connected_caveman_graph(8, 6)
    names = {"adjacency": networkx.to_scipy_sparse_array(graph)}
    lines = sklearn.splitlines()
    exec("\n".join([*lines[:-1], f"found = {lines[-1]}"]), names)
    assert len(set(names["found"].tolist())) == 8


def test_python_page_extras_exist() -> None:
    section = PROSE[PROSE.index("The extras are ") :]
    groups = set(re.findall(r"`(\w+)`", section))
    groups |= set(",".join(re.findall(r"\.\[([\w,]+)\]", section)).split(","))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert len(groups) > 6
    assert groups <= set(project["project"]["optional-dependencies"])
