"""The pages of docs/how-to are true: their commands run in order, and their answers are as good as
the pages say.
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
from tests.documents import sample_data

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of each block of a page, in order."""
    text = (FOLDER / page).read_text("utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)


@pytest.fixture
def run_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., dict[str, str]]:
    """Run the commands of a page in a folder with data; command -> output."""
    monkeypatch.chdir(tmp_path)

    def run(page: str, data: Callable[[Path], None]) -> dict[str, str]:
        data(tmp_path)
        outputs = {}
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
                outputs[line] = out + err
        return outputs

    return run


def names(index: str, node: str, k: int) -> list[str]:
    return [str(hit.node) for hit in open_index(index).related(node, k)]


def precision(printed: str) -> float:
    """The precision at the most hits, the first figure that ``evaluate`` prints."""
    assert "precision@" in printed
    found = re.search(r"(\d\.\d+) ±", printed)
    assert found, printed
    return float(found[1])


def output_of(outputs: dict[str, str], prefix: str) -> str:
    found = [text for line, text in outputs.items() if line.startswith(prefix)]
    assert found, prefix
    return found[0]


@pytest.mark.long
def test_documentation(run_page: Callable[..., dict[str, str]]) -> None:
    outputs = run_page("documentation.md", sample_data.documentation)
    assert len(outputs) == 16
    assert "+<nav" in output_of(outputs, "cocite site site --dry-run")
    assert "end of main 24" in output_of(outputs, "cocite site site -k 5")
    assert "24 pages, byte for byte" in output_of(outputs, "cocite site site --remove")
    assert "1 broken" in output_of(outputs, "cocite ingest site ")
    assert "guide/" in output_of(outputs, "cocite related site.index")
    assert "index.html" not in output_of(outputs, "cocite related less.index")
    assert "guide/install.html" in output_of(outputs, "cocite why")
    near = names("less.index", "guide/install.html", 3)
    assert sum(name.startswith("guide/") for name in near) >= 2
    assert precision(output_of(outputs, "cocite evaluate")) > 0.6
    assert list(Path("site/related").iterdir())


@pytest.mark.long
def test_notes(run_page: Callable[..., dict[str, str]]) -> None:
    outputs = run_page("notes.md", sample_data.notes)
    assert len(outputs) == 8
    assert "13 Markdown notes; 38 links between them" in output_of(outputs, "cocite ingest vault")
    assert "Home\tbroken\tGone\t\n" in Path("links.tsv").read_text()
    birds = {f"birds/{name.replace('_', ' ')}" for name in sample_data.BIRDS}
    assert set(names("vault.index", "birds/Gray heron", 5)) <= birds
    assert "birds/" in output_of(outputs, "cocite related vault --draft")
    assert "trees/" not in output_of(outputs, "cocite related vault.index --draft")
    assert "by tag" in outputs['cocite related vault "Gray heron" -k 5 --tags']


@pytest.mark.long
def test_wiki(run_page: Callable[..., dict[str, str]]) -> None:
    outputs = run_page("wiki.md", sample_data.wiki)
    assert len(outputs) == 13
    assert "redirects" in output_of(outputs, "cocite ingest")
    assert "No_such_tree" in Path("red.tsv").read_text()
    assert set(names("wiki.index", "Gray_heron", 5)) == {*sample_data.BIRDS} - {"Gray_heron"}
    assert set(names("tuned.index", "Gray_heron", 3)) <= {*sample_data.BIRDS}
    index = open_index("wiki.index")
    far = index.similarity("Gray_heron", "Oak").score
    assert far < index.related("Gray_heron", 3)[2].score
    assert precision(output_of(outputs, "cocite evaluate")) > 0.8


