"""Batches equal ``related`` for each node, whatever the threads, pieces and interruptions."""

import csv
import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import cocite
from cocite import Index, UnknownNode
from cocite.errors import Busy, OutputExists, ResourceError, UsageError
from cocite.options.query import DEFAULT_K
from cocite.search.batch import estimate as batches
from cocite.search.batch import pieces
from cocite.search.batch.run import Batch, related_all
from cocite.search.source import find_graph
from cocite.storage import disk
from tests.conftest import MakeGraph


@pytest.fixture(scope="module")
def index(module_graph: MakeGraph) -> Index:
    """400 pages in linked sites of 20 pages, a hub, and 10 pages without links."""
    rng = np.random.default_rng(3)
    site = rng.integers(0, 400, (2500, 1)) // 20 * 20
    edges = [tuple(pair) for pair in (site + rng.integers(0, 20, (2500, 2))).tolist()]
    edges += [(7, v) for v in range(0, 400, 3)] + [(v, 8) for v in range(0, 400, 7)]
    names = [f"http://site{a // 20}.org/page {a}" for a in range(400)]
    links = [(names[a], names[b]) for a, b in edges]
    graph = module_graph(links, [f"alone {i}" for i in range(10)])
    return cocite.build(graph, samples=23, seed=5, shard=7, measure="psimrank")


def related_rows(
    index: Index, k: int = 20, nodes: Iterable[str] | None = None, **options: Any
) -> list[tuple[Any, ...]]:
    """The rows that a batch must write."""
    return [
        (node, rank, hit.node, hit.score, hit.stderr)
        for node in nodes or index.nodes
        for rank, hit in enumerate(index.related(node, k, **options), 1)
    ]


