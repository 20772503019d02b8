"""Ranks from disk, block by block, within the memory limit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import Damaged, NotConverged, ResourceError, UsageError
from cocite.ranking import pagerank, plan_ranks
from cocite.resources import format_size
from tests.conftest import MakeGraph


@pytest.fixture
def graph(make_graph: MakeGraph) -> cocite.Graph:
    rng = np.random.default_rng(5)
    return make_graph([(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400])


def test_plan_ranks_memory_sets_blocks(
    graph: cocite.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.ranking.vectors.LEAST", 1)
    rooms = {memory: plan_ranks(graph, memory) for memory in (3_000, 8_000, 10**6)}
    assert rooms[10**6].blocks == 0
    assert 1 < rooms[8_000].blocks < rooms[3_000].blocks
    for memory, room in rooms.items():
        assert pagerank(graph, memory=memory).blocks == max(1, room.blocks)
    descriptions = [str(rooms[memory]) for memory in (3_000, 10**6)]
    assert descriptions[0].startswith("3 kB of memory, which holds one of ")
    assert " blocks; the rest is on disk, with up to " in descriptions[0]
    taken = rooms[10**6].taken
    assert taken is not None
    assert descriptions[1] == f"{format_size(taken)} of memory, which holds the graph and the ranks"


def test_plan_ranks_counts_weights(make_graph: MakeGraph) -> None:
    """Memory for the links alone does not hold their weights."""
    graph = make_graph([(a, b, 1 + a) for a in range(60) for b in range(60)], weight_column=3)
    memory = 166 * graph.nodes + 8 * graph.edges
    assert plan_ranks(graph, memory).blocks == 0
    with pytest.raises(ResourceError, match="any number of blocks"):
        plan_ranks(graph, memory, weighted=True)
    assert plan_ranks(graph, memory + 15 * graph.nodes + 8 * graph.edges, True).blocks == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"blocks": 0}, UsageError, "blocks is 0; it must be a whole number, 1 or more"),
        (
            {"memory": 9000},
            ResourceError,
            "needs .* of memory, with any number of blocks; the limit is 9 kB",
        ),
        ({"memory": "1MB", "blocks": 9}, ResourceError, "any number of blocks; the limit is 1 MB"),
    ],
)
def test_pagerank_refuses_invalid_blocks_and_memory(
    graph: cocite.Graph, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pagerank(graph, **options)


def test_pagerank_refuses_too_few_blocks(tmp_path: Path) -> None:
    graph = cocite.generate_web(
        tmp_path / "g", nodes=400_000, links=10_000, seed=1, names="integers"
    )
    with pytest.raises(
        ResourceError, match=r"1 block needs .* or request more blocks with --blocks"
    ):
        pagerank(graph, memory="9MB", blocks=1)
    assert plan_ranks(graph, 9_000_000, blocks=2).memory == 9_000_000


@pytest.mark.parametrize("options", [{}, {"blocks": 2}])
def test_pagerank_detects_wrong_degrees(graph: cocite.Graph, options: dict[str, Any]) -> None:
    """A kernel would read a missing node number, far behind the end of z."""
    file = graph.path / "out_degrees"
    degrees = np.fromfile(file, np.uint32)
    degrees[degrees.argmax()] = 0
    file.chmod(0o644)
    file.write_bytes(degrees.tobytes())
    with pytest.raises(Damaged, match="its out-degrees do not match its links"):
        pagerank(cocite.Graph.open(graph.path, verify=False), **options)


@pytest.mark.parametrize("options", [{}, {"blocks": 2}])
def test_pagerank_refuses_non_finite_ranks(graph: cocite.Graph, options: dict[str, Any]) -> None:
    """1e300 is not finite in single precision."""
    start = np.full(graph.nodes, 1e300)
    assert pagerank(graph, start=start, **options).convergence.converged
    with pytest.raises(NotConverged, match=r"not finite after sweep 0: .* Use double"):
        pagerank(graph, start=start, precision="single", **options)
    with pytest.raises(UsageError, match="with a finite sum"):
        pagerank(graph, start=np.full(graph.nodes, 1e308), **options)


@pytest.mark.long
def test_rank_handles_300_000_pages_in_20_mb(
    data: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = cocite.ingest(data("web-NotreDame/web-NotreDame.txt.gz"), tmp_path / "g")
    for memory in ("20MB", "9MB"):
        out = str(tmp_path / f"{memory}.npy")
        assert main(["rank", str(graph.path), "--memory", memory, "-o", out]) == 0
        assert np.load(out).tobytes() == pagerank(graph).values.tobytes()
    assert "of memory, which holds the data that is read at random" in capsys.readouterr().err


def test_rank_refuses_empty_graph(
    empty_graph: cocite.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(empty_graph.path)
    for extra in ([], ["--blocks", "2"]):
        assert main(["rank", path, *extra]) == 2
        assert "has no nodes, so there is nothing to rank" in capsys.readouterr().err
