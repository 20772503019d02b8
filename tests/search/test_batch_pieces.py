"""Pieces of a batch: cut by time, stored in any order, and extrapolated to the whole batch."""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cocite
from cocite import Index
from cocite.constants import Ids
from cocite.errors import ResourceError
from cocite.options.query import DEFAULT_K
from cocite.search.batch import estimate, pieces
from cocite.search.batch.pieces import BatchHits, PieceRecord, Question, piece_of
from cocite.search.batch.run import Batch, plan_related_all
from cocite.search.source import find_graph
from tests.clock import HOLD, ThreadClock
from tests.conftest import CliJson, MakeGraph, Shell


def hits_of(node: int) -> BatchHits:
    """Give node i i % 3 hits, whose ids and numbers identify the node."""
    ids = np.full(node % 3, node, np.uint32)
    return BatchHits(ids, np.column_stack((ids / 7, ids / 11)))


@given(ends=st.lists(st.integers(1, 59), max_size=6))
def test_piece_record_restores_rows_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, ends: list[int]
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "pieces"
    cuts = sorted({0, 60, *ends})
    runs = [range(a, b) for a, b in pairwise(cuts)]
    rng = np.random.default_rng(len(ends))
    rng.shuffle(runs)
    half = len(runs) // 2
    with PieceRecord(path, 60, 5) as record:
        for run in runs[:half]:
            record.add(piece_of(run, hits_of, Event()))
        missing = record.missing
    done = {node for run in runs[:half] for node in run}
    assert {node for run in missing for node in run} == set(range(60)) - done
    with PieceRecord(path, 60, 5) as record:
        assert (record.done, record.missing) == (len(done), missing)
        for run in missing:
            record.add(piece_of(run, hits_of, Event()))
        assert (record.done, record.missing) == (60, [])
        rows = record.rows()
    for node in range(60):
        counts, found = rows.of(slice(node, node + 1))
        assert counts.tolist() == [node % 3]
        assert found[:, 0].tolist() == [node] * (node % 3)


_SLOW = f"""
import os, sys
import cocite
from cocite.search.batch import pieces
from cocite.search.batch.pieces import Question
from tests.clock import ThreadClock
{HOLD}
pieces.time = clock = ThreadClock()
real, journal = Question.each, sys.argv[3]

def each(self, nodes):
    for hits in real(self, nodes):
        if os.path.exists(journal) and os.path.getsize(journal) > 2000:
            hold()
        clock.sleep(1.0)
        yield hits

Question.each = each
cocite.open(sys.argv[1]).related_all(sys.argv[2], 5, threads=1)
"""


