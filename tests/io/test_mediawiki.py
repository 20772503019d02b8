"""MediaWiki dumps: hand-made tables in the old and new schemas."""

import bz2
import csv
import gzip
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite import Graph
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.io.readers import wiki as wiki_tables
from cocite.kernels import sql_rows
from tests.conftest import Shell
from tests.io.plain import graph_of, links, nothing_left, source_of, title_of

COLUMNS = {
    "page": "page_id page_namespace page_title page_is_redirect page_random page_lang",
    "linktarget": "lt_id lt_namespace lt_title",
    "redirect": "rd_from rd_namespace rd_title rd_interwiki rd_fragment",
    "pagelinks": "pl_from pl_from_namespace pl_target_id",
    "old": "pl_from pl_namespace pl_title pl_from_namespace",
    "both": "pl_from pl_namespace pl_title pl_from_namespace pl_target_id",
}
Row = Sequence[int | str | bytes | float | None]

PAGES: list[Row] = [
    (1, 0, "Bird", 0, 0.1, None),
    (2, 0, 'O\'Hare_\\_"x"_(a),(b);', 0, 0.25, "en"),
    (3, 0, "Fowl", 1, 0.3, None),
    (4, 0, "Birdie", 1, 0.4, None),
    (5, 14, "Birds", 0, 1e-05, None),
    (6, 0, "Loop1", 1, 0.6, None),
    (7, 0, "Loop2", 1, 0.7, None),
    (8, 0, "Away", 1, 0.8, None),
    (9, 0, "Ähre", 0, 0.9, None),
    (10, 2, "Alone", 0, 0.9, None),
    (11, 0, "Gone", 1, 0.9, None),
]
REDIRECTS: list[Row] = [
    (3, 0, "Birdie", "", ""),
    (4, 0, "Bird", None, "Flight"),
    (6, 0, "Loop2", "", ""),
    (7, 0, "Loop1", "", ""),
    (8, 0, "Bird", "de", ""),
    (11, 0, "Nowhere", "", ""),
]
TARGETS: list[tuple[int, str]] = [
    *((0, "Bird"), (0, 'O\'Hare_\\_"x"_(a),(b);'), (0, "Fowl"), (0, "Birdie"), (14, "Birds")),
    *((0, "Loop1"), (0, "Away"), (0, "Ähre"), (0, "No_such"), (0, "Gone"), (4, "No_such")),
]
LINKS: list[tuple[int, int]] = [
    *((1, 2), (1, 8), (2, 3), (2, 1), (2, 4), (9, 3), (9, 9), (9, 11), (2, 9), (1, 5)),
    *((9, 6), (9, 7), (9, 10), (3, 1), (5, 1), (9, 5), (1, 4)),
]
HARE = 'O\'Hare_\\_"x"_(a),(b);'
EXPECTED = {("Bird", HARE), ("Bird", "Ähre"), (HARE, "Bird"), ("Ähre", "Bird")}


def sql_value(cell: int | str | bytes | float | None) -> bytes:
    if cell is None:
        return b"NULL"
    if not isinstance(cell, str | bytes):
        return repr(cell).encode()
    raw = cell.encode() if isinstance(cell, str) else cell
    for letter, escaped in ((b"\\", b"\\\\"), (b"'", b"\\'"), (b'"', b'\\"'), (b"\n", b"\\n")):
        raw = raw.replace(letter, escaped)
    return b"'" + raw + b"'"


def dump(table: str, rows: Sequence[Row], form: str = "", per: int = 4) -> bytes:
    """A table as mysqldump writes it."""
    columns = COLUMNS[form or table].split()
    kinds = "".join(f"  `{name}` varbinary(255) NOT NULL DEFAULT '',\n" for name in columns)
    text = (
        f"-- MariaDB dump 10.19  Distrib 10.5.23\n--\n/*!40101 SET NAMES utf8mb4 */;\n\n"
        f"DROP TABLE IF EXISTS `{table}`;\n/*!40101 SET character_set_client = utf8 */;\n"
        f"CREATE TABLE `{table}` (\n{kinds}  PRIMARY KEY (`{columns[0]}`),\n  KEY `x` (`y`)\n"
        ") ENGINE=InnoDB DEFAULT CHARSET=binary;\n\n--\n-- Dumping data\n--\n\n"
        f"/*!40000 ALTER TABLE `{table}` DISABLE KEYS */;\n"
    ).encode()
    for low in range(0, len(rows), per):
        tuples = [b"(" + b",".join(map(sql_value, row)) + b")" for row in rows[low : low + per]]
        text += f"INSERT INTO `{table}` VALUES ".encode() + b",".join(tuples) + b";\n"
    return text + b"/*!40000 ALTER TABLE `x` ENABLE KEYS */;\n\n-- Dump completed\n"


