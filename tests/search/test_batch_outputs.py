"""Batch outputs other than tables: JSON lines, a folder with one file per node, and intervals."""

import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.errors import OutputExists, StoreError, UsageError
from cocite.measures.ppr import MAX_EDGES, MIN_RESULTS
from cocite.search.batch import estimate as batches
from cocite.search.batch import folder as folders
from cocite.search.batch.folder import file_name, levels_of
from tests.conftest import MakeGraph, Shell
from tests.search.test_batch import interrupted, read

NAMES = ["manifest", "a b/c?d=e&f", "..", ".", "CON", "é" * 90, "http://x.org/", "=2E", "x" * 151]


@pytest.fixture(scope="module")
def odd(module_graph: MakeGraph) -> Index:
    """60 pages, some with names that are not valid file names, and one without links."""
    names = NAMES + [f"page {i}" for i in range(50)]
    pairs = np.random.default_rng(3).integers(0, 59, (300, 2)).tolist()
    graph = module_graph([(names[a], names[b]) for a, b in pairs], ["alone"])
    return cocite.build(graph, samples=9, seed=5, measure="psimrank")


def expected_page(index: Index, node: str, k: int = 3, **options: Any) -> dict[str, Any]:
    """What an output must contain for a node."""
    hits = index.related(node, k, **options)
    return {
        "node": node,
        "hits": [{"node": h.node, "score": h.score, "stderr": h.stderr} for h in hits],
    }


def test_jsonl_output_includes_nodes_without_hits(odd: Index, tmp_path: Path) -> None:
    report = odd.related_all(tmp_path / "all.jsonl", 3)
    content = (tmp_path / "all.jsonl").read_text("utf-8")
    found = [json.loads(line) for line in content.splitlines()]
    assert found == [expected_page(odd, node) for node in odd.nodes]
    assert found[-1]["hits"] == [] or any(not each["hits"] for each in found)
    assert report.rows == sum(len(each["hits"]) for each in found)
    assert report.bytes == (tmp_path / "all.jsonl").stat().st_size


def test_jsonl_output_has_null_stderr_for_one_sample(odd: Index, tmp_path: Path) -> None:
    odd.with_samples(1).related_all(tmp_path / "all.jsonl", 3)
    lines = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    hits = [json.loads(line)["hits"] for line in lines]
    assert {hit["stderr"] for row in hits for hit in row} == {None}


