"""Nodes are found by what people type, the best match first, and everywhere alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.cli.completion import _names
from cocite.cli.main import main
from cocite.errors import UnknownNode
from cocite.graph.names import Resolver
from cocite.search.resolver import NodesDocument

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
"""By *hacker*: the title, where it begins so, a word of it; then within a word."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph and an index of it; most link to the least good match."""
    links = [("hub", name) for name in TITLES] + [
        (f"p{i}", "jargon/W/whacker.html") for i in range(5)
    ]
    (tmp_path / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in links))
    titles = "".join(f"{name}\t{title}\n" for name, title in TITLES.items())
    (tmp_path / "titles.tsv").write_text(titles)
    graph = cocite.ingest(
        tmp_path / "links.tsv", tmp_path / "g", header="no", titles=tmp_path / "titles.tsv"
    )
    cocite.build(graph, tmp_path / "i", measure="cocitation")
    return tmp_path


def test_better_matches_come_first_and_of_equals_those_that_more_link_to(folder: Path) -> None:
    names = cocite.open(folder / "i").nodes
    found = Resolver(names).matches("hacker")
    assert names.names(found.ids) == [*RANKED, "jargon/W/whacker.html"]
    assert found.ranks.tolist() == [0, 2, 3, 4]
    assert found.titled.tolist() == [True, True, True, False]  # of whacker the name is as good
    assert names.names(Resolver(names).matches("HACKER").ids[:1]) == RANKED[:1]
    everyone = Resolver(names).matches("").ids
    assert names.name(int(everyone[0])) == "jargon/W/whacker.html"
    assert everyone.size == len(names)
    assert names.names(Resolver(names).matches("samurai hacker").ids) == [RANKED[2]]
    assert names.names(Resolver(names).matches("p", passes=False).ids) == [
        f"p{i}" for i in range(5)
    ]
    beginning = Resolver(names).matches("jargon/", passes=False).ids
    assert names.name(int(beginning[0])) == "jargon/W/whacker.html"
    assert beginning.size == len(TITLES)


def test_what_is_meant_without_doubt_is_found(folder: Path) -> None:
    resolver = Resolver(names := cocite.open(folder / "i").nodes)
    for text, name in (
        ("hub", "hub"),
        ("HUB", "hub"),
        ("JARGON/o/okapi.HTML", "jargon/O/Okapi.html"),
        ("hacker", "jargon/H/hacker.html"),
        ("  okapi ", "jargon/O/Okapi.html"),
    ):
        assert resolver.find(text) == names.find(name)
    for text in ("zebra", "hack", "", " ", "okapy"):  # two, a part, nothing, misspelt
        assert resolver.find(text) is None


def test_all_doors_open_to_the_same_nodes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, expected = str(folder / "i"), [*RANKED, "jargon/W/whacker.html"]
    for path in (folder / "i", folder / "g"):
        assert [each.node for each in NodesDocument.of_path(path, "hacker").nodes] == expected

    def asked(*arguments: str) -> Any:
        assert main([*arguments, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert [each["node"] for each in asked("nodes", index, "hacker")["nodes"]] == expected
    assert asked("related", index, "Hacker")["node"] == RANKED[0]
    pair = asked("similarity", index, "okapi", "hacker")
    assert (pair["a"], pair["b"]) == ("jargon/O/Okapi.html", RANKED[0])
    first = _names(str(folder / "g"), "jargon/", False, None)[0]
    assert (first.value, first.help) == ("jargon/W/whacker.html", "whacker")


def test_what_nobody_is_called_brings_suggestions(folder: Path) -> None:
    index = cocite.open(folder / "i")
    with pytest.raises(
        UnknownNode, match=r"'Zebra' is the title of 'jargon/Z/zebra\.html'"
    ) as found:
        index.related("zebra")
    assert found.value.suggestions == ("jargon/Z/zebra.html", "jargon/Z/zebra2.html")
    with pytest.raises(UnknownNode) as found:
        index.related("hubb")
    assert found.value.suggestions == ("hub",)
    assert main(["related", str(folder / "i"), "zebra"]) == 2
