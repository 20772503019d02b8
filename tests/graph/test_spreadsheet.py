"""Spreadsheets: hand-made workbooks, read as texts are, and named where they are wrong."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

import cocite
from cocite.errors import InputError, MalformedRow, NotLinks, UsageError
from cocite.extras import MissingLibrary
from tests.graph.plain import links

pytest.importorskip("python_calamine")

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

Cell = str | float | None


def cell(column: int, row: int, value: Cell) -> str:
    place = f"{chr(ord('A') + column)}{row}"
    if value is None:
        return ""
    if isinstance(value, str):
        text = f'<is><t xml:space="preserve">{escape(value)}</t></is>'
        return f'<c r="{place}" t="inlineStr">{text}</c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def workbook(path: Path, first: int = 1, **sheets: list[tuple[Cell, ...]]) -> Path:
    """An .xlsx file with sheets of rows, which begin in the row ``first``."""
    sheet, book, rels, types = "", "", "", ""
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, rows) in enumerate(sheets.items(), 1):
            lines = "".join(
                f'<row r="{i}">{"".join(cell(c, i, value) for c, value in enumerate(row))}</row>'
                for i, row in enumerate(rows, first)
            )
            sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
            archive.writestr(f"xl/worksheets/sheet{number}.xml", sheet)
            book += f'<sheet name="{name}" sheetId="{number}" r:id="rId{number}"/>'
            rels += f'<Relationship Id="rId{number}" Type="{_OFFICE}/worksheet" '
            rels += f'Target="worksheets/sheet{number}.xml"/>'
            types += f'<Override PartName="/xl/worksheets/sheet{number}.xml" '
            types += f'ContentType="{_TYPE}.worksheet+xml"/>'
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{book}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships">{rels}</Relationships>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName='
            f'"/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>{types}</Types>',
        )
    return path


ROWS: list[tuple[Cell, ...]] = [
    ("id", "Source", "Target", "Weight"),
    (1, "a, b", 'c "d"', 2),
    (None, None, None, None),
    (2, 'c "d"', "two\nlines", 0.5),
    (3, "two\nlines", "a, b", 1),
]


def test_a_sheet_is_read_by_its_titles(tmp_path: Path) -> None:
    file = workbook(tmp_path / "links.xlsx", Links=ROWS, Empty=[])
    graph = cocite.ingest(file, tmp_path / "g", weight_column="Weight")
    assert sorted(links(graph)) == [
        ("a, b", 'c "d"'),
        ('c "d"', "two lines"),
        ("two lines", "a, b"),
    ]
    assert graph.in_weights is not None
    assert sorted(graph.in_weights.tolist()) == [0.5, 1.0, 2.0]
    (source,) = graph.store.facts["sources"]
    assert source["read_as"].startswith("links.xlsx: the sheet 'Links' of a spreadsheet, a header")


def test_whole_numbers_are_whole_numbers(tmp_path: Path) -> None:
    file = workbook(tmp_path / "links.xlsx", Sheet=[(0, 1), (1, 2), (2, 0)])
    graph = cocite.ingest(file, tmp_path / "g")
    assert graph.info().names == "integers 0 to n - 1"
    assert links(graph) == [("2", "0"), ("0", "1"), ("1", "2")]


def test_of_several_sheets_one_is_named(tmp_path: Path) -> None:
    file = workbook(tmp_path / "x.xlsx", Pages=[("a", "A"), ("b", "B")], Links=[("a", "b")])
    with pytest.raises(NotLinks, match=r"x\.xlsx has 2 sheets with rows: 'Pages', 'Links'\. Say"):
        cocite.ingest(file, tmp_path / "g")
    with pytest.raises(UsageError, match=r"x\.xlsx has no sheet 'links'; it has 'Pages', 'Links'"):
        cocite.ingest(file, tmp_path / "g", sheet="links")
    assert links(cocite.ingest(file, tmp_path / "g", sheet="Links")) == [("a", "b")]
    with pytest.raises(NotLinks, match="has only empty sheets: 'A', 'B'"):
        cocite.ingest(workbook(tmp_path / "y.xlsx", A=[], B=[]), tmp_path / "h")


@pytest.mark.parametrize("first", [1, 5])
def test_a_bad_row_is_named_by_its_number_in_the_sheet(first: int, tmp_path: Path) -> None:
    rows: list[tuple[Cell, ...]] = [("a", "b"), ("b", "c"), (None, None), ("c", None), ("d", "a")]
    file = workbook(tmp_path / "x.xlsx", first, Sheet=rows)
    with pytest.raises(MalformedRow, match=rf"x\.xlsx:{first + 3}: an empty name"):
        cocite.ingest(file, tmp_path / "g")
    assert not list(tmp_path.glob("g*"))
    graph = cocite.ingest(file, tmp_path / "g", skip_bad_rows=True)
    assert graph.edges == 3


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file = workbook(tmp_path / "x.xlsx", Sheet=[("a", "b")])
    whole = file.read_bytes()
    for content in (
        whole[:-30],
        whole[: len(whole) // 2],
        whole.replace(b"sheetData", b"sheetDate"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.xlsx "):
            cocite.ingest(file, tmp_path / "g")
    old = tmp_path / "x.xls"
    old.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(InputError, match=r"x\.xls cannot be read as a spreadsheet"):
        cocite.ingest(old, tmp_path / "g")
    assert not list(tmp_path.glob("g*"))


def test_what_reads_them_is_named_when_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workbook(tmp_path / "x.xlsx", Sheet=[("a", "b")])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingLibrary, match=r"a spreadsheet needs python-calamine.*\[excel\]"):
        cocite.ingest(file, tmp_path / "g")
