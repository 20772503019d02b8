"""Every reader returns the links of a sample, and reports the place of malformed input.

The last test fails for a new reader until it has a sample here.
"""

import gzip
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import cocite
from cocite.errors import CociteError, InputError, UsageError
from cocite.io.readers.formats import reader_at, readers
from tests.io.plain import links, nothing_left, write_files
from tests.io.test_archives import make_tar
from tests.io.test_many_files import write_parquet
from tests.io.test_mediawiki import dump
from tests.io.test_spreadsheet import Cell, workbook
from tests.io.test_warc import page
from tests.oracles.bvgraph import Writer

LINKS = [(0, 1), (0, 2), (1, 2), (2, 0)]
URLS = [f"https://{letter}.example.org/" for letter in "abc"]


class Sample(NamedTuple):
    """A file with :data:`LINKS`: its name, its content or a function that writes it, a malformed
    version, a pattern for the place in the error, and the names of the nodes.
    """

    name: str
    content: str | bytes | Callable[[Path], object]
    malformed: str | bytes | Callable[[Path], object]
    place: str
    nodes: list[str]


def texts(row: str, names: str = "abc", head: str = "", end: str = "") -> str:
    """A text with one row per link."""
    return head + "".join(row.format(names[a], names[b]) for a, b in LINKS) + end


def parquet(rows: list[tuple[str | None, str | None]]) -> Callable[[Path], object]:
    return lambda path: write_parquet(path, rows, "source TEXT, target TEXT")


PAGES = {
    f"{node}.html": "".join(f'<a href="{b}.html">x</a>' for a, b in LINKS if a == node)
    for node in range(3)
}


def folder(files: dict[str, str]) -> Callable[[Path], object]:
    return lambda path: write_files(path, files)


def texts_by_node(row: str) -> dict[str, str]:
    """A text per node a to c, with one row per link."""
    return {
        "abc"[node]: "".join(row.format("abc"[b]) for a, b in LINKS if a == node)
        for node in range(3)
    }


def notes(*names: str) -> Callable[[Path], object]:
    """A folder with the notes a to c, and empty notes with these names."""
    texts = texts_by_node("[[{}]]\n")
    return folder({f"{name}.md": text for name, text in texts.items()} | dict.fromkeys(names, ""))


def site(*names: str) -> Callable[[Path], object]:
    """A folder with the pages 0.html to 2.html, and empty pages with these names."""
    return folder(PAGES | dict.fromkeys(names, ""))


def code_folder(more: str = "") -> Callable[[Path], object]:
    """A folder with the files a.py, b.py and c.py."""
    return folder(
        {f"{name}.py": text + more for name, text in texts_by_node("import {}\n").items()}
    )


def bvgraph(cut: int = 0) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        lists = [[b for a, b in LINKS if a == node] for node in range(3)]
        Writer().write(path.with_suffix(""), lists)
        path.write_bytes(path.read_bytes()[: len(path.read_bytes()) - cut])

    return write


def common_crawl(bad: str = "") -> Callable[[Path], object]:
    def write(path: Path) -> None:
        vertices = "".join(f"{node}\torg.{name}\n" for node, name in enumerate("abc"))
        path.with_name("web-vertices.txt").write_text(vertices)
        path.write_text(texts("{0}\t{1}\n", "012") + bad)

    return write


def warc() -> bytes:
    records = (page(url, *(URLS[b] for a, b in LINKS if a == i)) for i, url in enumerate(URLS))
    return b"".join(records)


def wiki(more: bytes = b"") -> bytes:
    pages = [(i, 0, name, 0) for i, name in enumerate("ABC", 1)]
    old = [(a + 1, 0, "ABC"[b], 0) for a, b in LINKS]
    names = (b"page_id", b"page_namespace", b"page_title", b"page_is_redirect")
    columns = b"CREATE TABLE `page` (\n" + b"".join(b"  `%s` int,\n" % name for name in names)
    rows = b",".join(b"(%d,%d,'%s',%d)" % (i, n, t.encode(), r) for i, n, t, r in pages)
    table = columns + b"  PRIMARY KEY (`page_id`)\n);\nINSERT INTO `page` VALUES " + rows + b";\n"
    return table + more + dump("redirect", []) + dump("pagelinks", old, "old")


def sheet(*more: tuple[str, str]) -> Callable[[Path], object]:
    rows: list[tuple[Cell, ...]] = [("source", "target")]
    rows += [*(("abc"[a], "abc"[b]) for a, b in LINKS), *more]
    return lambda path: workbook(path, links=rows)