def test_folder_output_writes_one_file_per_node(odd: Index, tmp_path: Path) -> None:
    report = odd.related_all(f"{tmp_path}/all/", 3)
    folder = tmp_path / "all"
    assert sorted(os.listdir(tmp_path)) == ["all"]
    assert sorted(os.listdir(folder)) == ["files.csv", "manifest.json", "pages"]
    for node in odd.nodes:
        assert json.loads((folder / file_name(node)).read_text("utf-8")) == expected_page(odd, node)
    assert len(os.listdir(folder / "pages")) == len(odd.nodes)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert (manifest["nodes"], manifest["rows"]) == (len(odd.nodes), report.rows)
    assert (manifest["cocite"], manifest["levels"], manifest["k"]) == ("pages", 0, 3)
    with (folder / "files.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["node", "file"]
    assert rows == [[node, file_name(node)] for node in odd.nodes]
    sizes = [entry.stat().st_size for entry in folder.rglob("*") if entry.is_file()]
    assert report.bytes == sum(sizes)


def test_folder_output_nests_subfolders(
    odd: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for few_limit, many_limit, levels in ((10, 1000, 1), (10, 20, 2)):
        monkeypatch.setattr(folders, "_FEW", few_limit)
        monkeypatch.setattr(folders, "_MANY", many_limit)
        assert levels_of(len(odd.nodes)) == levels
        odd.related_all(tmp_path / str(levels), 3, kind="folder")
        for node in odd.nodes:
            name = file_name(node, levels)
            assert name.count("/") == levels + 1
            assert json.loads((tmp_path / str(levels) / name).read_text()) == expected_page(
                odd, node
            )


def test_file_name_escapes_and_shortens() -> None:
    assert file_name("a b/ü") == "pages/a=20b=2F=C3=BC.json"
    assert file_name("..") == "pages/=2E..json"
    assert file_name(12, 2) == "pages/6b/51/12.json"  # echo -n 12 | sha256sum
    shortened = file_name("x" * 151).removeprefix("pages/").removesuffix(".json")
    assert (len(shortened), shortened[:122]) == (138, "x" * 120 + "==")


@given(st.text(min_size=1), st.text(min_size=1))
def test_file_name_is_safe_and_unique(first: str, second: str) -> None:
    names = [
        file_name(node.encode("utf-8", "replace").decode()).removeprefix("pages/")
        for node in (first, second)
    ]
    for name in names:
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name) <= 160
        assert name.isascii()
    assert (names[0] == names[1]) == (
        first.encode("utf-8", "replace") == second.encode("utf-8", "replace")
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    """All files of a folder, by relative path."""
    files = (entry for entry in folder.rglob("*") if entry.is_file())
    return {str(entry.relative_to(folder)): entry.read_bytes() for entry in files}


@pytest.mark.parametrize("chunks", [0, 1, 5])
def test_folder_output_resumes_and_appears_when_complete(
    odd: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    monkeypatch.setattr(batches, "_OUT_ROWS", 30)
    odd.related_all(tmp_path / "whole", 3, kind="folder")
    writes_left, original = chunks * 10 + 3, folders._write

    def write(folder: Path, name: str, text: str, created: set[str]) -> None:
        nonlocal writes_left
        writes_left -= 1
        if writes_left < 0:
            original(folder, name, text[: len(text) // 2], created)  # torn
            raise KeyboardInterrupt
        original(folder, name, text, created)

    monkeypatch.setattr(folders, "_write", write)
    with pytest.raises(KeyboardInterrupt):
        odd.related_all(tmp_path / "x", 3, kind="folder")
    assert not (tmp_path / "x").exists()
    writes_left = 10**6
    odd.related_all(tmp_path / "x", 3, kind="folder")
    assert snapshot(tmp_path / "x") == snapshot(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["whole", "x"]


def test_folder_output_overwrites_only_own_folders(odd: Index, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    odd.related_all(path, 3, kind="folder")
    with pytest.raises(OutputExists, match="pass --overwrite"):
        odd.related_all(path, 2, kind="folder")
    odd.related_all(path, 2, kind="folder", overwrite=True)
    assert json.loads((path / "manifest.json").read_text())["k"] == 2
    assert sorted(os.listdir(tmp_path)) == ["x"]
    (path / "notes").write_text("")
    with pytest.raises(OutputExists, match="did not write, such as notes"):
        odd.related_all(path, 2, kind="folder", overwrite=True)
    (path / "notes").unlink()
    (path / "manifest.json").write_text("{}")
    with pytest.raises(OutputExists, match=r"lacks its manifest\.json"):
        odd.related_all(path, 2, kind="folder", overwrite=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "to").symlink_to(path)
    (tmp_path / "away").symlink_to("nowhere")
    for name, message in [
        ("file", "file is not a folder. Choose another output"),
        ("to", f"to is a symbolic link to {path}. Choose that folder, or another output"),
        ("away", "away is a symbolic link to nowhere. Choose that path, or another output"),
    ]:
        with pytest.raises(OutputExists, match=re.escape(message)):
            odd.related_all(tmp_path / name, 2, kind="folder", overwrite=True)


def test_folder_output_detects_case_folding_disk(
    odd: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., str] = folders.file_name
    monkeypatch.setattr(folders, "file_name", lambda *args: original(*args).replace("=20", "-"))
    odd.related_all(tmp_path / "fine", 3, kind="folder")
    monkeypatch.setattr(
        folders, "file_name", lambda *args: original(*args).replace("page=201", "page=202")
    )
    with pytest.raises(StoreError, match=r"treats names such as A and a as equal"):
        odd.related_all(tmp_path / "x", 3, kind="folder")
    assert not (tmp_path / "x").exists()


def test_output_kind_follows_name_or_option(odd: Index, tmp_path: Path) -> None:
    odd.related_all(tmp_path / "a.jsonl", 3)
    odd.related_all(tmp_path / "a.txt", 3, kind="jsonl")
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "a.jsonl").read_bytes()
    odd.related_all(tmp_path / "b", 3, kind="csv")
    odd.related_all(tmp_path / "b.csv", 3)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "b.csv").read_bytes()
    for name in ("x.folder", "x", "x.npy"):
        with pytest.raises(
            UsageError, match=r"or in / for a folder .* --output-format \(kind=\.\.\.\)"
        ):
            odd.related_all(tmp_path / name, 3)
    message = "kind is 'xml'; it must be one of parquet, csv, tsv, jsonl"
    with pytest.raises(UsageError, match=message):
        odd.related_all(tmp_path / "x.csv", 3, kind="xml")


def test_docs_state_folder_output_file_names() -> None:
    text = (Path(__file__).parents[2] / "docs" / "related-all.md").read_text("utf-8")
    for levels in range(3):
        assert f"all/{file_name('Cat', levels)} " in text


COLUMNS = ["node", "rank", "related", "score", "stderr", "low", "high"]


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    pairs = np.random.default_rng(2).integers(0, 60, (300, 2)).tolist()
    return module_graph([(f"n{a}", f"n{b}") for a, b in pairs])


@pytest.fixture(scope="module")
def index(graph: Graph) -> Index:
    return cocite.build(graph, samples=16, measure="psimrank")


@pytest.fixture(scope="module")
def certified(graph: Graph) -> Index:
    """An index of a measure whose intervals need no samples."""
    return cocite.build(graph, measure="neighborhood")


def expected(index: Index, k: int = 4, **options: Any) -> list[tuple[Any, ...]]:
    return [
        (node, rank, *hit)
        for node in index.nodes
        for rank, hit in enumerate(index.related(node, k, **options), 1)
    ]


def test_batch_intervals_default_on_without_samples(certified: Index, tmp_path: Path) -> None:
    options: dict[str, Any] = {MAX_EDGES.name: 20, MIN_RESULTS.name: 5}
    certified.related_all(tmp_path / "all.parquet", 4, **options)
    found = read(tmp_path / "all.parquet")
    assert found == expected(certified, **options)
    assert any(high > score for _, _, _, score, _, _, high in found)
    certified.related_all(tmp_path / "all.csv", 4, **options)
    rows = list(csv.reader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert rows[0] == COLUMNS
    assert [[*map(float, row[3:])] for row in rows[1:]] == [[*row[3:]] for row in found]
    certified.related_all(tmp_path / "all.jsonl", 4, **options)
    lines = map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())
    hits = [tuple(hit.values()) for line in lines for hit in line["hits"]]
    assert hits == [row[2:] for row in found]
    certified.related_all(tmp_path / "bare.parquet", 4, intervals=False, **options)
    assert read(tmp_path / "bare.parquet") == [row[:5] for row in found]


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"confidence": 0.5, "interval": "bernstein"},
        {"min_confidence": 0.6},
        {"refine": True, "target_error": 0.01},
        {"order": "score*pagerank"},
    ],
    ids=str,
)
def test_batch_intervals_are_optional_for_samples(
    index: Index, tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 32)
    index.related_all(tmp_path / "all.parquet", 4, intervals=True, **options)
    assert read(tmp_path / "all.parquet") == expected(index, **options)
    refined = "refine" in options
    index.related_all(tmp_path / "default.parquet", 4, **options)
    columns = duckdb.execute(f"DESCRIBE SELECT * FROM '{tmp_path / 'default.parquet'}'").fetchall()
    assert [column for column, *_ in columns] == COLUMNS[: 7 if refined else 5]


def test_batch_resume_rejects_other_intervals(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    interrupted(index, path, "writing", 0, k=4, intervals=True)
    with pytest.raises(UsageError, match="intervals"):
        index.related_all(path, 4)
    index.related_all(path, 4, intervals=True)
    assert read(path) == expected(index)
    with pytest.raises(UsageError, match="confidence is 2"):
        index.related_all(tmp_path / "x.csv", 4, confidence=2)


def test_related_all_intervals_flag_sets_columns(
    index: Index, certified: Index, shell: Shell
) -> None:
    sampled, exact = (each.stored.store.path for each in (index, certified))

    def columns(*args: object) -> list[str]:
        out, err = shell(["related-all", *args, "-o", "-", "--output-format", "csv", "-k", "1"])
        assert "up to 1 hit for each of 60 nodes" in err
        return out.splitlines()[0].split(",")

    assert columns(exact) == COLUMNS
    assert columns(exact, "--intervals", "no") == COLUMNS[:5]
    assert columns(sampled) == COLUMNS[:5]
    assert columns(sampled, "--intervals", "0.9") == COLUMNS
    for value, message in [
        ("yes", "a number between 0 and 1"),
        ("1.5", "a number above 0 and below 1"),
    ]:
        assert message in shell(["related-all", sampled, "-o", "-", "--intervals", value], 2).err
