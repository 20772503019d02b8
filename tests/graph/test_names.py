"""Names: by id, by name, by prefix and by similarity."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.cli.commands.completion import _names
from cocite.cli.main import main
from cocite.errors import Damaged, UnknownNode, UsageError
from cocite.graph import name_files
from cocite.graph import names as module
from cocite.graph.name_files import IntegerNames, names_of
from cocite.graph.names import Resolver
from cocite.search.resolver import NodesDocument
from cocite.storage import Manifest, Store
from tests.conftest import MakeGraph, Shell
from tests.io.plain import TURNS, numbered

NAME = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=TURNS), min_size=1, max_size=8
).filter(lambda name: name == name.strip(" ") and not name.startswith("#"))
SITE = st.builds("http://{}/{}".format, st.sampled_from("ab"), st.text("xyé", max_size=2))


def names_with_prefix(graph: Graph, prefix: str) -> list[str]:
    return graph.names.names(graph.names.with_prefix(prefix))


@settings(max_examples=12)
@given(st.sets(st.one_of(NAME, SITE), min_size=1, max_size=40), st.data())
def test_text_names_round_trip(
    make_graph: MakeGraph, chosen: set[str], data: st.DataObject
) -> None:
    graph = make_graph([], nodes=[*chosen, "not an integer"])
    names = numbered([*chosen, "not an integer"])
    assert list(graph.names) == names
    assert graph.names.ids(names).tolist() == list(range(len(names)))
    prefix = data.draw(st.one_of(NAME, st.sampled_from(names).map(lambda name: name[:2])))
    assert names_with_prefix(graph, prefix) == [name for name in names if name.startswith(prefix)]
    other = data.draw(NAME)
    assert (other in graph.names) == (other in names)


@settings(max_examples=60)
@given(
    st.sets(st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1)), max_size=40).map(sorted),
    st.booleans(),
    st.one_of(st.integers(0, 40), st.integers(0, 2**66)).map(str),
)
def test_integer_names_round_trip(values: list[int], dense: bool, text: str) -> None:
    if dense:
        values = list(range(len(values)))
    names = IntegerNames(len(values), None if dense else np.array(values, np.uint64))
    texts = list(map(str, values))
    assert list(names) == texts
    assert list(map(names.find, texts)) == list(range(len(values)))
    assert (text in names) == (int(text) in values)
    expected = [name for name in texts if name.startswith(text)]
    assert names.names(names.with_prefix(text)) == expected
    assert names.names(names.with_prefix("")) == texts


@pytest.mark.parametrize("name", ["007", "", "x", "-1", "1.0", "1 1", "٣", str(2**64), "9" * 5000])
def test_integer_names_refuse_noncanonical_text(name: str) -> None:
    for stored in (None, np.arange(8, dtype=np.uint64)):
        names = IntegerNames(8, stored)
        assert names.find(name) is None
        with pytest.raises(UnknownNode):
            names.id(name)
        assert names.find(" 1") is None
        assert names.id(" 1") == 1  # blanks at the ends are ignored
    assert names.find("7") == 7


def test_integer_names_suggest_nearest() -> None:
    names = IntegerNames(4, np.array([1, 50, 60, 2**64 - 1], np.uint64))
    assert names.suggest("52", 2) == ["50", "60"]
    with pytest.raises(UnknownNode) as caught:
        names.id(5)
    assert str(caught.value) == (
        "no node is named '5'; the nearest names are '50', '1', '60', '18446744073709551615'"
    )
    assert names.suggest("x") == []


@pytest.mark.parametrize("count", [1, 15, 16, 17, 32, 65])
def test_text_names_round_trip_at_block_ends(make_graph: MakeGraph, count: int) -> None:
    names = [f"node {i:03}" for i in range(count)]
    graph = make_graph([], nodes=names)
    assert list(graph.names) == names
    assert [graph.names.name(i) for i in range(count)] == names
    backwards = np.arange(count)[::-1]
    assert graph.names.names(backwards) == names[::-1]
    assert names_with_prefix(graph, "node") == names


def test_text_names_keep_any_length(make_graph: MakeGraph) -> None:
    lengths = [1, 127, 128, 129, 16_383, 16_384, 65_535]
    names = ["x" * length for length in lengths] + ["x" * 65_534 + "y", "y" * 65_535]
    graph = make_graph([], nodes=names)
    assert list(graph.names) == names
    assert [graph.names.find(name) for name in names] == list(range(len(names)))
    assert graph.names.find("x" * 65_536) is None


def test_with_prefix_finds_urls_ordered_by_site(make_graph: MakeGraph) -> None:
    urls = ["http://b.a/", "http://a.b/", "http://z.a/x", "https://a.a/"]
    graph = make_graph([], nodes=urls)
    assert list(graph.names) == ["https://a.a/", "http://b.a/", "http://z.a/x", "http://a.b/"]
    assert names_with_prefix(graph, "http:") == ["http://b.a/", "http://z.a/x", "http://a.b/"]
    assert names_with_prefix(graph, "ftp:") == []


def test_suggest_finds_nearest_names(make_graph: MakeGraph) -> None:
    graph = make_graph([], nodes=["Zebra", "Zebra crossing", "Zebu", "Giraffe", "Okapi"])
    assert graph.names.suggest("zebar", 2) == ["Zebra", "Zebu"]
    assert graph.names.suggest("Zebra c") == ["Zebra crossing", "Zebra"]
    assert graph.names.suggest("Zebra c" + "x" * 80, 3) == ["Zebra crossing", "Zebu"]
    with pytest.raises(UnknownNode) as caught:
        graph.names.ids(["Okapi", "Okapa"])
    assert str(caught.value) == "no node is named 'Okapa'; the nearest name is 'Okapi'"
    assert (caught.value.name, caught.value.suggestions) == ("Okapa", ("Okapi",))
    assert graph.names.find("\udcff") is None
    assert graph.names.suggest("\udcff\udcfe") == []


def test_suggest_beyond_scan_limit_looks_nearby(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make_graph([], nodes=[f"n{i:02}" for i in range(30)])
    for patched in (module, name_files):
        monkeypatch.setattr(patched, "SCAN_LIMIT", 10)
    assert graph.names.suggest("n10x", 3) == ["n10", "n11", "n12"]


def test_find_separates_equal_hashes(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_files, "name_hash", len)
    names = ["aa", "b", "bb", "cc", "d"]
    graph = make_graph([], nodes=names)
    assert [graph.names.find(name) for name in names] == [0, 1, 2, 3, 4]
    assert graph.names.find("xx") is None


def test_name_refuses_invalid_id(make_graph: MakeGraph) -> None:
    for nodes in (["a", "b"], [0, 1], [5, 7]):
        names = make_graph([], nodes=nodes).names
        for node in (-1, 2, 2**32):
            with pytest.raises(UsageError, match=r"must be 0 to 1"):
                names.name(node)
        assert names.names(np.array([], np.int64)) == []


def test_names_of_reports_missing_names(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="the manifest has no names"):
        names_of(Store(tmp_path, Manifest("graph", {})))


def test_id_reports_damaged_names(make_graph: MakeGraph) -> None:
    graph = make_graph([], nodes=[f"http://s{i}.org/p{i}" for i in range(24)])
    data = np.fromfile(graph.path / "names.data", np.uint8)
    data[[3, 8]] = data[[8, 3]]  # the first name of a block, which prefixes the others
    data.tofile(graph.path / "names.data")
    names = Graph.open(graph.path, verify=False).names
    lost = [name for name in names.names(np.arange(24)) if name not in names]
    assert lost
    for name in lost:
        with pytest.raises(Damaged, match="names"):
            names.id(name)


# -- search ----------------------------------------------------------------------------


TITLES = {
    "jargon/H/hacker.html": "hacker",
    "jargon/H/hacker-ethic.html": "hacker ethic",
    "jargon/S/samurai.html": "A samurai is a hacker",
    "jargon/W/whacker.html": "whacker",
    "jargon/Z/zebra.html": "Zebra",
    "jargon/Z/zebra2.html": "Zebra",
    "jargon/O/Okapi.html": "Okapi",
}
RANKED = ["jargon/H/hacker.html", "jargon/H/hacker-ethic.html", "jargon/S/samurai.html"]
"""The best matches of *hacker*: as the whole title, its beginning, and one of its words."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph and its index; most pages link to the worst match."""
    links = [("hub", name) for name in TITLES]
    links += [(f"p{i}", "jargon/W/whacker.html") for i in range(5)]
    graph = cocite.ingest(links, tmp_path / "g", titles=TITLES)
    cocite.build(graph, tmp_path / "i", measure="cocitation")
    return tmp_path


