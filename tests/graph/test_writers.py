"""Writers of results: a kind of file is one file and one line of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import cocite
from cocite.cli.main import cli, main
from cocite.errors import UsageError
from cocite.graph import writers
from cocite.graph.writers import ARRAYS, TABLES, WRITERS, Columns, TableFile, Types
from cocite.query.batch.outputs import OUTPUTS


def lines(path: Path, pieces: Iterable[Columns], types: Types) -> None:
    """A kind of its own: a row a line, as JSON."""
    with path.open("w") as file:
        for piece in pieces:
            for row in zip(*(piece[title].tolist() for title in types), strict=True):
                print(json.dumps(dict(zip(types, row, strict=True))), file=file)


@pytest.fixture
def graph(tmp_path: Path) -> cocite.Graph:
    (tmp_path / "l.tsv").write_text("a\tb\nb\tc\nc\ta\na\tc\n")
    return cocite.ingest(tmp_path / "l.tsv", tmp_path / "g")


def test_a_new_kind_of_file_is_written_by_every_verb_that_writes_tables(
    graph: cocite.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WRITERS, ".jsonl", TableFile("JSON lines", lines))
    monkeypatch.setattr(writers, "TABLES", (*TABLES, ".jsonl"))
    assert main(["rank", str(graph.path), "-o", str(tmp_path / "r.jsonl")]) == 0
    rows = list(map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines()))
    ranks = cocite.pagerank(graph).values.tolist()
    assert rows == [{"node": n, "rank": r} for n, r in zip("abc", ranks, strict=True)]
    assert main(["exact", str(graph.path), "-o", str(tmp_path / "e.jsonl")]) == 0
    assert json.loads((tmp_path / "e.jsonl").read_text().splitlines()[0])["node"] == "a"


def test_an_array_has_the_numbers_of_a_table(graph: cocite.Graph, tmp_path: Path) -> None:
    values = cocite.pagerank(graph).values
    for ending in ARRAYS:
        writers.write_numbers(tmp_path / f"x{ending}", graph.names, rank=values)
    assert ARRAYS == (".npy",)
    assert np.load(tmp_path / "x.npy", mmap_mode="r").tolist() == values.tolist()
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".new"]


def test_help_names_what_each_verb_can_write() -> None:
    for verb, endings in (("rank", WRITERS), ("exact", WRITERS), ("related-all", TABLES)):
        printed = CliRunner().invoke(cli, [verb, "--help-all"]).output
        assert all(ending in printed for ending in endings), verb
    output = printed[printed.index("--output") : printed.index("--kind")]
    assert not any(ending in output for ending in ARRAYS)
    kinds = re.search(r"--kind \[(.*)\]", printed)
    assert kinds is not None
    assert kinds[1].split("|") == list(OUTPUTS)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.txt ends in '\.txt'; it ends in one of \.parquet, "):
        writers.check_output(tmp_path / "x.txt", overwrite=False)
