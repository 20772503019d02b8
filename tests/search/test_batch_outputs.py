"""What a batch writes beside tables: JSON lines, a folder with a file a node, and intervals."""

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
from cocite.cli.main import main
from cocite.errors import OutputExists, StoreError, UsageError
from cocite.measures.ppr import MAX_EDGES, MIN_RESULTS
from cocite.search.batch import estimate as batches
from cocite.search.batch import folder as folders
from cocite.search.batch.folder import file_name, levels_of
from tests.conftest import MakeGraph
from tests.search.test_batch import interrupted, read

NAMES = ["manifest", "a b/c?d=e&f", "..", ".", "CON", "é" * 90, "http://x.org/", "=2E", "x" * 151]


@pytest.fixture(scope="module")
def odd(module_graph: MakeGraph) -> Index:
    """60 pages, some of whose names no disk would take, and one without links."""
    names = NAMES + [f"page {i}" for i in range(50)]
    pairs = np.random.default_rng(3).integers(0, 59, (300, 2)).tolist()
    graph = module_graph([(names[a], names[b]) for a, b in pairs], ["alone"])
    return cocite.build(graph, samples=9, seed=5, measure="psimrank")


def page(index: Index, node: str, k: int = 3, **options: Any) -> dict[str, Any]:
    """What an output has to say of a node."""
    hits = index.related(node, k, **options)
    return {
        "node": node,
        "hits": [{"node": h.node, "score": h.score, "stderr": h.stderr} for h in hits],
    }


def test_json_lines_have_a_line_a_node_also_without_hits(odd: Index, tmp_path: Path) -> None:
    report = odd.related_all(tmp_path / "all.jsonl", 3)
    content = (tmp_path / "all.jsonl").read_text("utf-8")
    found = [json.loads(line) for line in content.splitlines()]
    assert found == [page(odd, node) for node in odd.nodes]
    assert found[-1]["hits"] == [] or any(not each["hits"] for each in found)
    assert report.rows == sum(len(each["hits"]) for each in found)
    assert report.bytes == (tmp_path / "all.jsonl").stat().st_size


def test_a_single_sample_has_no_error_in_json(odd: Index, tmp_path: Path) -> None:
    odd.with_samples(1).related_all(tmp_path / "all.jsonl", 3)
    lines = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    hits = [json.loads(line)["hits"] for line in lines]
    assert {hit["stderr"] for some in hits for hit in some} == {None}


def test_a_folder_has_a_file_a_node(odd: Index, tmp_path: Path) -> None:
    report = odd.related_all(f"{tmp_path}/all/", 3)
    folder = tmp_path / "all"
    assert sorted(os.listdir(tmp_path)) == ["all"]
    assert sorted(os.listdir(folder)) == ["files.csv", "manifest.json", "pages"]
    for node in odd.nodes:
        assert json.loads((folder / file_name(node)).read_text("utf-8")) == page(odd, node)
    assert len(os.listdir(folder / "pages")) == len(odd.nodes)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert (manifest["nodes"], manifest["rows"]) == (len(odd.nodes), report.rows)
    assert (manifest["cocite"], manifest["levels"], manifest["k"]) == ("pages", 0, 3)
    with (folder / "files.csv").open(newline="", encoding="utf-8") as file:
        titles, *rows = csv.reader(file)
    assert titles == ["node", "file"]
    assert rows == [[node, file_name(node)] for node in odd.nodes]
    sizes = [entry.stat().st_size for entry in folder.rglob("*") if entry.is_file()]
    assert report.bytes == sum(sizes)