def tables(form: str = "pagelinks") -> dict[str, bytes]:
    named = [(a, *TARGETS[b - 1]) for a, b in LINKS]
    rows: dict[str, list[Row]] = {
        "pagelinks": [(a, 0, b) for a, b in LINKS],
        "old": [(a, ns, title, 0) for a, ns, title in named],
        "both": [(a, 0, "", 0, b) for a, b in LINKS],
    }
    found = {
        "page": dump("page", PAGES),
        "redirect": dump("redirect", REDIRECTS),
        "pagelinks": dump("pagelinks", rows[form], form),
    }
    if form != "old":
        found["linktarget"] = dump("linktarget", [(i, *t) for i, t in enumerate(TARGETS, 1)])
    return found


def write_dumps(
    folder: Path, files: Mapping[str, bytes], pack: Callable[[bytes], bytes] = gzip.compress
) -> dict[str, Path]:
    end = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(pack, "")
    paths = {name: folder / f"xxwiki-20260101-{name}.sql{end}" for name in files}
    for name, content in files.items():
        paths[name].write_bytes(pack(content))
    return paths


def read(path: Path | list[Path], **options: Any) -> tuple[Graph, dict[str, Any]]:
    graph = graph_of(path, **options)
    return graph, source_of(graph)


@pytest.mark.parametrize(
    ("form", "pack"), [("pagelinks", gzip.compress), ("old", bz2.compress), ("both", bytes)]
)
def test_mediawiki_follows_redirects(
    tmp_path: Path, form: str, pack: Callable[[bytes], bytes]
) -> None:
    paths = write_dumps(tmp_path, tables(form), pack)
    graph, source = read(paths["pagelinks"], keep_self_loops=True)
    assert set(links(graph)) == EXPECTED | {("Bird", "Bird")}
    assert sorted(graph.names) == ["Bird", HARE, "Ähre"]
    assert title_of(graph, HARE) == HARE.replace("_", " ")
    assert source["others"] == {
        "broken (red)": 3,
        "from redirects and other namespaces": 2,
        "to other namespaces": 2,
        "to redirects that lead nowhere": 3,
    }
    assert (source["pages"], source["redirects"], source["files"]) == (3, 6, 3 + (form != "old"))


def test_mediawiki_accepts_one_or_all_files(tmp_path: Path) -> None:
    paths = write_dumps(tmp_path, tables())
    for name in ("linktarget", "redirect"):  # other tests read from the others
        assert set(links(read(paths[name])[0])) == EXPECTED
    graph, source = read(sorted(paths.values()))
    assert set(links(graph)) == EXPECTED
    assert source["files"] == 4
    assert "xxwiki-20260101-linktarget.sql.gz and 3 more: 3 pages of a wiki" in source["read_as"]
    whole = tmp_path / "whole.sql"
    content = b"".join(tables().values()).replace(b"`page`", b"`mw_page`")
    whole.write_bytes(dump("old", [(1, 2, "x", 3)]).replace(b"`old`", b"`other`") + content)
    assert set(links(read(whole)[0])) == EXPECTED


