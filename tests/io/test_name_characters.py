"""Names with leading or trailing blanks: every reader strips the blanks.

Names with C1 control characters, or with characters that change the text direction: every reader
reports them as a bad row or skips them; direction marks are allowed.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

import cocite
from cocite.errors import InputError
from tests.io.plain import links, nothing_left, read, titles_of
from tests.io.test_every_reader import HTML, LINKS, gexf, graphml, lock, notes, parquet, site, wiki
from tests.io.test_spreadsheet import workbook

BAD_CHARACTERS = {
    "\x80": "control character",
    "\x9b": "control character",
    "\u202e": r"U\+202E, which changes the text direction",
    "\u2066": r"U\+2066, which changes the text direction",
}
GOOD = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")]


class Family(NamedTuple):
    """A file ``name`` with :data:`GOOD` and one more link, to a given name: what writes it, the
    reader's name, and the place of that link in errors.
    """

    name: str
    write: Callable[[Path, str], object]
    reader: str
    place: str


def text(row: str, head: str = "", end: str = "") -> Callable[[Path, str], object]:
    def write(path: Path, name: str) -> None:
        rows = "".join(row.format(a, b) for a, b in [*GOOD, ("a", name)])
        path.write_bytes((head + rows + end).encode())

    return write


def dump(path: Path, name: str) -> None:
    insert = f"INSERT INTO `page` VALUES (4,0,'{name}',0);\n".encode()
    path.write_bytes(wiki(insert))


FAMILIES = {
    "text": Family("l.tsv", text("{}\t{}\n"), "text", r"l\.tsv:5: "),
    "csv": Family("l.csv", text('"{}","{}"\n'), "text", r"l\.csv:5: "),
    "parquet": Family(
        "l.parquet", lambda p, n: parquet([*GOOD, ("a", n)])(p), "parquet", r"l\.parquet:5: "
    ),
    "html": Family("site", lambda p, n: site(f"{n}.html")(p), "html", r"site:\d: "),
    "notes": Family("vault", lambda p, n: notes(f"{n}.md")(p), "notes", r"vault:\d: "),
    "mediawiki": Family("w.sql", dump, "mediawiki", r"w\.sql:9: "),
    "spreadsheet": Family(
        "l.xlsx",
        lambda p, n: workbook(p, links=[("source", "target"), *GOOD, ("a", n)]),
        "spreadsheet",
        r"l\.xlsx:6: ",
    ),
    "json-lines": Family("l.jsonl", text('["{}", "{}"]\n'), "json-lines", r"l\.jsonl:5: "),
    "adjacency": Family("l.adj", text("{}: {}\n"), "adjacency", r"l\.adj:5: "),
    "graphml": Family(
        "l.graphml",
        lambda p, n: p.write_text(graphml("</graph></graphml>", ["a", "b", "c", n]), "utf-8"),
        "graphml",
        r"l\.graphml:5: ",
    ),
    "gexf": Family(
        "l.gexf",
        lambda p, n: p.write_text(gexf("</edges></graph></gexf>", ["a", "b", "c", n]), "utf-8"),
        "gexf",
        r"l\.gexf:5: ",
    ),
    "packages": Family(
        "uv.lock",
        lambda p, n: p.write_text(lock({"a": ["b", "c", n], "b": ["c"], "c": ["a"], n: []})),
        "packages",
        r"uv\.lock",
    ),
}


def write_database(path: Path, rows: list[tuple[str, str]], connect: Any = sqlite3.connect) -> None:
    with closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE links (source VARCHAR, target VARCHAR)")
        connection.executemany("INSERT INTO links VALUES (?, ?)", rows)
        connection.commit()


DATABASES: dict[str, Callable[..., None]] = {
    "sqlite": write_database,
    "duckdb": partial(write_database, connect=duckdb.connect),
}
MEMORY = ("pairs", "pandas", "polars")
ALL_FAMILIES = [*FAMILIES, *DATABASES, *MEMORY]


def ingest_options(folder: Path, family: str, name: str) -> dict[str, Any]:
    """Options for ingest to read :data:`GOOD` and a link to ``name``."""
    rows = [*GOOD, ("a", name)]
    if family in FAMILIES:
        file, write, reader, _ = FAMILIES[family]
        write(folder / file, name)
        return {"inputs": folder / file, "input_format": reader}
    if family in DATABASES:
        DATABASES[family](folder / "x.db", rows)
        return {"database": str(folder / "x.db"), "table": "links"}
    if family == "pairs":
        return {"inputs": rows}
    sources, targets = zip(*rows, strict=True)
    frame = pytest.importorskip(family).DataFrame({"source": sources, "target": targets})
    return {"inputs": frame}


def expected_links(family: str) -> set[tuple[str, str]]:
    if family == "html":
        return {(HTML[a], HTML[b]) for a, b in LINKS}
    if family == "mediawiki":
        return {(a.upper(), b.upper()) for a, b in [("a", "b"), ("a", "c"), ("b", "c"), ("c", "a")]}
    return set(GOOD)


@pytest.mark.parametrize(
    ("family", "char"),
    [
        (family, char)
        for i, family in enumerate(ALL_FAMILIES)
        for char in ([*BAD_CHARACTERS] if family == "text" else [*BAD_CHARACTERS][i % 2 :: 2])
    ],
    ids=ascii,
)
def test_ingest_rejects_or_skips_control_characters(tmp_path: Path, family: str, char: str) -> None:
    options, output = ingest_options(tmp_path, family, f"x{char}y"), tmp_path / "out.graph"
    message = BAD_CHARACTERS[char].split(",")[-1] if family == "mediawiki" else BAD_CHARACTERS[char]
    message = message.removeprefix(" which changes the text ")
    place = "row 4 .*its target has " if family in MEMORY else ""
    place = FAMILIES[family].place if family in FAMILIES else place
    with pytest.raises(InputError, match=rf"(?s){place}.*{message}") as caught:
        cocite.ingest(output=output, **options)
    assert char not in str(caught.value)
    assert nothing_left(tmp_path)
    graph = cocite.ingest(output=output, bad_rows="few", **options)
    assert set(links(graph)) == expected_links(family)
    assert not [name for name in graph.names if char in name]
    bad = graph.info().bad_rows
    assert bad >= 1 if family in FAMILIES else bad == 1
    assert cocite.verify(output).faults == []


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_ingest_keeps_direction_marks_and_joiners(tmp_path: Path, family: str) -> None:
    name = "x\u200e\u200f\u061c\u200c\u200dy\xa0z"
    graph = cocite.ingest(output=tmp_path / "out.graph", **ingest_options(tmp_path, family, name))
    assert any("\u200e\u200f\u061c\u200c\u200d" in name for name in graph.names)


def test_common_crawl_rejects_control_characters(tmp_path: Path) -> None:
    """Also if bad rows are skipped: edges need their vertices."""
    (tmp_path / "web-vertices.txt").write_text("0\torg.a\n1\torg.\u202eb\n", "utf-8")
    (tmp_path / "web-edges.txt").write_text("0\t1\n")
    edges = tmp_path / "web-edges.txt"
    for bad_rows in ("stop", "few"):
        with pytest.raises(InputError, match=r"web-vertices\.txt:2: a name with U\+202E"):
            cocite.ingest(edges, tmp_path / "g", input_format="common-crawl", bad_rows=bad_rows)


def test_parquet_reader_rejects_control_characters_in_any_file(tmp_path: Path) -> None:
    char = "\x80"
    for number in range(4):
        parquet([*GOOD, *([("a", f"x{char}")] * (number == 2))])(tmp_path / f"{number}.parquet")
    files = sorted(tmp_path.glob("*.parquet"))
    with pytest.raises(InputError, match=rf"2\.parquet:5: .*{BAD_CHARACTERS[char]}"):
        cocite.ingest(files, tmp_path / "g")
    graph = cocite.ingest(files, tmp_path / "g", bad_rows="few")
    assert set(links(graph)) == set(GOOD)
    assert graph.info().bad_rows == 1


def test_titles_and_labels_drop_control_characters(tmp_path: Path) -> None:
    """Only those characters: the rest of the text stays."""
    (tmp_path / "t.tsv").write_text("a\tx\u202ey\x9bz \u2066\nb\t\u202c\n", "utf-8")
    graph = read(tmp_path, "a\tb\n", titles=tmp_path / "t.tsv")
    assert titles_of(graph) == ["x y z", None]
    path = tmp_path / "l.gml"
    nodes = 'node [ id 0 label "A&#8238;lef" ]\nnode [ id 1 label "Bet" ]\n'
    path.write_text(f"graph [\ndirected 1\n{nodes}edge [ source 0 target 1 ]\n]\n")
    assert sorted(cocite.ingest(path, tmp_path / "of.gml").names) == ["Alef", "Bet"]


# -- blanks around names ---------------------------------------------------------------------

FIELDS = {"text", "adjacency"}
"""Formats that allow blanks around fields."""
NAMED = [
    family for family in ALL_FAMILIES if family not in ("html", "notes", "mediawiki", "packages")
]
MERGED = "1 name differed from other names only in leading or trailing blanks"


@pytest.mark.parametrize(
    ("family", "blanks"),
    [*((family, "  c  ") for family in NAMED), ("pairs", "c "), ("pairs", " c")],
)
def test_ingest_strips_blanks_around_names(
    tmp_path: Path, family: str, blanks: str, caplog: pytest.LogCaptureFixture
) -> None:
    graph = cocite.ingest(output=tmp_path / "out.graph", **ingest_options(tmp_path, family, blanks))
    assert set(links(graph)) == set(GOOD)
    assert graph.names.id(blanks) == graph.names.id("c")
    assert (MERGED in caplog.text) == (family not in FIELDS)
    assert graph.store.facts.get("merged_names", 0) == (family not in FIELDS)


def test_ingest_strips_harmless_blanks_silently(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_database(tmp_path / "x.db", [("a ", " b "), (" b ", "a "), ("a ", "\u3000c\xa0")])
    graph = cocite.ingest(
        output=tmp_path / "g",
        database=str(tmp_path / "x.db"),
        exclude_nodes=[" b"],
        titles=Path(tmp_path / "x.db"),
    )
    assert set(links(graph)) == {("a", "\u3000c\xa0")}
    assert "blanks" not in caplog.text
    write_database(tmp_path / "y.db", [("a ", " b "), (" a", "b")])
    graph = cocite.ingest(output=tmp_path / "h", database=str(tmp_path / "y.db"))
    assert graph.store.facts["merged_names"] == 2


@pytest.mark.parametrize("family", [family for family in NAMED if family != "adjacency"])
def test_ingest_rejects_blank_names(tmp_path: Path, family: str) -> None:
    """In an adjacency list: a page without links."""
    options = ingest_options(tmp_path, family, "  ")
    with pytest.raises(InputError, match=r"empty|name of blanks|not 2 tab"):
        cocite.ingest(output=tmp_path / "g", **options)
    graph = cocite.ingest(output=tmp_path / "g", bad_rows="few", **options)
    assert set(links(graph)) == set(GOOD)
