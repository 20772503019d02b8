"""A graph in blocks on several nodes: equal to one machine, even if an actor or node is killed."""

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
from tests.index.test_partitioned import built, in_blocks


def pool_factory(cluster: Cluster) -> tuple[Callable[..., ClusterPool], list[ClusterPool]]:
    """A function that makes pools, and a list of the pools that it made."""
    pools: list[ClusterPool] = []

    def hire(*arguments: Any) -> ClusterPool:
        pools.append(ClusterPool(cluster, *arguments))
        return pools[-1]

    return hire, pools


@pytest.mark.parametrize("measure", ["simrank", "psimrank"])
def test_cluster_pool_index_equals_one_machine(
    make_graph: MakeGraph, tmp_path: Path, cluster: Cluster, measure: str
) -> None:
    graph = tangled(make_graph)
    blocked = in_blocks(graph, tmp_path / "split", 4, pool_factory(cluster)[0])
    found = built(blocked, tmp_path / "split" / "x.index", measure, memory="50MB")
    expected = built(graph, graph.path.parent / "x.index", measure)
    assert found == expected


def test_cluster_pool_pagerank_equals_one_machine(
    make_graph: MakeGraph, tmp_path: Path, cluster: Cluster
) -> None:
    graph, (hire, pools) = tangled(make_graph), pool_factory(cluster)
    expected = pagerank(graph, tolerance=1e-6)
    sweeps = expected.convergence.sweeps

    def kill_actor(sweep: int, residual: float) -> None:
        if sweep == sweeps // 2 and not pools[-1].lost:
            pools[-1].actors[2].kill(restart=True)

    for killed in (False, True):
        blocked = in_blocks(graph, tmp_path / f"split{killed}", 4, hire)
        progress: Any = {"progress": kill_actor} if killed else {}
        found = pagerank(blocked, tolerance=1e-6, **progress)
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.convergence == expected.convergence
        assert pools[-1].lost == killed


@pytest.mark.parametrize("bits", [0, 5])
def test_cluster_pool_scan_survives_killed_actor(
    make_graph: MakeGraph, tmp_path: Path, cluster: Cluster, bits: int
) -> None:
    graph, (hire, pools) = tangled(make_graph), pool_factory(cluster)
    options = BuildOptions.checked("xjaccard", settings={"samples": 9, "seed": 3, "bits": bits})

    def kill_actor(done: int, total: int) -> None:
        if done == 4 and pools and not pools[-1].lost:
            pools[-1].actors[2].kill(restart=True)

    found = []
    for source in (graph, in_blocks(graph, tmp_path / "split", 4, hire)):
        output = source.path.parent / "x.index"
        with IndexBuild(source, output, options, Resources.checked(1, "50MB", shard=4)) as work:
            report = work.run(kill_actor)
        found.append(files(output))
    assert found[0] == found[1]
    assert pools[-1].lost >= 1
    assert report.traffic is not None
    assert report.traffic.values > 0


def build(graph: Any, output: Path, progress: Any) -> None:
    options = BuildOptions.checked("psimrank", settings={"samples": 40, "seed": 3})
    limits = Resources.checked(1, "50MB", shard=4)
    with IndexBuild(graph, output, options, limits) as work:
        work.run(progress)


def test_cluster_pool_build_survives_killed_actor_and_node(
    make_graph: MakeGraph, tmp_path: Path, cluster: Cluster
) -> None:
    """Kills a node of the cluster, which later tests of this file lack."""
    graph, (hire, pools) = tangled(make_graph), pool_factory(cluster)
    build(graph, graph.path.parent / "x.index", lambda done, total: None)
    kills: list[int] = []

    def kill_actor_then_node(done: int, total: int) -> None:
        """Kill an actor after sample 6, and a node after sample 20, in the middle of steps."""
        if done in (6, 20) and done not in kills:
            kills.append(done)
            if done == 6:
                pools[0].actors[1].kill(restart=True)
            else:
                cluster.kill_node(2)
                wait_for(lambda: not cluster.nodes()[2].alive)

    blocked = in_blocks(graph, tmp_path / "split", 4, hire)
    build(blocked, tmp_path / "split" / "x.index", kill_actor_then_node)
    assert kills == [6, 20]
    assert [node.alive for node in cluster.nodes()] == [True, True, False]
    assert len(pools) == 1
    assert pools[0].lost >= 2
    assert files(tmp_path / "split" / "x.index") == files(graph.path.parent / "x.index")


def test_cluster_pool_refuses_calls_to_restarted_actor(cluster: Cluster) -> None:
    pool = ClusterPool(cluster, Counter, [(1,), (5,)], 1 << 20)
    assert pool.take([*pool.call(0, "add", 1), *pool.call(1, "add", 1)]) == [2, 6]
    pool.actors[0].kill(restart=True)

    def actor_is_lost() -> bool:
        """A killed actor may answer until its process has ended."""
        try:
            pool.take(pool.call(0, "add", 0))
        except WorkerLost:
            return True
        return False

    wait_for(actor_is_lost)
    wait_for(lambda: pool.actors[0].alive(5))
    for _ in range(2):
        with pytest.raises(WorkerLost):
            pool.take(pool.call(0, "add", 1))
    for handle in pool.call(0, "halves", answers=2):
        with pytest.raises(WorkerLost):
            pool.take([handle])
    assert pool.take(pool.call(1, "add", 1)) == [7]
    pool.again()
    assert pool.take([*pool.call(0, "add", 1), *pool.call(1, "add", 1)]) == [2, 8]