@pytest.mark.long
def test_citations(run_page: Callable[..., dict[str, str]]) -> None:
    outputs = run_page("citations.md", sample_data.citations)
    assert len(outputs) == 17
    assert "On songs" in output_of(outputs, "cocite related works")
    cited, openalex = cocite.Graph.open("papers.graph"), cocite.Graph.open("openalex.graph")
    assert (openalex.edges, openalex.nodes) == (cited.edges, 120)
    shown = output_of(outputs, "cocite related citations.tsv")
    assert "On " in shown
    assert shown.count("On songs") >= 3  # p031 is one
    assert precision(output_of(outputs, "cocite evaluate papers.index")) > 0.6
    assert "p0" in output_of(outputs, "cocite related papers.index --draft")


def test_code(run_page: Callable[..., dict[str, str]]) -> None:
    outputs = run_page("code.md", sample_data.project)
    assert len(outputs) == 6
    for line in ("src/app/main.py", "app.db"):
        assert "src/app/" in output_of(outputs, f"cocite related project {line}")
    graph = cocite.Graph.open("code.graph")
    assert sorted(graph.names)[0] == "logging"
    assert graph.edges == 2 + 1 + 1 + 1 + 1 + 2 + 3
    assert "quart" in output_of(outputs, "cocite related uv.lock")


def test_triples(run_page: Callable[..., dict[str, str]]) -> None:
    outputs = run_page("triples.md", sample_data.triples)
    assert len(outputs) == 4
    shown = output_of(outputs, "cocite related kinds.index")
    assert all(name.replace("_", " ") in shown for name in sample_data.BIRDS[1:])
    assert cocite.Graph.open("kinds.graph").edges == len([*sample_data.BIRDS, *sample_data.TREES])


@pytest.mark.long
def test_common_crawl(run_page: Callable[..., dict[str, str]]) -> None:
    outputs = run_page("common-crawl.md", sample_data.hosts)
    assert len(outputs) == 11  # info runs twice
    assert "museum0.example.org" in output_of(outputs, "cocite nodes")
    hits = names("hosts.index", "museum3.example.org", 5)
    assert sum(name.startswith("museum") for name in hits) >= 4
    own = names("mine.index", "museum3.example.org", 3)
    assert all(name.startswith("museum") for name in own)
    assert precision(output_of(outputs, "cocite evaluate")) > 0.8


@pytest.mark.long
def test_networkx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("networkx", reason="needs NetworkX")
    monkeypatch.chdir(tmp_path)
    nodes = [f"{letter}{n:02}" for letter in "abc" for n in range(12)]
    links = sample_data.pairs(3, 12, 5, 0.9)
    Path("edges.txt").write_text("".join(f"{nodes[a]} {nodes[b]}\n" for a, b in links))
    code = "".join(text for language, text in blocks("networkx.md") if language == "python")
    found: dict[str, Any] = {}
    exec(code, found)
    near = [hit.node[0] for hit in found["index"].related("a03", k=5)]
    assert near.count("a") >= 4
    assert set(found["nearest"]) == set(nodes)
    printed = capsys.readouterr().out
    assert "+-" in printed
    assert "Graph with 36 nodes" in printed


def test_assistants(run_page: Callable[..., dict[str, str]]) -> None:
    """Hosts start a valid command with valid arguments."""

    def links(folder: Path) -> None:
        (folder / "links.tsv").write_text("a\tb\na\tc\n")

    from cocite.cli.commands.serve import mcp

    outputs = run_page("assistants.md", links)
    assert len(outputs) == 2
    hosts = [json.loads(text) for language, text in blocks("assistants.md") if language == "json"]
    local, remote = (host["mcpServers"]["links"] for host in hosts)
    assert (local["command"], local["args"][0]) == ("cocite", "mcp")
    with mcp.make_context("mcp", local["args"][1:]) as context:
        assert context.params["index"] == "/path/to/web.index"
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from cocite.server.assistants import PATH

    assert remote["url"].endswith(f":8081{PATH}")


def test_how_to_pages_have_tests() -> None:
    """Or has no commands; docs/bipartite.md, on clicks, has its own tests."""
    pages = {path.name for path in FOLDER.glob("*.md")} - {"index.md"}
    tests = {name.removeprefix("test_").replace("_", "-") for name in globals()}
    assert {page.removesuffix(".md") for page in pages} <= tests
