"""A graph in blocks on several nodes: the bytes of one machine, also if somebody is killed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cocite.cluster.ray import Cluster
from cocite.cluster.workers import ClusterPool
from cocite.errors import WorkerLost
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.ranking import pagerank
from cocite.resources import Resources
from tests.builds import files
from tests.clock import wait_for
from tests.cluster.work import Counter
from tests.conftest import MakeGraph
from tests.index.test_external import tangled
from tests.index.test_in_blocks import built, in_blocks


def hired(cluster: Cluster) -> tuple[Callable[..., ClusterPool], list[ClusterPool]]:
    """What makes pools, and the pools that it made."""
    pools: list[ClusterPool] = []

    def hire(*arguments: Any) -> ClusterPool:
        pools.append(ClusterPool(cluster, *arguments))
        return pools[-1]

    return hire, pools


@pytest.mark.parametrize("measure", ["simrank", "psimrank"])
def test_an_index_is_the_same_to_the_byte(
    make_graph: MakeGraph, tmp_path: Path, cluster: Cluster, measure: str
) -> None:
    graph = tangled(make_graph)
    blocked = in_blocks(graph, tmp_path / "split", 4, hired(cluster)[0])
    found = built(blocked, tmp_path / "split" / "x.index", measure, memory="50MB")
    whole = built(graph, graph.path.parent / "x.index", measure)
    assert found == whole


def test_ranks_equal_to_the_bit(make_graph: MakeGraph, tmp_path: Path, cluster: Cluster) -> None:
    graph, (hire, crews) = tangled(make_graph), hired(cluster)
    expected = pagerank(graph, tolerance=1e-6)
    sweeps = expected.convergence.sweeps

    def strike(sweep: int, residual: float) -> None:
        if sweep == sweeps // 2 and not crews[-1].lost:
            crews[-1].actors[2].kill(restart=True)

    for killed in (False, True):
        blocked = in_blocks(graph, tmp_path / f"split{killed}", 4, hire)
        progress: Any = {"progress": strike} if killed else {}
        found = pagerank(blocked, tolerance=1e-6, **progress)
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.convergence == expected.convergence
        assert crews[-1].lost == killed


@pytest.mark.parametrize("bits", [0, 5])
def test_scan_survives(make_graph: MakeGraph, tmp_path: Path, cluster: Cluster, bits: int) -> None:
    graph, (hire, crews) = tangled(make_graph), hired(cluster)
    options = BuildOptions.checked("xjaccard", settings={"samples": 9, "seed": 3, "bits": bits})

    def strike(done: int, total: int) -> None:
        if done == 4 and crews and not crews[-1].lost:
            crews[-1].actors[2].kill(restart=True)

    found = []
    for each in (graph, in_blocks(graph, tmp_path / "split", 4, hire)):
        output = each.path.parent / "x.index"
        with IndexBuild(each, output, options, Resources.checked(1, "50MB", shard=4)) as work:
            report = work.run(strike)
        found.append(files(output))
    assert found[0] == found[1]
    assert crews[-1].lost >= 1
    assert report.traffic is not None
    assert report.traffic.values > 0


def build(graph: Any, output: Path, progress: Any) -> None:
    options = BuildOptions.checked("psimrank", settings={"samples": 40, "seed": 3})
    means = Resources.checked(1, "50MB", shard=4)
    with IndexBuild(graph, output, options, means) as work:
        work.run(progress)


def test_killed_nodes_are_idle(make_graph: MakeGraph, tmp_path: Path, cluster: Cluster) -> None:
    """The last test of the file: the cluster has a node less then."""
    graph, (hire, crews) = tangled(make_graph), hired(cluster)
    build(graph, graph.path.parent / "x.index", lambda done, total: None)
    struck: list[int] = []

    def strike(done: int, total: int) -> None:
        """An actor after sample 6, a node after sample 20: in the middle of steps."""
        if done in (6, 20) and done not in struck:
            struck.append(done)
            if done == 6:
                crews[0].actors[1].kill(restart=True)
            else:
                cluster.kill_node(2)
                wait_for(lambda: not cluster.nodes()[2].alive)

    blocked = in_blocks(graph, tmp_path / "split", 4, hire)
    build(blocked, tmp_path / "split" / "x.index", strike)
    assert struck == [6, 20]
    assert [node.alive for node in cluster.nodes()] == [True, True, False]
    assert len(crews) == 1
    assert crews[0].lost >= 2
    assert files(tmp_path / "split" / "x.index") == files(graph.path.parent / "x.index")


def test_who_is_lost_between_two_calls_does_not_answer_as_if_it_knew(cluster: Cluster) -> None:
    crew = ClusterPool(cluster, Counter, [(1,), (5,)], 1 << 20)
    assert crew.take([*crew.call(0, "add", 1), *crew.call(1, "add", 1)]) == [2, 6]
    crew.actors[0].kill(restart=True)

    def gone() -> bool:
        """It may answer until it has really ended."""
        try:
            crew.take(crew.call(0, "add", 0))
        except WorkerLost:
            return True
        return False

    wait_for(gone)
    wait_for(lambda: crew.actors[0].alive(5))
    for _ in range(2):
        with pytest.raises(WorkerLost):
            crew.take(crew.call(0, "add", 1))
    for handle in crew.call(0, "halves", answers=2):
        with pytest.raises(WorkerLost):
            crew.take([handle])
    assert crew.take(crew.call(1, "add", 1)) == [7]
    crew.again()
    assert crew.take([*crew.call(0, "add", 1), *crew.call(1, "add", 1)]) == [2, 8]
