"""Bipartite tables as graphs: the nodes of each side, their names, and their links."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.errors import Damaged, InputError, UsageError
from cocite.io.readers.dialect import ends_of
from tests.io.plain import content_of, links
from tests.storage.enemy import change_facts

PLAIN: dict[str, Any] = {"delimiter": "tab", "header": "no"}
KINDS = st.sampled_from(["{}", "a{}", "user:{}", "http://h{0}.org/x", "z{}"])


@settings(max_examples=10, phases=[Phase.generate])
@given(
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=30),
    left=KINDS,
    right=KINDS,
    excluded=st.tuples(
        st.sets(st.integers(0, 9), max_size=3), st.sets(st.integers(0, 9), max_size=3)
    ),
    weighted=st.booleans(),
)
def test_bipartite_sides_have_names_and_id_ranges(
    tmp_path: Path,
    pairs: list[tuple[int, int]],
    left: str,
    right: str,
    excluded: tuple[set[int], set[int]],
    weighted: bool,
) -> None:
    table = [(left.format(a), right.format(b)) for a, b in pairs]
    rows = [f"{a}\t{b}\t{1 + i % 3}\n" for i, (a, b) in enumerate(table)]
    (tmp_path / "t").write_text("".join(rows))
    options = {**PLAIN, "overwrite": True, "bipartite": True}
    options |= {"weight_column": 3} if weighted else {}
    graph = cocite.ingest(tmp_path / "t", tmp_path / "g", **options)
    sides = graph.sides
    assert sides is not None
    collides = any(b.startswith("user:") for _, b in table)
    assert sides.mark == ("user::" if collides else "user:")
    users, items = {sides.mark + a for a, _ in table}, {b for _, b in table}
    assert (sides.left, sides.right) == (len(users), len(items))
    names = list(graph.names)
    assert set(names[: sides.left]) == users
    assert set(names[sides.left :]) == items
    assert set(links(graph)) == {(sides.mark + a, b) for a, b in table}
    assert graph.store.facts["dropped"]["self_loops"] == 0
    assert [graph.names.id(name) for name in names] == list(range(graph.nodes))
    for prefix in ("user:", "a", "h", ""):
        matching = [i for i, name in enumerate(names) if name.startswith(prefix)]
        assert graph.names.with_prefix(prefix).tolist() == matching

    removed = [sides.mark + left.format(i) for i in excluded[0]] + [
        right.format(i) for i in excluded[1]
    ]
    if {*users, *items} - {*removed}:
        remaining = cocite.ingest(tmp_path / "t", tmp_path / "a", exclude_nodes=removed, **options)
        again = cocite.ingest(graph.path, tmp_path / "b", exclude_nodes=removed, overwrite=True)
        assert content_of(remaining) == content_of(again)
        assert remaining.sides == again.sides
        assert remaining.sides is not None
        assert remaining.sides.left == len(users - {*removed})
        assert set(remaining.names) == (users | items) - {*removed}


def test_bipartite_graph_is_equal_for_all_sources(tmp_path: Path) -> None:
    table = [(1, 1), (1, 2), (2, 1), (10, 7)]
    frame = pd.DataFrame(table, columns=["user", "item"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    sources = [tmp_path / "t.csv", tmp_path / "t.parquet", frame, np.array(table)]
    graphs = [cocite.ingest(source, bipartite=True) for source in sources]
    sql = f"select 0, * from '{tmp_path / 't.parquet'}'"
    graphs.append(cocite.ingest(sql=sql, columns="user,item", bipartite=True))
    assert {graph.digest for graph in graphs} == {graphs[0].digest}
    assert list(graphs[0].names) == ["user:1", "user:10", "user:2", "1", "2", "7"]
    assert list(graphs[2].names) == [
        "user:1",
        "user:10",
        "user:2",
        1,
        2,
        7,
    ]  # items keep their type
    assert graphs[2].names.id(7) == 5


def test_sides_option_names_both_sides() -> None:
    graph = cocite.ingest([("ann", "dune")], sides=("reader", "book"), bipartite=True)
    assert list(graph.names) == ["reader:ann", "dune"]
    titles = {"titles": ["reader", "book"], "mark": "reader:"}
    assert graph.store.facts["sides"] == titles | {"left": 1, "right": 1}
    for sides in ("user", "a,b,c", "x,x", "user:,item", "a b,c"):
        with pytest.raises(UsageError, match="two different words"):
            cocite.ingest([("ann", "dune")], sides=sides, bipartite=True)
    with pytest.raises(UsageError, match="add --bipartite"):
        cocite.ingest([("ann", "dune")], sides="user,item")


def test_bipartite_nodes_and_titles_name_both_sides(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("ann\t1\n")
    (tmp_path / "nodes").write_text("2\nuser:bob\n")
    (tmp_path / "titles.tsv").write_text("name\ttitle\n1\tDune\nuser:ann\tAnn\n")
    options = {"nodes": tmp_path / "nodes", "titles": tmp_path / "titles.tsv"}
    graph = cocite.ingest(tmp_path / "t.tsv", tmp_path / "g", bipartite=True, **options, **PLAIN)
    assert list(graph.names) == ["user:ann", "user:bob", "1", "2"]
    assert graph.titles is not None
    assert graph.titles.of(np.arange(4)) == ["Ann", "", "Dune", ""]


def test_ends_of_finds_user_and_item_columns() -> None:
    assert ends_of(["rating", "item", "user"]) is not None
    assert ends_of(["item_id", "user_id"]) == ends_of(["target", "source"])


def test_bipartite_refuses_undirected_links_or_declared_nodes(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    with pytest.raises(UsageError, match="cannot be assigned to sides"):
        cocite.ingest(networkx.path_graph(3), bipartite=True)
    networkx.write_graphml(networkx.path_graph(3, networkx.DiGraph), tmp_path / "g.graphml")
    with pytest.raises(InputError, match="without their sides"):
        cocite.ingest(tmp_path / "g.graphml", tmp_path / "g", bipartite=True)
    assert not (tmp_path / "g").exists()


@pytest.fixture(scope="module")
def sided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sided")
    path: Path = cocite.ingest([("ann", "dune")], folder / "g", bipartite=True).path
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("titles", ["user"]),
        ("titles", ["user", 3]),
        ("titles", "user,item"),
        ("mark", "user"),
        ("mark", "../x:"),
        ("left", 9),
        ("left", -1),
        ("right", 7),
        ("more", 1),
    ],
)
def test_graph_reports_damaged_sides(sided: Path, name: str, value: object) -> None:
    sides = {"titles": ["user", "item"], "mark": "user:", "left": 1, "right": 1}
    change_facts(sided, "sides", to=sides)
    assert Graph.open(sided).sides is not None
    change_facts(sided, "sides", to=sides | {name: value})
    with pytest.raises(Damaged, match="sides"):
        Graph.open(sided)
