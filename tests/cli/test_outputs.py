"""Output formats: a command returns one reply, and a format is one file and one table entry."""

import ast
import csv
import io
import json
import os
import re
import subprocess
import sys
from math import nan
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

import cocite
from cocite.cli.console import printable, printable_json
from cocite.cli.main import main
from cocite.cli.output import GRAPH_OUTPUTS, OUTPUTS
from cocite.graph.partitions import GraphDocument
from cocite.index import StoredIndex
from cocite.index.results import IndexDocument
from cocite.index.verify import VerifyDocument
from cocite.io.writers import GRAPHS, TABLES, check_output, kinds_of
from cocite.io.writers.tables import safe_cell
from cocite.measures.results import MeasuresDocument
from cocite.ranking import pagerank
from cocite.ranking.figures import RankDocument
from cocite.results import Document, ResultRows, markdown
from cocite.search.results import RelatedDocument, SimilarityDocument, WhyDocument
from tests.conftest import MakeGraph, Shell

CLI = Path(cocite.__file__).parent / "cli"
TOY = '''
"""A format of its own: the titles of the facts."""

def show(reply):
    print(*reply.document.to_json(), sep="|")
'''


def documents(folder: Path) -> dict[str, Document]:
    """Commands -> documents of the same queries to the library."""
    index, graph = cocite.open(folder / "i"), cocite.Graph.open(folder / "g")
    return {
        "related i one -k 1 --min-score 0.1": RelatedDocument.of(index, "one", 1, min_score=0.1),
        "similarity i one two --decay 0.5": SimilarityDocument.of(index, "one", "two", decay=0.5),
        "why i one two -k 1": WhyDocument.of(index, "one", "two", 1),
        "info i": IndexDocument.of(StoredIndex.open("i")),
        "info g": GraphDocument.of(cocite.Graph.open("g")),
        "verify g": VerifyDocument.of("g"),
        "rank g -k 2": RankDocument.of(cocite.Graph.open("g"), pagerank(graph), 2),
        "measures": MeasuresDocument.of(),
    }


def test_graph_outputs_equal_written_graph_kinds() -> None:
    assert kinds_of(GRAPHS) == GRAPH_OUTPUTS


def test_json_output_equals_document(
    hub: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hub)
    for verb, document in documents(hub).items():
        reply = shell([*verb.split(), "--format", "json"])
        assert json.loads(reply.out) == document.to_json(), verb