def lock(dependencies: dict[str, list[str]]) -> str:
    text = ""
    for name, names in dependencies.items():
        requirements = ", ".join(f'{{ name = "{other}" }}' for other in names)
        text += f'[[package]]\nname = "{name}"\nversion = "1"\ndependencies = [{requirements}]\n\n'
    return 'version = 1\nrequires-python = ">=3.11"\n\n' + text


def edges(names: Sequence[str]) -> tuple[str, str]:
    """Nodes and links as elements of GraphML and GEXF."""
    nodes = "".join(f'<node id="{name}"/>\n' for name in names)
    return nodes, texts('<edge source="{0}" target="{1}"/>\n')


def graphml(end: str, names: Sequence[str] = "abc") -> str:
    nodes, links = edges(names)
    return f'<graphml xmlns="x"><graph edgedefault="directed">\n{nodes}{links}{end}'


def gexf(end: str, names: Sequence[str] = "abc") -> str:
    nodes, links = edges(names)
    head = '<gexf xmlns="x"><graph defaultedgetype="directed"><nodes>'
    return f"{head}\n{nodes}</nodes><edges>\n{links}{end}"


def gml(end: str) -> str:
    nodes = "".join(f'node [ id {i} label "{name}" ]\n' for i, name in enumerate("abc"))
    edges = texts("edge [ source {0} target {1} ]\n", "012")
    return f"graph [\ndirected 1\n{nodes}{edges}{end}"


def node_link(*more: object) -> str:
    edges = [{"source": "abc"[a], "target": "abc"[b]} for a, b in LINKS]
    value = {"directed": True, "nodes": [{"id": name} for name in "abc"], "links": [*edges, *more]}
    return json.dumps(value, indent=1)


ABC = ["a", "b", "c"]
NUMBERS = ["0", "1", "2"]
HTML = [f"{node}.html" for node in range(3)]

SAMPLES = {
    "text": Sample("l.tsv", texts("{0}\t{1}\n"), texts("{0}\t{1}\n") + "a\n", r"l\.tsv:5: ", ABC),
    "parquet": Sample(
        "l.parquet",
        parquet([("abc"[a], "abc"[b]) for a, b in LINKS]),
        parquet([("a", "b"), ("a", None)]),
        r"l\.parquet:2: ",
        ABC,
    ),
    "html": Sample("site", site(), site("a\x01b.html"), r"site:4: .*'a\\x01b\.html'", HTML),
    "code": Sample(
        "project",
        code_folder(),
        code_folder("import\n"),
        r"project:1: a\.py:3 cannot be parsed as Python",
        ["a.py", "b.py", "c.py"],
    ),
    "notes": Sample("vault", notes(), notes("a\x01b.md"), r"vault:1: .*'a\\x01b\.md'", ABC),
    "archive": Sample(
        "l.tgz",
        gzip.compress(make_tar(PAGES)),
        make_tar(PAGES)[:1100],
        r"l\.tgz cannot be unpacked: at byte 1,024: ",
        HTML,
    ),
    "bvgraph": Sample(
        "w.graph", bvgraph(), bvgraph(1), r"w\.graph .* node \d, at byte \d", NUMBERS
    ),
    "common-crawl": Sample(
        "web-edges.txt",
        common_crawl(),
        common_crawl("0\t9\n"),
        r"web-edges\.txt:5: ",
        ["a.org", "b.org", "c.org"],
    ),
    "warc": Sample("w.warc", warc(), warc()[:-9], r"w\.warc: at byte [\d,]+: ", URLS),
    "mediawiki": Sample(
        "w.sql",
        wiki(),
        wiki(b"INSERT INTO `page` VALUES (4,0,'D);\n"),
        r"w\.sql:9: ",
        ["A", "B", "C"],
    ),
    "spreadsheet": Sample("l.xlsx", sheet(), sheet(("a", "")), r"l\.xlsx:6: ", ABC),
    "graphml": Sample(
        "l.graphml",
        graphml("</graph></graphml>"),
        graphml("</edge></graph></graphml>"),
        r"l\.graphml:9: ",
        ABC,
    ),
    "gexf": Sample(
        "l.gexf",
        gexf("</edges></graph></gexf>"),
        gexf("</edge></edges></graph></gexf>"),
        r"l\.gexf:10: ",
        ABC,
    ),
    "gml": Sample("l.gml", gml("]\n"), gml("edge [ source 0 ]\n]\n"), r"l\.gml:10: ", ABC),
    "node-link": Sample("l.json", node_link(), node_link({"source": "a"}), r"l\.json:\d+: ", ABC),
    "json-lines": Sample(
        "l.jsonl",
        texts('["{0}", "{1}"]\n'),
        texts('["{0}", "{1}"]\n') + '["a"\n',
        r"l\.jsonl:5: ",
        ABC,
    ),
    "adjacency": Sample(
        "l.adj", "a: b c\nb: c\nc: a\n", "a: b c\nb: c\nc: a\x01\n", r"l\.adj:3: ", ABC
    ),
    "matrix-market": Sample(
        "l.mtx",
        texts("{0} {1}\n", "123", "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n"),
        texts("{0} {1}\n", "129", "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n"),
        r"l\.mtx, entry:2: ",
        ["1", "2", "3"],
    ),
    "rdf": Sample(
        "l.nt",
        texts("<x:{0}> <x:to> <x:{1}> .\n"),
        texts("<x:{0}> <x:to> <x:{1}> .\n") + "<x:a> .\n",
        r"l\.nt:5: not a triple: ",
        ["x:a", "x:b", "x:c"],
    ),
    "packages": Sample(
        "uv.lock",
        lock({"a": ["b", "c"], "b": ["c"], "c": ["a"]}),
        lock({"a": ["b", "c"]}) + "= 1\n",
        r"uv\.lock.*line 9",
        ABC,
    ),
}
NEEDS_FORMAT = {"adjacency"}
"""Readers whose small samples are ambiguous without ``--input-format``."""
NO_LINKS = {"sitemap"}
"""Readers of pages without links; see ``test_sitemap.py``."""


