"""Ways to print: a verb hands over one reply, and a new way is one file and one line of a table."""

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
    """What verbs answer -> the same, asked of the library."""
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


def test_the_graphs_that_are_printed_are_those_that_are_written() -> None:
    assert kinds_of(GRAPHS) == GRAPH_OUTPUTS


def test_json_is_the_result(hub: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hub)
    for verb, document in documents(hub).items():
        reply = shell([*verb.split(), "--format", "json"])
        assert json.loads(reply.out) == document.to_json(), verb


def test_documents_are_plain_json(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service sends them as they are: no nan, which JSON does not have, and nothing unknown."""
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
def test_a_new_way_to_print_is_one_file_and_one_line(hub: Path, tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    code = (
        "import sys, toy; from cocite.cli.output import OUTPUTS; OUTPUTS['titles'] = toy.show;"
        "from cocite.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*filter(None, sys.path), "."])}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert run("similarity", str(hub / "i"), "one", "two", "--format", "titles").split("|")[:2] == [
        "a",
        "b",
    ]
    assert f"[{'|'.join(OUTPUTS)}|titles]" in run("info", "--help")


def test_no_verb_knows_how_it_is_printed() -> None:
    """The names of formats stand in their table only; an option may be called as one of them."""
    nodes = [
        (path.name, node)
        for path in CLI.rglob("*.py")
        if path.name != "output.py"  # where the table stands
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]
    options = {id(node.slice) for _, node in nodes if isinstance(node, ast.Subscript)}
    known = [
        f"{name}:{node.lineno}"
        for name, node in nodes
        if isinstance(node, ast.Constant) and node.value in OUTPUTS and id(node) not in options
    ]
    assert known == []


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
    """The cells of a table as CommonMark with tables shows them: text, or (text, address)."""
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
            said = "".join(child.content for child in children)
            kinds = {child.type for child in children}
            assert kinds <= {"text", "text_special", "link_open", "link_close"}, token.content
            links = [child.attrs["href"] for child in children if child.type == "link_open"]
            rows[-1].append((said, *links) if links else said)
    return rows


def plainly(text: str) -> str:
    """What is shown of a name: control characters as blanks, none at the ends."""
    return re.sub("[\\x00-\\x1f]", " ", text).strip()


def test_markdown_shows_names_and_nothing_else() -> None:
    rows = [(i, name, 1 / 3, nan, None) for i, name in enumerate(HOSTILE, 1)]
    titles, *cells = rendered(
        markdown(ResultRows(("rank", "node", "score", "stderr", "low"), rows))
    )
    assert titles == ["rank", "node", "score", "stderr", "low"]
    assert cells == [[str(i), plainly(name), "0.3333", "", ""] for i, name in enumerate(HOSTILE, 1)]


def test_markdown_links_urls_and_calls_them_by_their_titles() -> None:
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


def test_markdown_is_a_table(hub: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hub)
    for verb, document in documents(hub).items():
        titles, *rows = rendered(shell([*verb.split(), "--format", "markdown"]).out)
        assert len(rows) == len(list(document.rows().rows)), verb
        assert titles == list(document.rows().titles), verb


def test_graph_of_hits_is_printed(hub: Path, shell: Shell) -> None:
    reply = shell(["related", hub / "i", "one", "--format", "gexf"])
    assert reply.out.startswith("<?xml")


# -- names are data, which a terminal shows and does not obey --------------------------


READ = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))]
READ += ["\u202e", "\u2066", "\u2028", "\u061c", "\ufeff"]
ODD = ["a\u2028b", "web\u061cgpj.exe", "\ufeffx"]
"""Names that may be stored; those that ``ingest`` refuses are in ``io/test_unnamed.py``."""
TEXTS = ["plain", "Ünïcode", "日本語", "עברית", "العربية", "a b\nc\td", "e\u0301", "👩\u200d💻"]


@pytest.mark.parametrize("sign", READ)
def test_no_sign_that_is_read_is_printed(sign: str) -> None:
    code = ord(sign)
    assert printable(f"a{sign}b") == (f"a\\x{code:02x}b" if code < 256 else f"a\\u{code:04x}b")
    told = printable_json(json.dumps(f"a{sign}b", ensure_ascii=False))
    assert sign not in told
    assert json.loads(told) == f"a{sign}b"


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_what_it_was(text: str) -> None:
    assert printable(text) == text
    assert printable_json(text) == text


@pytest.mark.parametrize("way", ["table", "json"])
def test_names_are_shown_and_not_obeyed(make_graph: MakeGraph, way: str, shell: Shell) -> None:
    graph = make_graph([(a, b) for a in ODD for b in ODD if a != b])
    path = str(graph.path)
    printed = [
        shell(["nodes", path, "--format", way]),
        shell(["related", path, ODD[0], "--measure", "cocitation", "--format", way]),
        shell(["related", path, ODD[1] + "?", "--format", way], 2),
    ]
    out, err = "".join(each.out for each in printed), "".join(each.err for each in printed)
    assert not set(READ).intersection(out + err)
    assert "web\\u061cgpj.exe" in out
    assert "web\\u061cgpj.exe" in err


def test_text_of_wrong_calls_is_shown_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["\x9b31m"], ["--\x1b[31m"], ["info", "\u202egraph"], ["info", "-\x1b", "x"]):
        for voice in ([], ["--log-json"]):
            assert main([*words, *voice]) != 0
    assert not set(READ).intersection(capsys.readouterr().err)


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


def safe(cell: str) -> str:
    """By a plain twin."""
    return "'" + cell if cell[:1] in set("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20") - {""} else cell


def cells(text: str, sign: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=sign))


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_printed(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(folder)
    asked = [word.format(EVIL[0], EVIL[3]) for word in verb.split()]
    printed = []
    for more in ([], ["--safe-csv"]):
        printed.append(shell([*asked, "--format", "csv", *more]).out)
    before, after = map(cells, printed)
    assert [[safe(cell) for cell in row] for row in before] == after
    assert before != after
    for form in ("table", "json"):
        shown = []
        for more in ([], ["--safe-csv"]):
            shown.append(shell([*asked, "--format", form, *more]).out)
        assert shown[0] == shown[1]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
@pytest.mark.parametrize("verb", ["rank g", "all-pairs g", "related-all i", "related-all i --ids"])
def test_what_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, ending: str
) -> None:
    monkeypatch.chdir(folder)
    found = []
    for name, more in (("plain", []), ("safe", ["--safe-csv"])):
        path = tmp_path / (name + ending)
        assert main([*verb.split(), "-o", str(path), *more]) == 0
        found.append(cells(path.read_text("utf-8"), "\t" if ending == ".tsv" else ","))
    before, after = found
    assert [[safe(cell) for cell in row] for row in before] == after
    assert before != after  # with --ids it is titles


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".arrow"])
def test_kinds_with_types_are_as_they_were(tmp_path: Path, ending: str) -> None:
    assert ending in TABLES
    columns = {"node": np.array(EVIL, object), "rank": -np.arange(len(EVIL), dtype=float)}
    for name, chosen in (("plain", False), ("safe", True)):
        target = check_output(tmp_path / (name + ending), False, safe=chosen)
        target.write_table([columns], {"node": "VARCHAR", "rank": "DOUBLE"})
    plain, other = (tmp_path / (name + ending) for name in ("plain", "safe"))
    assert plain.read_bytes() == other.read_bytes()


def test_numbers_stay_and_what_does_not_exist_is_empty(tmp_path: Path) -> None:
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