@pytest.mark.process
@pytest.mark.chosen
def test_batch_keeps_finished_pieces_when_killed(make_graph: MakeGraph, tmp_path: Path) -> None:
    """Each query takes a second, so pieces are small; the process is killed in mid-batch."""
    rng = np.random.default_rng(1)
    graph = make_graph(rng.integers(0, 3000, (9000, 2)).tolist())
    index = cocite.build(graph, tmp_path / "i", samples=5, measure="psimrank")
    index.related_all(tmp_path / "whole.csv", 5)
    output, journal = tmp_path / "x.csv", tmp_path / "x.csv.building" / "pieces"
    command = [sys.executable, "-c", _SLOW, *map(str, (tmp_path / "i", output, journal))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        child.kill()
    report = index.related_all(output, 5)
    assert 0 < len(index.nodes) - report.nodes < len(index.nodes)
    assert output.read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.fixture(scope="module")
def index(module_graph: MakeGraph) -> Index:
    """1,500 pages with names and link counts of very different sizes."""
    links = (np.random.default_rng(3).random((10_000, 2)) ** 2 * 1500).astype(int)
    names = [f"http://site{i % 7}.org/page/{'x' * (i % 30)}{i}" for i in range(1500)]
    graph = module_graph([(names[a], names[b]) for a, b in links.tolist()])
    return cocite.build(graph, samples=20, measure="psimrank")


@pytest.mark.parametrize(
    ("measure", "kind"),
    [
        ("psimrank", "folder"),
        ("neighborhood", "csv"),
        pytest.param("psimrank", "parquet", marks=pytest.mark.long),
        pytest.param("psimrank", "jsonl", marks=pytest.mark.long),
    ],
)
def test_batch_estimate_predicts_rows_and_bytes(
    index: Index, tmp_path: Path, measure: str, kind: str
) -> None:
    if measure == "neighborhood":
        index = cocite.build(find_graph(index.stored))
    index.related_all(tmp_path / "whole", 10, kind=kind)
    with Batch(index, tmp_path / "x", 10, kind=kind) as batch:
        plan = batch.estimate()
        assert plan is not None
        assert 100 < plan.sampled <= batch.done < batch.nodes
        report = batch.run()
    assert plan.hits == pytest.approx(report.rows, rel=0.2)
    assert report.bytes is not None
    assert report.bytes / 1.5 < plan.bytes < report.bytes * 1.5
    assert plan.disk > plan.bytes
    assert plan.memory < 2**30
    if kind == "folder":
        for page in (tmp_path / "whole").rglob("*.json"):
            resumed = tmp_path / "x" / page.relative_to(tmp_path / "whole")
            assert resumed.read_bytes() == page.read_bytes()
    else:
        assert (tmp_path / "x").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ThreadClock:
    """A clock that counts the time of queries, not that of writing."""
    thread_clock = ThreadClock()
    for module in (pieces, estimate):
        monkeypatch.setattr(module, "time", thread_clock)
    return thread_clock


@pytest.mark.parametrize("threads", [1, 2])
def test_batch_estimate_predicts_time_within_half(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ThreadClock, threads: int
) -> None:
    """The last third of the nodes takes nine times as long as the others."""
    monkeypatch.setattr(estimate, "_STRATA", 60)
    monkeypatch.setattr(estimate, "_SECONDS", 30.0)
    original = Question.each

    def slow(self: Question, nodes: Ids) -> Iterator[BatchHits]:
        for node, hits in zip(nodes.tolist(), original(self, nodes), strict=True):
            clock.sleep(0.036 if node >= 1000 else 0.004)
            yield hits

    monkeypatch.setattr(Question, "each", slow)
    with Batch(index, tmp_path / "x.csv", threads=threads) as batch:
        plan = batch.estimate()
    assert plan is not None
    expected = (1000 * 0.004 + 500 * 0.036) / threads
    assert expected / 1.5 < plan.seconds < expected * 1.5
    assert plan.threads == threads


def test_batch_estimate_is_none_for_finished_work(index: Index, tmp_path: Path) -> None:
    names = list(index.nodes)[:30]
    with Batch(index, tmp_path / "x.csv", nodes=names) as batch:
        assert batch.estimate() is None
        assert batch.done == 30
        batch.run()
    with Batch(index, tmp_path / "y.csv", nodes=[]) as batch:
        assert batch.estimate() is None


def test_plan_related_all_leaves_no_files(index: Index, tmp_path: Path) -> None:
    plan = plan_related_all(index, 5, scratch=tmp_path, kind="jsonl", min_score=0.01)
    assert plan.nodes == len(index.nodes)
    assert plan.sampled < plan.nodes
    small = plan_related_all(index, 5, scratch=tmp_path, nodes=list(index.nodes)[:30])
    assert (small.nodes, small.sampled) == (30, 30)
    assert small.hits <= 150
    assert os.listdir(tmp_path) == []
    with pytest.raises(ResourceError, match="cannot create a temporary directory for the"):
        plan_related_all(index, scratch=tmp_path / "none")


def test_related_all_command_prints_estimate(
    index: Index, tmp_path: Path, shell: Shell, cli_json: CliJson
) -> None:
    path = index.stored.store.path
    printed = shell(["related-all", path, "-o", tmp_path / "x.csv", "--threads", "1"])
    lines = printed.err.splitlines()
    hits = f"up to {DEFAULT_K} hits for each of {len(index.nodes):,} nodes"
    assert lines[0] == f"{tmp_path / 'x.csv'}: {hits}"
    assert lines[1].startswith("about ")
    assert " on 1 thread, " in lines[1]
    assert " of output, " in lines[1]
    command = ["plan", path, "-k", "5", "--scratch", tmp_path]
    facts = cli_json(*command, "--decay", "0.5")
    assert facts["nodes"] == len(index.nodes)
    assert {"hits", "seconds", "memory", "index", "bytes", "disk", "sampled"} < set(facts)
    assert "up to 5 hits per node" in shell(command).out
    message = "--samples applies only when building an index"
    assert message in shell([*command, "--samples", "5"], 2).err
    graph = find_graph(index.stored).path
    assert "-k requires an index" in shell(["plan", graph, "-k", "5"], 2).err