def test_documents_are_strict_json(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends them as they are: no nan, which JSON lacks, and no unknown types."""
    monkeypatch.chdir(hub)
    single = cocite.build(hub / "g", tmp_path / "single", samples=1, measure="psimrank")
    document = SimilarityDocument.of(single, "one", "two")
    assert document.found.stderr != document.found.stderr
    assert document.to_json()["stderr"] is None
    for each in [document, *documents(hub).values()]:
        value = each.to_json()
        assert json.loads(json.dumps(value, allow_nan=False)) == value
        titles, rows = each.rows()
        assert all(len(row) == len(titles) for row in rows)


@pytest.mark.process
def test_outputs_accept_new_format(hub: Path, tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    code = (
        "import sys, toy; from cocite.cli.output import OUTPUTS; OUTPUTS['titles'] = toy.show;"
        "from cocite.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*filter(None, sys.path), "."])}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        result = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return result.stdout

    assert run("similarity", str(hub / "i"), "one", "two", "--format", "titles").split("|")[:2] == [
        "a",
        "b",
    ]
    assert f"[{'|'.join(OUTPUTS)}|titles]" in run("info", "--help")


def test_cli_modules_name_no_output_format() -> None:
    """Format names are in their table only; an option may have the name of one."""
    nodes = [
        (path.name, node)
        for path in CLI.rglob("*.py")
        if path.name != "output.py"  # which has the table
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]
    options = {id(node.slice) for _, node in nodes if isinstance(node, ast.Subscript)}
    mentions = [
        f"{name}:{node.lineno}"
        for name, node in nodes
        if isinstance(node, ast.Constant) and node.value in OUTPUTS and id(node) not in options
    ]
    assert mentions == []


# -- Markdown ------------------------------------------------------------------------------

HOSTILE = [
    *(
        "a|b",
        "\\",
        "ends in \\",
        "`code`",
        "**bold** _it_ ~~no~~",
        "[text](http://evil.org)",
        "![i](x)",
    ),
    *(
        "<script>alert(1)</script>",
        "&lt;b&gt; &amp;",
        "# head",
        "1. list",
        "- item",
        ":smile:",
        "$x$",
    ),
    *("line\nbreak | x", "\x00\x1b[31m", "é 漢", "  blanks  ", "http:/one slash", "| --- |", "\\|"),
]
URLS = ["http://a.org/x|y", "https://a.org/(a)[b]<c> d?e=1&copy=2#f", "http://é.org/漢\\`*_"]


def rendered(text: str) -> list[list[Any]]:
    """The cells of a rendered table, as CommonMark with tables: text, or (text, URL)."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    assert {token.type for token in tokens} <= {
        *(
            f"{part}_{end}"
            for part in ("table", "thead", "tbody", "tr", "th", "td")
            for end in ("open", "close")
        ),
        "inline",
    }
    rows: list[list[Any]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline":
            children = token.children or []
            shown = "".join(child.content for child in children)
            kinds = {child.type for child in children}
            assert kinds <= {"text", "text_special", "link_open", "link_close"}, token.content
            links = [child.attrs["href"] for child in children if child.type == "link_open"]
            rows[-1].append((shown, *links) if links else shown)
    return rows


def displayed(text: str) -> str:
    """A name as it is shown: control characters as blanks, stripped."""
    return re.sub("[\\x00-\\x1f]", " ", text).strip()


def test_markdown_escapes_names() -> None:
    rows = [(i, name, 1 / 3, nan, None) for i, name in enumerate(HOSTILE, 1)]
    titles, *cells = rendered(
        markdown(ResultRows(("rank", "node", "score", "stderr", "low"), rows))
    )
    assert titles == ["rank", "node", "score", "stderr", "low"]
    assert cells == [
        [str(i), displayed(name), "0.3333", "", ""] for i, name in enumerate(HOSTILE, 1)
    ]


def test_markdown_links_urls_by_title() -> None:
    titles, *cells = rendered(
        markdown(ResultRows(("node", "score"), [(url, 1e-7) for url in URLS]))
    )
    assert titles == ["node", "score"]
    for (cell, score), url in zip(cells, URLS, strict=True):
        assert (cell[0], unquote(cell[1]), score) == (url, url, "1e-07")
    names = HOSTILE[: len(URLS)]
    rows = [(url, name, 1) for url, name in zip(URLS, names, strict=True)]
    titles, *cells = rendered(markdown(ResultRows(("node", "title", "n"), rows)))
    assert titles == ["node", "n"]
    assert [cell[0][0] for cell in cells] == names
    untitled = markdown(ResultRows(("node", "title"), [(URLS[0], None)]))
    assert rendered(untitled)[1] == [(URLS[0], "http://a.org/x%7Cy")]
    mixed = markdown(ResultRows(("node", "title"), [("page", "Its title"), (URLS[0], None)]))
    assert rendered(mixed)[1:] == [["page", "Its title"], [(URLS[0], "http://a.org/x%7Cy"), ""]]


def test_markdown_output_is_table(hub: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hub)
    for verb, document in documents(hub).items():
        titles, *rows = rendered(shell([*verb.split(), "--format", "markdown"]).out)
        assert len(rows) == len(list(document.rows().rows)), verb
        assert titles == list(document.rows().titles), verb


def test_related_prints_gexf(hub: Path, shell: Shell) -> None:
    reply = shell(["related", hub / "i", "one", "--format", "gexf"])
    assert reply.out.startswith("<?xml")


# -- names with control characters -----------------------------------------------------


CONTROLS = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))]
CONTROLS += ["\u202e", "\u2066", "\u2028", "\u061c", "\ufeff"]
ODD = ["a\u2028b", "web\u061cgpj.exe", "\ufeffx"]
"""Names that may be stored; those that ``ingest`` refuses are in ``io/test_name_characters.py``."""
TEXTS = ["plain", "Ünïcode", "日本語", "עברית", "العربية", "a b\nc\td", "e\u0301", "👩\u200d💻"]


@pytest.mark.parametrize("character", CONTROLS)
def test_printable_escapes_control_characters(character: str) -> None:
    code = ord(character)
    assert printable(f"a{character}b") == (f"a\\x{code:02x}b" if code < 256 else f"a\\u{code:04x}b")
    escaped = printable_json(json.dumps(f"a{character}b", ensure_ascii=False))
    assert character not in escaped
    assert json.loads(escaped) == f"a{character}b"


@pytest.mark.parametrize("text", TEXTS)
def test_printable_keeps_text(text: str) -> None:
    assert printable(text) == text
    assert printable_json(text) == text