def test_mediawiki_namespaces_selects_pages(tmp_path: Path) -> None:
    path = write_dumps(tmp_path, tables())["page"]
    graph, source = read(path, namespaces="0,14,2")
    assert set(links(graph)) == EXPECTED | {
        *(("Bird", "Category:Birds"), ("Ähre", "Category:Birds"), ("Category:Birds", "Bird"))
    }
    assert sorted(graph.names) == ["Bird", "Category:Birds", HARE, "User:Alone", "Ähre"]
    assert "namespaces 0, 14, 2" in source["read_as"]
    assert read(path, namespaces=[14, 0])[0].nodes == 4
    for invalid in ("x", "-1", "", "0,1.5"):
        with pytest.raises(UsageError, match="namespaces"):
            read(path, namespaces=invalid)


def test_mediawiki_report_lists_red_links(tmp_path: Path) -> None:
    path = write_dumps(tmp_path, tables())["page"]
    read(path, report=tmp_path / "red.tsv")
    with (tmp_path / "red.tsv").open() as file:
        assert list(csv.reader(file, delimiter="\t"))[1:] == [
            [HARE, "broken", "No_such", ""],
            ["Ähre", "broken", "No_such", ""],
            ["Ähre", "broken", "Project:No_such", ""],
        ]


@pytest.mark.parametrize("missing", ["page", "redirect", "linktarget", "pagelinks"])
def test_mediawiki_reports_missing_table(tmp_path: Path, missing: str) -> None:
    files = tables()
    files.pop(missing)
    paths = write_dumps(tmp_path, files)
    with pytest.raises(
        InputError, match=rf"the table {missing} is needed, but xxwiki-20260101-{missing}"
    ):
        read(next(iter(paths.values())))
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("piece", [7, 64])
def test_mediawiki_is_independent_of_piece_size(
    tmp_path: Path, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiki_tables, "_PIECE", piece)
    assert set(links(read(write_dumps(tmp_path, tables())["page"])[0])) == EXPECTED


_NO_MATCH = "a row that does not match the columns of its table"
BAD: list[tuple[bytes, str, str]] = [
    (b"(12,0,'A\\tb',0,0.1,NULL)", "a control character in a name", "a control character"),
    (b"(12,0,'A\xff',0,0.1,NULL)", "bytes that are not UTF-8", "bytes that are not"),
    (b"(x,0,'A',0,0.1,NULL)", "not a whole number", "not a whole number"),
    (b"(NULL,0,'A',0,0.1,NULL", _NO_MATCH, "a row that does not match"),
    (b"(12,0,'A')", _NO_MATCH, "a row that does not match"),
    (b"(12,0,'A',0,0.1,NULL,7)", _NO_MATCH, "a row that does not match"),
    (b"junk", _NO_MATCH, "a row that does not match"),
]


@pytest.mark.parametrize(("row", "kind", "message"), BAD)
def test_mediawiki_reports_place_of_bad_row(
    tmp_path: Path, row: bytes, kind: str, message: str
) -> None:
    files = tables()
    more = b"INSERT INTO `page` VALUES " + row + b",(13,0,'C',0,0.1,NULL);\n"
    files["page"] = files["page"].replace(b"INSERT", more + b"INSERT", 1)
    path = write_dumps(tmp_path, files)["page"]
    line = files["page"][: files["page"].index(row)].count(b"\n") + 1
    with pytest.raises(MalformedRow, match=rf"page\.sql\.gz:{line}: {message}") as caught:
        read(path)
    assert caught.value.line == line
    graph, source = read(path, bad_rows="few")
    assert source["bad_rows"] == {kind: 1}
    assert set(links(graph)) == EXPECTED
    assert ("C" in graph.names) == (kind != _NO_MATCH)


def test_mediawiki_refuses_truncated_dump(tmp_path: Path) -> None:
    paths = write_dumps(tmp_path, tables(), bytes)
    content = paths["page"].read_bytes()
    for cut, message in (
        (content.index(b"Birds"), r"page\.sql:\d+: the file ends within a row"),
        (content.index(b"page_lang"), r"page\.sql:\d+: the statement that creates the table page"),
    ):
        paths["page"].write_bytes(content[:cut])
        with pytest.raises(InputError, match=message):
            read(paths["pagelinks"])
    paths["page"].write_bytes(content[content.index(b"INSERT") :])
    with pytest.raises(InputError, match="no CREATE TABLE with the columns of page"):
        read(paths["pagelinks"])
    packed = gzip.compress(content)
    paths["page"].write_bytes(packed[:-20])
    with pytest.raises(InputError, match=r"page\.sql cannot be read beyond line \d+: it is tr"):
        read(paths["pagelinks"])
    assert nothing_left(tmp_path)


