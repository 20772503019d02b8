"""The pages of docs/how-to are true: what they say to type is typed, one line after another, and a
person who judges the answers as they say finds them good.
"""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.cli.main import main
from cocite.search import open_index
from tests.documents import made

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of each block of a page, in order."""
    text = (FOLDER / page).read_text("utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., dict[str, str]]:
    """Types what a page says in a folder with data; command -> what it printed."""
    monkeypatch.chdir(tmp_path)

    def type_all(page: str, data: Callable[[Path], None]) -> dict[str, str]:
        data(tmp_path)
        said = {}
        for language, block in blocks(page):
            if language == "python":
                exec(block, {})
            for line in block.splitlines():
                if language or not line.startswith("cocite "):
                    continue
                command, _, output = line.partition(" > ")
                code = main(shlex.split(command)[1:])
                out, err = capsys.readouterr()
                assert code == 0, (line, err)
                if output:
                    Path(output).write_text(out)
                said[line] = out + err
        return said

    return type_all


def names(index: str, node: str, k: int) -> list[str]:
    return [str(hit.node) for hit in open_index(index).related(node, k)]


def precision(printed: str) -> float:
    """The precision at the most hits, which ``evaluate`` prints before other figures."""
    assert "precision@" in printed
    found = re.search(r"(\d\.\d+) ±", printed)
    assert found, printed
    return float(found[1])


def one(said: dict[str, str], begins: str) -> str:
    found = [text for line, text in said.items() if line.startswith(begins)]
    assert found, begins
    return found[0]


def test_documentation(typed: Callable[..., dict[str, str]]) -> None:
    said = typed("documentation.md", made.documentation)
    assert len(said) == 16
    assert "+<nav" in one(said, "cocite site site --dry-run")
    assert "end of main 24" in one(said, "cocite site site -k 5")
    assert "24 pages, byte for byte" in one(said, "cocite site site --remove")
    assert "1 broken" in one(said, "cocite ingest site ")
    assert "guide/" in one(said, "cocite related site.index")
    assert "index.html" not in one(said, "cocite related less.index")
    assert "guide/install.html" in one(said, "cocite why")
    near = names("less.index", "guide/install.html", 3)
    assert sum(name.startswith("guide/") for name in near) >= 2
    assert precision(one(said, "cocite evaluate")) > 0.6
    assert list(Path("site/related").iterdir())


def test_notes(typed: Callable[..., dict[str, str]]) -> None:
    said = typed("notes.md", made.notes)
    assert len(said) == 8
    assert "13 Markdown notes; 38 links between them" in one(said, "cocite ingest vault")
    assert "Home\tbroken\tGone\t\n" in Path("links.tsv").read_text()
    birds = {f"birds/{name.replace('_', ' ')}" for name in made.BIRDS}
    assert set(names("vault.index", "birds/Gray heron", 5)) <= birds
    assert "birds/" in one(said, "cocite related vault --draft")
    assert "trees/" not in one(said, "cocite related vault.index --draft")
    assert "by tag" in said['cocite related vault "Gray heron" -k 5 --tags']


def test_wiki(typed: Callable[..., dict[str, str]]) -> None:
    said = typed("wiki.md", made.wiki)
    assert len(said) == 13
    assert "redirects" in one(said, "cocite ingest")
    assert "No_such_tree" in Path("red.tsv").read_text()
    assert set(names("wiki.index", "Gray_heron", 5)) == {*made.BIRDS} - {"Gray_heron"}
    assert set(names("tuned.index", "Gray_heron", 3)) <= {*made.BIRDS}
    index = open_index("wiki.index")
    far = index.similarity("Gray_heron", "Oak").score
    assert far < index.related("Gray_heron", 3)[2].score
    assert precision(one(said, "cocite evaluate")) > 0.8


def test_citations(typed: Callable[..., dict[str, str]]) -> None:
    said = typed("citations.md", made.citations)
    assert len(said) == 17
    assert "On songs" in one(said, "cocite related works")
    cited, made_of = cocite.Graph.open("papers.graph"), cocite.Graph.open("openalex.graph")
    assert (made_of.edges, made_of.nodes) == (cited.edges, 120)
    shown = one(said, "cocite related citations.tsv")
    assert "On " in shown
    assert shown.count("On songs") >= 3  # p031 is one of these
    assert precision(one(said, "cocite evaluate papers.index")) > 0.6
    assert "p0" in one(said, "cocite related papers.index --draft")


def test_code(typed: Callable[..., dict[str, str]]) -> None:
    said = typed("code.md", made.project)
    assert len(said) == 6
    for line in ("src/app/main.py", "app.db"):
        assert "src/app/" in one(said, f"cocite related project {line}")
    graph = cocite.Graph.open("code.graph")
    assert sorted(graph.names)[0] == "logging"
    assert graph.edges == 2 + 1 + 1 + 1 + 1 + 2 + 3
    assert "quart" in one(said, "cocite related uv.lock")


def test_triples(typed: Callable[..., dict[str, str]]) -> None:
    said = typed("triples.md", made.triples)
    assert len(said) == 4
    shown = one(said, "cocite related kinds.index")
    assert all(name.replace("_", " ") in shown for name in made.BIRDS[1:])
    assert cocite.Graph.open("kinds.graph").edges == len([*made.BIRDS, *made.TREES])


def test_common_crawl(typed: Callable[..., dict[str, str]]) -> None:
    said = typed("common-crawl.md", made.hosts)
    assert len(said) == 11  # info is typed twice
    assert "museum0.example.org" in one(said, "cocite nodes")
    hits = names("hosts.index", "museum3.example.org", 5)
    assert sum(name.startswith("museum") for name in hits) >= 4
    mine = names("mine.index", "museum3.example.org", 3)
    assert all(name.startswith("museum") for name in mine)
    assert precision(one(said, "cocite evaluate")) > 0.8


def test_networkx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("networkx", reason="needs NetworkX")
    monkeypatch.chdir(tmp_path)
    called = [f"{letter}{n:02}" for letter in "abc" for n in range(12)]
    links = made.pairs(3, 12, 5, 0.9)
    Path("edges.txt").write_text("".join(f"{called[a]} {called[b]}\n" for a, b in links))
    code = "".join(text for language, text in blocks("networkx.md") if language == "python")
    found: dict[str, Any] = {}
    exec(code, found)
    near = [hit.node[0] for hit in found["index"].related("a03", k=5)]
    assert near.count("a") >= 4
    assert set(found["nearest"]) == set(called)
    printed = capsys.readouterr().out
    assert "+-" in printed
    assert "Graph with 36 nodes" in printed


def test_assistants(typed: Callable[..., dict[str, str]]) -> None:
    """What hosts start is a command, and its arguments are ones that it takes."""

    def links(folder: Path) -> None:
        (folder / "links.tsv").write_text("a\tb\na\tc\n")

    from cocite.cli.commands.serve import mcp

    said = typed("assistants.md", links)
    assert len(said) == 2
    hosts = [json.loads(text) for language, text in blocks("assistants.md") if language == "json"]
    local, remote = (host["mcpServers"]["links"] for host in hosts)
    assert (local["command"], local["args"][0]) == ("cocite", "mcp")
    with mcp.make_context("mcp", local["args"][1:]) as context:
        assert context.params["index"] == "/path/to/web.index"
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from cocite.server.assistants import PATH

    assert remote["url"].endswith(f":8081{PATH}")


def test_every_page_is_tested() -> None:
    """Or says nothing to type; that on clicks, docs/bipartite.md, has tests of its own."""
    pages = {path.name for path in FOLDER.glob("*.md")} - {"index.md"}
    tests = {name.removeprefix("test_").replace("_", "-") for name in globals()}
    assert {page.removesuffix(".md") for page in pages} <= tests
