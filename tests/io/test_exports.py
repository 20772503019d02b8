"""Exports of spreadsheets: UTF-16, semicolons, quoted line breaks, and Excel's ``sep=`` line."""

import csv
import gzip
import io
import subprocess
import sys
from pathlib import Path

import pytest

from cocite import Graph
from cocite.errors import MalformedRow
from tests.io.plain import cleaned, links, refused

ROWS = [("Köln", "Zürich"), ("Zürich", "A; B, C"), ("日本", "Köln"), ("\U0001f600", 'say "hi"')]


def export(delimiter: str, end: str, text: str = 'x\r\ny; "z"') -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["Nr", "Source", "Target", "Te\nxt"])
    writer.writerows([(i, *row, text) for i, row in enumerate(ROWS)])
    return out.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("delimiter", "end"), [(";", "\r\n"), (",", "\n"), (";", "\r")])
def test_csv_reads_spreadsheet_exports(
    tmp_path: Path, encoding: str, delimiter: str, end: str
) -> None:
    content = export(delimiter, end).encode(encoding)
    for data in (content, gzip.compress(content)):
        assert cleaned(tmp_path, data, "x.csv")[0] == ROWS


def test_utf16_tsv_honors_quotes(tmp_path: Path) -> None:
    content = export("\t", "\r\n").encode("utf-16")
    assert cleaned(tmp_path, content, "x.txt")[0] == ROWS
    plain = '"a\tb\n"a\tc\n'  # in UTF-8, a quote between tabs is literal
    assert cleaned(tmp_path, plain)[0] == [('"a', "b"), ('"a', "c")]


@pytest.mark.parametrize("sep_line", ["sep=;", '"sep=;"', "SEP=;"])
def test_csv_skips_excel_sep_line(tmp_path: Path, sep_line: str) -> None:
    content = f"{sep_line}\r\n" + export(";", "\r\n")
    assert cleaned(tmp_path, content, "x.csv")[0] == ROWS


def test_csv_errors_count_physical_lines(tmp_path: Path) -> None:
    content = 'a;b;"x\ny"\n\nc;d;"\n\n"\n;e;f\n'
    refused(tmp_path, MalformedRow, content, "x.csv", header="no", match=r"x\.csv:7: an empty name")
    with pytest.raises(MalformedRow, match=r"x\.csv:2: .*not UTF-8|x\.csv:2: not 2"):
        cleaned(tmp_path, "a\tb\nc\td\n".encode("utf-16")[:-3], "x.csv", header="no")
    with pytest.raises(MalformedRow, match=r"x\.csv:2: bytes that are not UTF-8"):
        cleaned(tmp_path, "a\tb\nc\t\ud800d\n".encode("utf-16", "surrogatepass"), "x.csv")


@pytest.mark.process
def test_ingest_stdin_reads_utf16(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cocite", "ingest", "-", "-o", str(tmp_path / "g")]
    data = export(";", "\n").encode("utf-16")
    subprocess.run(command, input=data, capture_output=True, check=True)
    assert sorted(links(Graph.open(tmp_path / "g"))) == sorted(ROWS)