def test_many_in_folders(odd: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for few, many, levels in ((10, 1000, 1), (10, 20, 2)):
        monkeypatch.setattr(folders, "_FEW", few)
        monkeypatch.setattr(folders, "_MANY", many)
        assert levels_of(len(odd.nodes)) == levels
        odd.related_all(tmp_path / str(levels), 3, kind="folder")
        for node in odd.nodes:
            name = file_name(node, levels)
            assert name.count("/") == levels + 1
            assert json.loads((tmp_path / str(levels) / name).read_text()) == page(odd, node)


def test_file_names() -> None:
    assert file_name("a b/ü") == "pages/a=20b=2F=C3=BC.json"
    assert file_name("..") == "pages/=2E..json"
    assert file_name(12, 2) == "pages/6b/51/12.json"  # echo -n 12 | sha256sum
    long = file_name("x" * 151).removeprefix("pages/").removesuffix(".json")
    assert (len(long), long[:122]) == (138, "x" * 120 + "==")


@given(st.text(min_size=1), st.text(min_size=1))
def test_file_names_are_safe_and_tell_nodes_apart(first: str, second: str) -> None:
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
    """All files of a folder."""
    files = (entry for entry in folder.rglob("*") if entry.is_file())
    return {str(entry.relative_to(folder)): entry.read_bytes() for entry in files}


@pytest.mark.parametrize("chunks", [0, 1, 5])
def test_a_folder_that_is_interrupted_goes_on_and_is_not_there_before(
    odd: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    monkeypatch.setattr(batches, "_OUT_ROWS", 30)
    odd.related_all(tmp_path / "whole", 3, kind="folder")
    left, real = chunks * 10 + 3, folders._write

    def write(folder: Path, name: str, text: str, made: set[str]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            real(folder, name, text[: len(text) // 2], made)  # torn
            raise KeyboardInterrupt
        real(folder, name, text, made)

    monkeypatch.setattr(folders, "_write", write)
    with pytest.raises(KeyboardInterrupt):
        odd.related_all(tmp_path / "x", 3, kind="folder")
    assert not (tmp_path / "x").exists()
    left = 10**6
    odd.related_all(tmp_path / "x", 3, kind="folder")
    assert snapshot(tmp_path / "x") == snapshot(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["whole", "x"]


def test_a_folder_is_replaced_if_it_is_one_of_ours(odd: Index, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    odd.related_all(path, 3, kind="folder")
    with pytest.raises(OutputExists, match="pass --overwrite"):
        odd.related_all(path, 2, kind="folder")
    odd.related_all(path, 2, kind="folder", overwrite=True)
    assert json.loads((path / "manifest.json").read_text())["k"] == 2
    assert sorted(os.listdir(tmp_path)) == ["x"]
    (path / "mine").write_text("")
    with pytest.raises(OutputExists, match="did not write, such as mine"):
        odd.related_all(path, 2, kind="folder", overwrite=True)
    (path / "mine").unlink()
    (path / "manifest.json").write_text("{}")
    with pytest.raises(OutputExists, match=r"lacks its manifest\.json"):
        odd.related_all(path, 2, kind="folder", overwrite=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "to").symlink_to(path)
    (tmp_path / "away").symlink_to("nowhere")
    for name, said in [
        ("file", "file is not a folder. Choose another output"),
        ("to", f"to is a symbolic link to {path}. Choose that folder, or another output"),
        ("away", "away is a symbolic link to nowhere. Choose that path, or another output"),
    ]:
        with pytest.raises(OutputExists, match=re.escape(said)):
            odd.related_all(tmp_path / name, 2, kind="folder", overwrite=True)


def test_folded_names_disk(odd: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., str] = folders.file_name
    monkeypatch.setattr(folders, "file_name", lambda *of: real(*of).replace("=20", "-"))
    odd.related_all(tmp_path / "fine", 3, kind="folder")
    monkeypatch.setattr(folders, "file_name", lambda *of: real(*of).replace("page=201", "page=202"))
    with pytest.raises(StoreError, match=r"treats names such as A and a as equal"):
        odd.related_all(tmp_path / "x", 3, kind="folder")
    assert not (tmp_path / "x").exists()


def test_what_it_is_goes_by_the_name_or_is_said(odd: Index, tmp_path: Path) -> None:
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


def test_the_documentation_says_where_files_are() -> None:
    text = (Path(__file__).parents[2] / "docs" / "related-all.md").read_text("utf-8")
    for levels in range(3):
        assert f"all/{file_name('Cat', levels)} " in text


TITLES = ["node", "rank", "related", "score", "stderr", "low", "high"]


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    pairs = np.random.default_rng(2).integers(0, 60, (300, 2)).tolist()
    return module_graph([(f"n{a}", f"n{b}") for a, b in pairs])


@pytest.fixture(scope="module")
def index(graph: Graph) -> Index:
    return cocite.build(graph, samples=16, measure="psimrank")


@pytest.fixture(scope="module")
def certified(graph: Graph) -> Index:
    """Of a measure whose intervals take no samples."""
    return cocite.build(graph, measure="neighborhood")


def expected(index: Index, k: int = 4, **options: Any) -> list[tuple[Any, ...]]:
    return [
        (node, rank, *hit)
        for node in index.nodes
        for rank, hit in enumerate(index.related(node, k, **options), 1)
    ]


def test_intervals_are_there_where_they_take_no_samples(certified: Index, tmp_path: Path) -> None:
    asked: dict[str, Any] = {MAX_EDGES.name: 20, MIN_RESULTS.name: 5}
    certified.related_all(tmp_path / "all.parquet", 4, **asked)
    found = read(tmp_path / "all.parquet")
    assert found == expected(certified, **asked)
    assert any(high > score for _, _, _, score, _, _, high in found)
    certified.related_all(tmp_path / "all.csv", 4, **asked)
    rows = list(csv.reader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert rows[0] == TITLES
    assert [[*map(float, row[3:])] for row in rows[1:]] == [[*row[3:]] for row in found]
    certified.related_all(tmp_path / "all.jsonl", 4, **asked)
    lines = map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())
    hits = [tuple(hit.values()) for line in lines for hit in line["hits"]]
    assert hits == [row[2:] for row in found]
    certified.related_all(tmp_path / "bare.parquet", 4, intervals=False, **asked)
    assert read(tmp_path / "bare.parquet") == [row[:5] for row in found]


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
def test_intervals_of_samples_are_there_if_wanted(
    index: Index, tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 32)
    index.related_all(tmp_path / "all.parquet", 4, intervals=True, **options)
    assert read(tmp_path / "all.parquet") == expected(index, **options)
    refined = "refine" in options
    index.related_all(tmp_path / "usual.parquet", 4, **options)
    titles = duckdb.execute(f"DESCRIBE SELECT * FROM '{tmp_path / 'usual.parquet'}'").fetchall()
    assert [title for title, *_ in titles] == TITLES[: 7 if refined else 5]


def test_an_unfinished_batch_with_other_intervals_does_not_go_on(
    index: Index, tmp_path: Path
) -> None:
    path = tmp_path / "all.parquet"
    interrupted(index, path, "writing", 0, k=4, intervals=True)
    with pytest.raises(UsageError, match="intervals"):
        index.related_all(path, 4)
    index.related_all(path, 4, intervals=True)
    assert read(path) == expected(index)
    with pytest.raises(UsageError, match="confidence is 2"):
        index.related_all(tmp_path / "x.csv", 4, confidence=2)


def test_intervals_on_command(
    index: Index, certified: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    sampled, exact = (str(each.stored.store.path) for each in (index, certified))

    def titles(*more: str) -> list[str]:
        assert main(["related-all", *more, "-o", "-", "--output-format", "csv", "-k", "1"]) == 0
        out, err = capsys.readouterr()
        assert "up to 1 hit for each of 60 nodes" in err
        return out.splitlines()[0].split(",")

    assert titles(exact) == TITLES
    assert titles(exact, "--intervals", "no") == TITLES[:5]
    assert titles(sampled) == TITLES[:5]
    assert titles(sampled, "--intervals", "0.9") == TITLES
    for wrong, said in [
        ("yes", "a number between 0 and 1"),
        ("1.5", "a number above 0 and below 1"),
    ]:
        assert main(["related-all", sampled, "-o", "-", "--intervals", wrong]) == 2
        assert said in capsys.readouterr().err