def test_resolver_ranks_matches_by_quality_and_in_links(folder: Path) -> None:
    names = cocite.open(folder / "i").nodes
    found = Resolver(names).matches("hacker")
    assert names.names(found.ids) == [*RANKED, "jargon/W/whacker.html"]
    assert found.ranks.tolist() == [0, 2, 3, 4]
    assert found.titled.tolist() == [True, True, True, False]  # the name of whacker matches as well
    assert names.names(Resolver(names).matches("HACKER").ids[:1]) == RANKED[:1]
    everything = Resolver(names).matches("").ids
    assert names.name(int(everything[0])) == "jargon/W/whacker.html"
    assert everything.size == len(names)
    assert names.names(Resolver(names).matches("samurai hacker").ids) == [RANKED[2]]
    pages = Resolver(names).matches("p", passes=False).ids
    assert names.names(pages) == [f"p{i}" for i in range(5)]
    prefixed = Resolver(names).matches("jargon/", passes=False).ids
    assert names.name(int(prefixed[0])) == "jargon/W/whacker.html"
    assert prefixed.size == len(TITLES)


def test_resolver_finds_unambiguous_node(folder: Path) -> None:
    resolver = Resolver(names := cocite.open(folder / "i").nodes)
    for text, name in (
        ("hub", "hub"),
        ("HUB", "hub"),
        ("JARGON/o/okapi.HTML", "jargon/O/Okapi.html"),
        ("hacker", "jargon/H/hacker.html"),
        ("  okapi ", "jargon/O/Okapi.html"),
        ("whacker.html", "jargon/W/whacker.html"),
        ("W/whacker.html", "jargon/W/whacker.html"),
    ):
        assert resolver.find(text) == names.find(name)
    for text in ("zebra", "hack", "", " ", "okapy"):  # two nodes, a part, nothing, misspelt
        assert resolver.find(text) is None


