"""Spreadsheets: handmade workbooks are read like text, and errors name the place."""

import random
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

import cocite
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.extras import MissingLibrary
from cocite.io.readers import sources
from tests.io.plain import links, source_of, weights_of

pytest.importorskip("python_calamine")

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

Cell = str | float | None


def cell(column: int, row: int, value: Cell) -> str:
    reference = f"{chr(ord('A') + column)}{row}"
    if value is None:
        return ""
    if isinstance(value, str):
        text = f'<is><t xml:space="preserve">{escape(value)}</t></is>'
        return f'<c r="{reference}" t="inlineStr">{text}</c>'
    return f'<c r="{reference}"><v>{value}</v></c>'


def workbook(path: Path, first: int = 1, **sheets: list[tuple[Cell, ...]]) -> Path:
    """An .xlsx file with these sheets, whose rows begin at row ``first``."""
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
            target = f"worksheets/sheet{number}.xml"
            rels += f'<Relationship Id="rId{number}" Type="{_OFFICE}/worksheet" Target="{target}"/>'
            kind = f'ContentType="{_TYPE}.worksheet+xml"'
            types += f'<Override PartName="/xl/{target}" {kind}/>'
        rels_type = "application/vnd.openxmlformats-package.relationships+xml"
        for member, text in {
            "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{book}'
            "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{rels}'
            "</Relationships>",
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension='
            f'"rels" ContentType="{rels_type}"/><Override PartName="/xl/workbook.xml" '
            f'ContentType="{_TYPE}.sheet.main+xml"/>{types}</Types>',
        }.items():
            archive.writestr(member, text)
    return path


ROWS: list[tuple[Cell, ...]] = [
    ("id", "Source", "Target", "Weight"),
    (1, "a, b", 'c "d"', 2),
    (None, None, None, None),
    (2, 'c "d"', "two\nlines", 0.5),
    (3, "two\nlines", "a, b", 1),
]


def test_spreadsheet_reader_uses_header(tmp_path: Path) -> None:
    file = workbook(tmp_path / "links.xlsx", Links=ROWS, Empty=[])
    graph = cocite.ingest(file, tmp_path / "g", weight_column="Weight")
    a, c, two = "a, b", 'c "d"', "two lines"
    assert weights_of(graph) == {(a, c): 2, (c, two): 0.5, (two, a): 1}
    begin = "links.xlsx: the sheet 'Links' of a spreadsheet, a header"
    assert source_of(graph)["read_as"].startswith(begin)


def test_spreadsheet_reader_keeps_integers(tmp_path: Path) -> None:
    file = workbook(tmp_path / "links.xlsx", Sheet=[(0, 1), (1, 2), (2, 0)])
    graph = cocite.ingest(file, tmp_path / "g")
    assert graph.info().names == "integers 0 to n - 1"
    assert links(graph) == [("2", "0"), ("0", "1"), ("1", "2")]


def test_sheet_option_selects_sheet(tmp_path: Path) -> None:
    file = workbook(tmp_path / "x.xlsx", Pages=[("a", "A"), ("b", "B")], Links=[("a", "b")])
    with pytest.raises(
        UnrecognizedInput, match=r"x\.xlsx has 2 sheets with rows: 'Pages', 'Links'\. Choose"
    ):
        cocite.ingest(file, tmp_path / "g")
    with pytest.raises(UsageError, match=r"x\.xlsx has no sheet 'links'; it has 'Pages', 'Links'"):
        cocite.ingest(file, tmp_path / "g", sheet="links")
    for unknown in ("\0", "x" * 300_000):
        with pytest.raises(UsageError, match=r"x\.xlsx has no sheet '"):
            cocite.ingest(file, tmp_path / "g", sheet=unknown)
    assert links(cocite.ingest(file, tmp_path / "g", sheet="Links")) == [("a", "b")]
    with pytest.raises(UnrecognizedInput, match="has only empty sheets: 'A', 'B'"):
        cocite.ingest(workbook(tmp_path / "y.xlsx", A=[], B=[]), tmp_path / "h")


@pytest.mark.parametrize("first", [1, 5])
def test_spreadsheet_reader_reports_row_number(first: int, tmp_path: Path) -> None:
    rows: list[tuple[Cell, ...]] = [("a", "b"), ("b", "c"), (None, None), ("c", None), ("d", "a")]
    file = workbook(tmp_path / "x.xlsx", first, Sheet=rows)
    with pytest.raises(MalformedRow, match=rf"x\.xlsx:{first + 3}: an empty name"):
        cocite.ingest(file, tmp_path / "g")
    assert not list(tmp_path.glob("g*"))
    graph = cocite.ingest(file, tmp_path / "g", bad_rows="few")
    assert graph.edges == 3