def read(path: Path) -> list[tuple[Any, ...]]:
    """All rows of a file, in order."""
    return duckdb.execute(f"SELECT * FROM '{path}'").fetchall()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use pieces of 16 nodes, and output pieces of 3."""
    monkeypatch.setattr(pieces, "_MOST", 16)
    monkeypatch.setattr(pieces, "_LEAST", 16)
    monkeypatch.setattr(batches, "_OUT_ROWS", 60)


def interrupted(
    index: Index, output: Path, stage: str = "relating", least: int = 1, **options: Any
) -> list[str]:
    """Stop a batch in a stage when ``least`` is done; return the notes of the exception."""

    def stop(current: str, done: int, total: int) -> None:
        if current == stage and done >= least:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        related_all(index, output, progress=stop, **options)
    return getattr(stopped.value, "__notes__", [])


# -- rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 20, 10**6])
def test_related_all_rows_equal_related(index: Index, tmp_path: Path, k: int) -> None:
    report = related_all(index, tmp_path / "all.parquet", k)
    rows = read(tmp_path / "all.parquet")
    assert rows == related_rows(index, k)
    assert (report.nodes, report.rows) == (len(index.nodes), len(rows))
    assert len(rows) >= 390


@pytest.mark.parametrize(
    "options",
    [
        {"min_score": 0.25},
        {"decay": 0.9},
        {"prefix": "http://site1"},
        {"exclude_prefix": "http://site1.org/"},
        {"prefix": "http://site", "exclude_prefix": "http://site3", "min_score": 0.01},
        {"prefix": "nobody"},
        {"min_confidence": 0.9},
        {"min_confidence": 0.9, "interval": "bernstein", "min_score": 0.01},
        {"only": ["alone 1", *(f"http://site1.org/page {i}" for i in range(20, 40))]},
        {"only": ["alone 1"], "prefix": "http"},
        {"order": "pagerank"},
        {"order": "score*pagerank", "candidates": 9, "prefix": "http"},
    ],
)
def test_related_all_options_equal_related(
    index: Index, tmp_path: Path, options: dict[str, Any]
) -> None:
    nodes = list(index.nodes)[::8]
    related_all(index, tmp_path / "all.parquet", 7, nodes=nodes, **options)
    assert read(tmp_path / "all.parquet") == related_rows(index, 7, nodes, **options)


def test_related_all_accepts_site_filter_and_rank_file(index: Index, tmp_path: Path) -> None:
    sites = [name for name in index.nodes if name.startswith("http")][::5]
    related_all(index, tmp_path / "all.parquet", 7, nodes=sites, exclude_same_site=True)
    rows = related_rows(index, 7, sites, exclude_same_site=True)
    assert read(tmp_path / "all.parquet") == rows
    assert len(rows) > 200
    with pytest.raises(UsageError, match="'alone 0' is not a URL"):
        related_all(index, tmp_path / "x.parquet", 7, exclude_same_site=True)
    np.save(tmp_path / "ranks.npy", np.random.default_rng(0).random(len(index.nodes)))
    options: dict[str, Any] = {"order": "pagerank", "ranks": tmp_path / "ranks.npy"}
    related_all(index, tmp_path / "by.parquet", 7, nodes=sites, **options)
    assert read(tmp_path / "by.parquet") == related_rows(index, 7, sites, **options)


def test_related_all_ids_writes_numbers(index: Index, tmp_path: Path) -> None:
    related_all(index, tmp_path / "all.parquet", 4, ids=True)
    names = index.nodes.names(np.arange(len(index.nodes)))
    rows = read(tmp_path / "all.parquet")
    assert [(names[a], r, names[b], s, e) for a, r, b, s, e in rows] == related_rows(index, 4)


def test_related_all_writes_csv_and_tsv(index: Index, tmp_path: Path) -> None:
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"all{ending}"
        related_all(index, path, 3)
        with path.open(newline="") as file:
            header, *rows = csv.reader(file, delimiter=delimiter)
        assert header == ["node", "rank", "related", "score", "stderr"]
        found = [(a, int(r), b, float(s), float(e)) for a, r, b, s, e in rows]
        assert found == related_rows(index, 3)


def test_related_all_nodes_keeps_order_without_repeats(index: Index, tmp_path: Path) -> None:
    names = list(index.nodes)
    nodes = [names[i] for i in (300, 22, 17, 22, 305)]
    report = index.related_all(tmp_path / "some.parquet", 3, nodes=nodes)
    rows = read(tmp_path / "some.parquet")
    assert list(dict.fromkeys(row[0] for row in rows)) == [names[i] for i in (300, 22, 17, 305)]
    all_rows = related_rows(index, 3)
    assert sorted(rows) == sorted(row for row in all_rows if row[0] in nodes)
    assert report.nodes == 4


def test_related_all_empty_nodes_writes_no_rows(index: Index, tmp_path: Path) -> None:
    assert index.related_all(tmp_path / "none.parquet", nodes=[]).rows == 0
    assert read(tmp_path / "none.parquet") == []
    assert os.listdir(tmp_path) == ["none.parquet"]


# -- threads, pieces, interruptions -------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_related_all_ignores_threads_and_piece_size(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    related_all(index, tmp_path / f"one{ending}", threads=1)
    expected = (tmp_path / f"one{ending}").read_bytes()
    for piece, threads in ((1, 5), (37, 1), (37, 2), (128, 2)):
        monkeypatch.setattr(pieces, "_MOST", piece)
        monkeypatch.setattr(pieces, "_LEAST", piece)
        path = tmp_path / f"{piece}-{threads}{ending}"
        related_all(index, path, threads=threads)
        assert path.read_bytes() == expected


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("after", [0, 1, 16, 200, 409])
def test_related_all_resumes_to_identical_bytes(index: Index, tmp_path: Path, after: int) -> None:
    related_all(index, tmp_path / "whole.parquet", 5, threads=2)
    saved = -(-after // 16) * 16
    assert interrupted(index, tmp_path / "x.parquet", least=after, k=5) == [
        f"the hits of {min(saved, len(index.nodes))} of {len(index.nodes)} nodes are saved in "
        f"{tmp_path / 'x.parquet.building'}: repeat the command to continue"
    ]
    assert not (tmp_path / "x.parquet").exists()
    calls: list[tuple[str, int, int]] = []
    report = related_all(index, tmp_path / "x.parquet", 5, progress=lambda *c: calls.append(c))
    assert calls[0] == ("relating", min(saved, len(index.nodes)), len(index.nodes))
    assert calls[-1] == ("writing", report.rows, report.rows)
    assert report.nodes == max(0, len(index.nodes) - saved)
    assert (tmp_path / "x.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["whole.parquet", "x.parquet"]


def test_related_all_keeps_hits_when_writing_is_interrupted(index: Index, tmp_path: Path) -> None:
    related_all(index, tmp_path / "whole.csv", 5)
    interrupted(index, tmp_path / "x.csv", "writing", k=5)
    assert related_all(index, tmp_path / "x.csv", 5).nodes == 0
    assert (tmp_path / "x.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.usefixtures("small")
def test_batch_recomputes_damaged_piece(index: Index, tmp_path: Path) -> None:
    output = tmp_path / "x.csv"
    interrupted(index, output, least=100, k=5)
    journal = tmp_path / "x.csv.building" / "pieces"
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 1
    journal.write_bytes(content)
    with Batch(index, output, 5) as batch:
        assert 0 < batch.done < 100
        batch.run()
    related_all(index, tmp_path / "whole.csv", 5)
    assert output.read_bytes() == (tmp_path / "whole.csv").read_bytes()


# -- errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"k": 6}, f"k: {DEFAULT_K}, here 6"),
        ({"decay": 0.5}, "decay: 0.6, here 0.5"),
        ({"min_score": 0.5}, "min score: 0.0, here 0.5"),
        ({"prefix": "http"}, "prefix: none, here http"),
        ({"nodes": ["alone 1"]}, "nodes: different"),
        ({"only": ["alone 1"]}, "only: different"),
        ({"min_confidence": 0.5}, "min confidence: none, here 0.5; interval: none, here betting"),
        ({"order": "pagerank"}, "order: .*"),
    ],
)
def test_related_all_resume_rejects_other_options(
    index: Index, tmp_path: Path, options: dict[str, Any], what: str
) -> None:
    output = tmp_path / "x.parquet"
    interrupted(index, output)
    message = rf"unfinished batch with other settings: {what}\. .*--no-resume"
    with pytest.raises(UsageError, match=message):
        related_all(index, output, **options)
    related_all(index, output, restart=True, **options)
    assert os.listdir(tmp_path) == ["x.parquet"]


def test_related_all_resume_rejects_other_samples(index: Index, tmp_path: Path) -> None:
    """Even though the files and their digests are the same."""
    interrupted(index, tmp_path / "x.csv")
    with pytest.raises(UsageError, match=r"other settings: samples: \d+, here 3\."):
        related_all(index.with_samples(3), tmp_path / "x.csv")


def test_related_all_resume_allows_other_ids_option(index: Index, tmp_path: Path) -> None:
    interrupted(index, tmp_path / "x.parquet")
    related_all(index, tmp_path / "x.parquet", ids=True)
    related_all(index, tmp_path / "y.parquet", ids=True)
    assert (tmp_path / "x.parquet").read_bytes() == (tmp_path / "y.parquet").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0; it must be a whole number, 1 or more"),
        ({"min_score": -1}, "min_score is -1; it must be a number, 0 or more"),
        ({"nodes": "alone 1"}, "nodes is a single string; pass a list of names"),
        ({"color": "red"}, "psimrank has no setting 'color' when asking"),
        ({"threads": 0}, "threads"),
        ({"nodes": ["alone 1", "alone 77"]}, "no node is named 'alone 77'"),
    ],
)
def test_related_all_rejects_invalid_options_first(
    index: Index, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        related_all(index, tmp_path / "x.parquet", **options)
    assert isinstance(refused.value, UnknownNode) == message.startswith("no node")
    assert os.listdir(tmp_path) == []


def test_related_all_overwrites_only_on_request(index: Index, tmp_path: Path) -> None:
    output = tmp_path / "x.csv"
    output.write_text("mine")
    with pytest.raises(OutputExists, match="Choose another output, or pass --overwrite"):
        related_all(index, output)
    assert output.read_text() == "mine"
    related_all(index, output, overwrite=True)
    assert output.read_text().startswith("node,rank,related,score,stderr\n")
    message = r"ends in '.npy'; it must end in one of .parquet, .csv, .tsv, .jsonl"
    with pytest.raises(UsageError, match=message):
        related_all(index, tmp_path / "x.npy")
    (tmp_path / "y.csv").mkdir()
    with pytest.raises(OutputExists, match=r"y\.csv is a directory\. Choose a file in it"):
        related_all(index, tmp_path / "y.csv", overwrite=True)


@pytest.mark.usefixtures("small")
def test_batch_resumes_after_full_disk(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        """A file on a full disk."""

        def __init__(self, file: Any) -> None:
            self.name = file.name

        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    original, writes_left = disk.write, 9

    def write(file: Any, data: Any) -> None:
        nonlocal writes_left
        writes_left -= 1
        original(file if writes_left > 0 else Full(file), data)  # type: ignore[arg-type]

    monkeypatch.setattr(disk, "write", write)
    message = "Free some space or choose another output, and run the"
    with pytest.raises(ResourceError, match=message):
        related_all(index, tmp_path / "x.csv", 5)
    monkeypatch.setattr(disk, "write", original)
    with Batch(index, tmp_path / "x.csv", 5) as batch:
        assert batch.done == 3 * 16
        batch.run()
    assert read(tmp_path / "x.csv")


# -- refinement --------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["simrank", "psimrank"])
def test_related_all_refine_equals_related(
    index: Index, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    """With any threads and pieces; an unrefined batch cannot be resumed as a refined one."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 64)
    graph = find_graph(index.stored)
    estimated = cocite.build(graph, measure=measure, samples=8, length=4)
    nodes = list(estimated.nodes)[::32]
    related_all(estimated, tmp_path / "a.csv", 5, nodes=nodes, refine=True, threads=1)
    related_all(estimated, tmp_path / "b.csv", 5, nodes=nodes, target_error=0.001, threads=2)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    related_all(estimated, tmp_path / "a.parquet", 5, nodes=nodes, refine=True)
    assert read(tmp_path / "a.parquet") == [
        (node, rank, *hit)
        for node in nodes
        for rank, hit in enumerate(estimated.related(node, 5, refine=True), 1)
    ]
    with pytest.raises(UsageError, match="target_error is 7"):
        related_all(estimated, tmp_path / "c.csv", target_error=7)
    with Batch(estimated, tmp_path / "d.csv", 5), pytest.raises(Busy):
        Batch(estimated, tmp_path / "d.csv", 5).__enter__()
    interrupted(estimated, tmp_path / "d.csv", k=5)
    with pytest.raises(UsageError, match=r"settings: target error: none, here 0\.001"):
        related_all(estimated, tmp_path / "d.csv", 5, refine=True)