def test_commands_resolve_titles_alike(folder: Path, shell: Shell) -> None:
    index, expected = str(folder / "i"), [*RANKED, "jargon/W/whacker.html"]
    for path in (folder / "i", folder / "g"):
        assert [match.node for match in NodesDocument.of_path(path, "hacker").nodes] == expected

    def cli_json(*arguments: str) -> Any:
        return json.loads(shell([*arguments, "--format", "json"]).out)

    assert [match["node"] for match in cli_json("nodes", index, "hacker")["nodes"]] == expected
    assert cli_json("related", index, "Hacker")["node"] == RANKED[0]
    pair = cli_json("similarity", index, "okapi", "hacker")
    assert (pair["a"], pair["b"]) == ("jargon/O/Okapi.html", RANKED[0])
    first = _names(str(folder / "g"), "jargon/", False, None)[0]
    assert (first.value, first.help) == ("jargon/W/whacker.html", "whacker")


def test_unknown_node_suggests_titles_and_names(folder: Path) -> None:
    index = cocite.open(folder / "i")
    with pytest.raises(
        UnknownNode, match=r"'Zebra' is the title of 'jargon/Z/zebra\.html'"
    ) as caught:
        index.related("zebra")
    assert caught.value.suggestions == ("jargon/Z/zebra.html", "jargon/Z/zebra2.html")
    with pytest.raises(UnknownNode) as caught:
        index.related("hubb")
    assert caught.value.suggestions == ("hub",)
    assert main(["related", str(folder / "i"), "zebra"]) == 2