def test_mediawiki_refuses_dumps_of_two_wikis(tmp_path: Path) -> None:
    paths = write_dumps(tmp_path, tables())
    other = tmp_path / "yywiki-page.sql.gz"
    other.write_bytes(gzip.compress(tables()["page"]))
    with pytest.raises(InputError, match="page 1 occurs more than once"):
        read([paths["page"], other])
    old_schema = tmp_path / "zz-pagelinks.sql"
    old_schema.write_bytes(tables("old")["pagelinks"])
    with pytest.raises(InputError, match=r"pagelinks has the columns .*; in other files it has"):
        read([paths["pagelinks"], old_schema])


def test_mediawiki_refuses_unknown_columns(tmp_path: Path) -> None:
    files = tables()
    files["redirect"] = files["redirect"].replace(b"`rd_title`", b"`rd_name`")
    path = write_dumps(tmp_path, files)["page"]
    with pytest.raises(InputError, match="the table redirect has no column rd_title"):
        read(path)


def test_mediawiki_reads_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    whole = gzip.compress(b"".join(tables().values()))
    thread = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(whole,))
    thread.start()
    assert set(links(read(tmp_path / "fifo")[0])) == EXPECTED
    thread.join()


def test_ingest_command_reads_mediawiki_dump(tmp_path: Path, shell: Shell) -> None:
    path = write_dumps(tmp_path, tables())["pagelinks"]
    options = ["--namespaces", "0,14", "--input-format", "mediawiki"]
    printed = shell(["ingest", path, "-o", tmp_path / "g", *options])
    assert "4 pages of a wiki, namespaces 0, 14, 6 redirects; " in printed.err
    xml = tmp_path / "pages.xml"
    xml.write_text("<mediawiki xmlns='x'><page></page></mediawiki>")
    with pytest.raises(UnrecognizedInput, match="page, pagelinks, linktarget and redirect"):
        read(xml)


def rows_of(text: bytes, take: Sequence[int]) -> tuple[bytes, int, list[int]]:
    kinds = np.array(take, np.uint8)
    out = np.zeros(len(text) + kinds.size, np.uint8)
    tally = np.zeros(sql_rows.TALLY, np.int64)
    bad = np.zeros((2, sql_rows.BAD_FIELDS), np.int64)
    end = sql_rows.rows(np.frombuffer(text, np.uint8), kinds, out, bad, tally)
    return out[: tally[sql_rows.T_BYTES]].tobytes(), int(end), tally.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"(1,'a'),(2,'b');", b"1\ta\n2\tb\n"),
        (b" ( 1 , 'a' ) ,\n( 2 , '' ) ; ", b"1\ta\n2\t\n"),
        (b"(1,'it''s \\'x\\' \\\\ \\% \\\"');", b"1\tit's 'x' \\ % \"\n"),
        (b"(1,0x41c3a4),(2,_binary '\\),(');", b"1\tA\xc3\xa4\n2\t),(\n"),
        (b"(NULL,NULL);", b"0\t\n"),
        (b"(-3,'\xf0\x9f\x90\xa6');", b"-3\t\xf0\x9f\x90\xa6\n"),
    ],
)
def test_sql_rows_parses_mysql_values(text: bytes, expected: bytes) -> None:
    found, end, tally = rows_of(text, [sql_rows.INTEGER, sql_rows.TEXT])
    assert found == expected
    assert end == len(text.rstrip())
    assert tally[sql_rows.T_STATE] == sql_rows.ENDED
    for cut in range(len(text.rstrip())):
        first, end, tally = rows_of(text[:cut], [sql_rows.INTEGER, sql_rows.TEXT])
        assert expected.startswith(first)
        assert tally[sql_rows.T_STATE] == sql_rows.MORE
        rest, _, _ = rows_of(text[end:], [sql_rows.INTEGER, sql_rows.TEXT])
        assert first + rest == expected
