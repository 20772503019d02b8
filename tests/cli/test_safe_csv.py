"""``--safe-csv``: what a spreadsheet would take for a formula is text; all else stays."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite.cli.main import main
from cocite.io.writers import TABLES, check_output
from cocite.io.writers.tables import safe_cell
from tests.conftest import Shell

EVIL = ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1dcmd", "=a,b", '="q"']
TITLE = "=HYPERLINK(0)"
PLAIN = ["a", "'=1", "1-2", "a=b"]
VERBS = [
    "related i {0}",
    "similarity i {0} {1}",
    "why i {0} {1}",
    "nodes i -k 20",
    "rank g -k 20",
]


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
