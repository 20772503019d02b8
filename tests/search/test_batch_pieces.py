"""Pieces of a batch: cut by the clock, kept in any order, missing where none is."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cocite
from cocite.search.batch.pieces import BatchHits, PieceRecord, piece_of
from tests.clock import HOLD
from tests.conftest import MakeGraph


def hits_of(node: int) -> BatchHits:
    """Node i has i % 3 hits, whose ids and numbers tell whose they are."""
    ids = np.full(node % 3, node, np.uint32)
    return BatchHits(ids, np.column_stack((ids / 7, ids / 11)))


@given(ends=st.lists(st.integers(1, 59), max_size=6))
def test_rows_of_any_piece(tmp_path_factory: pytest.TempPathFactory, ends: list[int]) -> None:
    path = tmp_path_factory.mktemp("pieces") / "pieces"
    cuts = sorted({0, 60, *ends})
    runs = [range(a, b) for a, b in pairwise(cuts)]
    rng = np.random.default_rng(len(ends))
    rng.shuffle(runs)
    half = len(runs) // 2
    with PieceRecord(path, 60, 5) as kept:
        for run in runs[:half]:
            kept.add(piece_of(run, hits_of, Event()))
        missing = kept.missing
    covered = {place for run in runs[:half] for place in run}
    assert {place for run in missing for place in run} == set(range(60)) - covered
    with PieceRecord(path, 60, 5) as kept:
        assert (kept.done, kept.missing) == (len(covered), missing)
        for run in missing:
            kept.add(piece_of(run, hits_of, Event()))
        assert (kept.done, kept.missing) == (60, [])
        rows = kept.rows()
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
def test_finished_pieces_survive_a_slow_one(make_graph: MakeGraph, tmp_path: Path) -> None:
    """Killed after some seconds, of what would be pieces of thousands of slow questions."""
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