def write_sample(folder: Path, name: str, content: str | bytes | Callable[[Path], object]) -> Path:
    path = folder / name
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("reader", SAMPLES)
def test_reader_returns_written_links(reader: str, tmp_path: Path) -> None:
    sample = SAMPLES[reader]
    path = write_sample(tmp_path, sample.name, sample.content)
    for form in ("auto", reader) if reader not in NEEDS_FORMAT else (reader,):
        graph = cocite.ingest(path, tmp_path / form, input_format=form)
        expected = sorted((sample.nodes[a], sample.nodes[b]) for a, b in LINKS)
        assert sorted(links(graph)) == expected


@pytest.mark.parametrize("reader", SAMPLES)
def test_reader_reports_place_of_malformed_input(reader: str, tmp_path: Path) -> None:
    sample = SAMPLES[reader]
    path = write_sample(tmp_path, sample.name, sample.malformed)
    with pytest.raises(InputError) as caught:
        cocite.ingest(path, tmp_path / "out.graph", input_format=reader)
    assert re.search(sample.place, str(caught.value)), caught.value
    assert str(path.parent) in str(caught.value)
    assert isinstance(caught.value, CociteError)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("reader", SAMPLES)
def test_nodes_option_accepts_every_format(reader: str, tmp_path: Path) -> None:
    sample = SAMPLES[reader]
    path = write_sample(tmp_path, sample.name, sample.content)
    (tmp_path / "one.tsv").write_text("x\ty\n")
    graph = cocite.ingest(tmp_path / "one.tsv", tmp_path / "g", nodes=path)
    # A file of nodes that may not be an adjacency list has one name per line.
    added = ["a: b c", "b: c", "c: a"] if reader == "adjacency" else sample.nodes
    assert sorted(graph.names) == sorted(["x", "y", *added])


@pytest.mark.parametrize("reader", SAMPLES)
def test_reader_refuses_unsupported_columns(reader: str, tmp_path: Path) -> None:
    sample, format_reader = SAMPLES[reader], reader_at(readers()[reader])
    path = write_sample(tmp_path, sample.name, sample.content)
    options = {"columns": "1,2"} if not format_reader.columns else {"weight_column": "3"}
    reason = "which has no columns" if not format_reader.columns else "whose links have no weights"
    if not (format_reader.columns and format_reader.weights):
        with pytest.raises((UsageError, InputError), match=f"is {format_reader.title}, {reason}"):
            cocite.ingest(path, tmp_path / "out.graph", input_format=reader, **options)
    assert nothing_left(tmp_path)


def test_readers_all_have_samples() -> None:
    assert set(SAMPLES) | NO_LINKS == set(readers())