def test_spreadsheet_reader_reports_damaged_file(tmp_path: Path) -> None:
    file = workbook(tmp_path / "x.xlsx", Sheet=[("a", "b")])
    original = file.read_bytes()
    for content in (
        original[:-30],
        original[: len(original) // 2],
        original.replace(b"tData", b"tDate"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.xlsx "):
            cocite.ingest(file, tmp_path / "g")
    old = tmp_path / "x.xls"
    old.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(InputError, match=r"x\.xls cannot be read as a spreadsheet"):
        cocite.ingest(old, tmp_path / "g")
    assert not list(tmp_path.glob("g*"))


def test_spreadsheet_reader_requires_calamine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workbook(tmp_path / "x.xlsx", Sheet=[("a", "b")])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingLibrary, match=r"a spreadsheet needs python-calamine.*\[excel\]"):
        cocite.ingest(file, tmp_path / "g")


def sparse_workbook(path: Path, last: str = "XFD1048576") -> Path:
    """A workbook whose sheet Far extends to the cell ``last``."""
    workbook(path, Near=[("a", "b")], Far=[("a", "b")])
    return changed(path, "xl/worksheets/sheet2.xml", 'r="B1"', f'r="{last}"')


def changed(path: Path, member: str, old: str, new: str) -> Path:
    """The workbook with text replaced in a member."""
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert old in texts[member]
    texts[member] = texts[member].replace(old, new, 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


def ods(path: Path, cells: str) -> Path:
    """An .ods file with one row of these cells."""
    office = "urn:oasis:names:tc:opendocument:xmlns"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr(
            "META-INF/manifest.xml",
            f'<m:manifest xmlns:m="{office}:manifest:1.0"><m:file-entry m:full-path="/" '
            f'm:media-type="{kind}"/></m:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{office}:office:1.0" '
            f'xmlns:table="{office}:table:1.0" xmlns:text="{office}:text:1.0"><office:body>'
            f'<office:spreadsheet><table:table table:name="S"><table:table-row>{cells}'
            "</table:table-row></table:table></office:spreadsheet></office:body>"
            "</office:document-content>",
        )
    return path


MANY = 20_000_000
TOO_LARGE = r"takes more than [0-9.]+ MB of memory.*200 times.*save the sheet as CSV"


@pytest.mark.parametrize("sheet", ["", "Far"])
def test_spreadsheet_reader_rejects_huge_sheet(tmp_path: Path, sheet: str) -> None:
    file = sparse_workbook(tmp_path / "x.xlsx")
    with pytest.raises(InputError, match=rf"^the sheet 'Far' of .*x\.xlsx {TOO_LARGE}"):
        cocite.ingest(file, tmp_path / "g", sheet=sheet)
    assert links(cocite.ingest(file, tmp_path / "h", sheet="Near")) == [("a", "b")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h", "x.xlsx"]


@pytest.mark.parametrize(
    ("true_size", "message"),
    [(True, TOO_LARGE), (False, f"{TOO_LARGE}|cannot be read as a spreadsheet")],
)
def test_spreadsheet_reader_rejects_huge_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, true_size: bool, message: str
) -> None:
    """With a limit of 17 MB, not 268 MB; also if the archive claims another size."""
    monkeypatch.setattr(sources, "ALWAYS_UNPACKED", 1 << 24)
    sheet = "xl/worksheets/sheet1.xml"
    file = changed(workbook(tmp_path / "x.xlsx", S=[("a", "b")]), sheet, ">a<", f">{'a' * MANY}<")
    if not true_size:
        content = file.read_bytes()
        with zipfile.ZipFile(file) as archive:
            size = archive.getinfo(sheet).file_size.to_bytes(4, "little")
        assert content.count(size) == 2
        file.write_bytes(content.replace(size, (99).to_bytes(4, "little")))
    with pytest.raises(InputError, match=rf"x\.xlsx ({message})"):
        cocite.ingest(file, tmp_path / "g")
    assert [path.name for path in tmp_path.iterdir()] == ["x.xlsx"]


def test_spreadsheet_reader_limits_repeated_ods_cells(tmp_path: Path) -> None:
    a, b = (
        f'<table:table-cell office:value-type="string"{{}}><text:p>{name}</text:p>'
        "</table:table-cell>"
        for name in "ab"
    )
    file = ods(tmp_path / "x.ods", a.format("") + b.format(""))
    assert links(cocite.ingest(file, tmp_path / "g")) == [("a", "b")]
    row = a.format("") + b.format(' table:number-columns-repeated="16000"')
    next_row = '</table:table-row><table:table-row table:number-rows-repeated="5000">'
    file = ods(tmp_path / "y.ods", row + next_row + row)
    with pytest.raises(InputError, match=rf"y\.ods {TOO_LARGE}"):
        cocite.ingest(file, tmp_path / "h")


def test_spreadsheet_reader_obeys_memory_limit(tmp_path: Path) -> None:
    """The limit is 400 MB, not 800 MB."""
    file = sparse_workbook(tmp_path / "x.xlsx")
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("xl/media/picture.png", random.Random(1).randbytes(4_000_000))
    with pytest.raises(InputError, match=r"'Far' of .* takes more than 400 MB of memory"):
        cocite.ingest(file, tmp_path / "g", sheet="Far", memory="400MB")


def test_spreadsheet_reader_reads_sparse_sheet(tmp_path: Path) -> None:
    file = sparse_workbook(tmp_path / "x.xlsx", "Z20000")
    with pytest.raises(MalformedRow, match=r"x\.xlsx:1: an empty name"):
        cocite.ingest(file, tmp_path / "g", sheet="Far")


def test_spreadsheet_reader_reports_failed_subprocess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "python_calamine.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path / "bad")
    with pytest.raises(InputError, match=r"x\.xlsx cannot be read .* failed with exit code 1$"):
        cocite.ingest(workbook(tmp_path / "x.xlsx", S=[("a", "b")]), tmp_path / "g")