@pytest.mark.parametrize("output_format", ["table", "json"])
def test_output_escapes_control_characters_in_names(
    make_graph: MakeGraph, output_format: str, shell: Shell
) -> None:
    graph = make_graph([(a, b) for a in ODD for b in ODD if a != b])
    path = str(graph.path)
    printed = [
        shell(["nodes", path, "--format", output_format]),
        shell(["related", path, ODD[0], "--measure", "cocitation", "--format", output_format]),
        shell(["related", path, ODD[1] + "?", "--format", output_format], 2),
    ]
    out, err = "".join(reply.out for reply in printed), "".join(reply.err for reply in printed)
    assert not set(CONTROLS).intersection(out + err)
    assert "web\\u061cgpj.exe" in out
    assert "web\\u061cgpj.exe" in err


def test_usage_errors_escape_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["\x9b31m"], ["--\x1b[31m"], ["info", "\u202egraph"], ["info", "-\x1b", "x"]):
        for options in ([], ["--log-json"]):
            assert main([*words, *options]) != 0
    assert not set(CONTROLS).intersection(capsys.readouterr().err)


# -- ``--safe-csv``: formulas are text; all else stays ---------------------------------


EVIL = ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1dcmd", "=a,b", '="q"']
TITLE = "=HYPERLINK(0)"
PLAIN = ["a", "'=1", "1-2", "a=b"]
VERBS = ["related i {0}", "similarity i {0} {1}", "why i {0} {1}", "nodes i -k 20", "rank g -k 20"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("safe")
    rows = [(hub, name) for hub in ("=h", "k") for name in (*EVIL, *PLAIN)]
    graph = cocite.ingest(rows, titles={"a": TITLE, "+1": TITLE}, output=folder / "g")
    cocite.build(graph, folder / "i", samples=20, measure="psimrank")
    return folder


def quoted(cell: str) -> str:
    """An independent implementation."""
    return "'" + cell if cell[:1] in set("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20") - {""} else cell


def cells(text: str, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


@pytest.mark.parametrize("verb", VERBS)
def test_safe_csv_quotes_printed_formulas(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(folder)
    command = [word.format(EVIL[0], EVIL[3]) for word in verb.split()]
    printed = []
    for options in ([], ["--safe-csv"]):
        printed.append(shell([*command, "--format", "csv", *options]).out)
    before, after = map(cells, printed)
    assert [[quoted(cell) for cell in row] for row in before] == after
    assert before != after
    for output_format in ("table", "json"):
        shown = []
        for options in ([], ["--safe-csv"]):
            shown.append(shell([*command, "--format", output_format, *options]).out)
        assert shown[0] == shown[1]


@pytest.mark.parametrize("extension", [".csv", ".tsv"])
@pytest.mark.parametrize("verb", ["rank g", "all-pairs g", "related-all i", "related-all i --ids"])
def test_safe_csv_quotes_written_formulas(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, extension: str
) -> None:
    monkeypatch.chdir(folder)
    found = []
    for name, options in (("plain", []), ("safe", ["--safe-csv"])):
        path = tmp_path / (name + extension)
        assert main([*verb.split(), "-o", str(path), *options]) == 0
        found.append(cells(path.read_text("utf-8"), "\t" if extension == ".tsv" else ","))
    before, after = found
    assert [[quoted(cell) for cell in row] for row in before] == after
    assert before != after  # with --ids, the titles differ


@pytest.mark.parametrize("extension", [".parquet", ".jsonl", ".arrow"])
def test_safe_csv_keeps_typed_formats(tmp_path: Path, extension: str) -> None:
    assert extension in TABLES
    columns = {"node": np.array(EVIL, object), "rank": -np.arange(len(EVIL), dtype=float)}
    for name, chosen in (("plain", False), ("safe", True)):
        target = check_output(tmp_path / (name + extension), False, safe=chosen)
        target.write_table([columns], {"node": "VARCHAR", "rank": "DOUBLE"})
    plain, other = (tmp_path / (name + extension) for name in ("plain", "safe"))
    assert plain.read_bytes() == other.read_bytes()


def test_safe_csv_keeps_numbers_and_missing_values(tmp_path: Path) -> None:
    values = [-1.5, float("nan"), 1e-9]
    names = ["\tx", None, "\r-"]
    columns = {"node": np.array(names, object), "rank": np.array(values)}
    target = check_output(tmp_path / "x.csv", False, safe=True)
    target.write_table([columns], {"node": "VARCHAR", "rank": "DOUBLE"})
    text = (tmp_path / "x.csv").read_bytes().decode()
    (_, first, second, third) = csv.reader(io.StringIO(text, newline=""))
    assert first == ["'\tx", "-1.5"]
    assert second[0] == ""
    assert third[0] == "'\r-"
    assert [safe_cell(value) for value in (-1, -1.5, None, True, "", "a")] == [
        *(-1, -1.5, None, True, "", "a")
    ]
