"""A node that is killed in the middle of work costs time, and nothing else."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import cocite
from cocite.cluster.ray import Cluster
from cocite.errors import UsageError, WorkerLost
from cocite.index.build import IndexBuild
from cocite.index.cluster import ClusterBuild, of_nodes
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.builds import files
from tests.clock import LIMIT, wait_for
from tests.cluster.work import Counter, Recorded

MB = 1 << 20


def items_in_progress(folder: Path, node: str) -> set[int]:
    """The items that a node has begun and not finished."""
    begun = {int(path.name.split()[0]) for path in folder.glob(f"* {node} begun")}
    return begun - {int(path.name.split()[0]) for path in folder.glob("* done")}


def test_in_order_repeats_items_of_killed_node(tmp_path: Path) -> None:
    with Cluster.connect("local:3") as cluster:
        with pytest.raises(UsageError, match="0 is the head"):
            cluster.kill_node(0)
        work = cluster.in_order(Recorded(tmp_path), range(6), threads=1, memory=MB)
        (tmp_path / "0").touch()
        found = [next(work)]
        first = cluster.nodes()[1].id
        interrupted = wait_for(lambda: items_in_progress(tmp_path, first))
        cluster.kill_node(1)
        (tmp_path / "all").touch()
        found += work
        assert found == list(range(1000, 1006))
        done = [path.name.split() for path in tmp_path.iterdir() if path.name.endswith("done")]
        assert sorted(int(number) for number, *_ in done) == list(range(6))
        repeated = {int(number) for number, node, _ in done if node != first}
        assert interrupted <= repeated  # lost items were done again
        # Ray checks nodes periodically
        wait_for(lambda: [node.alive for node in cluster.nodes()] == [True, False, True])

        second = cluster.nodes()[2].id
        (actor,) = cluster.actors(Counter, [(1,)], threads=1, memory=MB, restarts=0, nodes=[second])
        assert cluster.get(actor.call("add", 1)) == 2
        cluster.kill_node(2)
        with pytest.raises(WorkerLost):
            cluster.get(actor.call("add", 1), LIMIT)


def test_cluster_build_survives_killed_node(tmp_path: Path) -> None:
    graph = cocite.generate_web(tmp_path / "web.graph", nodes=20_000, links=150_000, seed=3)
    options = BuildOptions.checked("psimrank", settings={"samples": 40})
    limits = Resources.checked(shard=2)
    with IndexBuild(graph, tmp_path / "here.index", options, limits) as work:
        work.run()
    with Cluster.connect("local:3") as cluster:
        cluster_build = ClusterBuild(cluster, None, None)
        killed: list[int] = []

        def progress(done: int, total: int) -> None:
            if done >= 8 and not killed:
                cluster.kill_node(2)
                killed.append(done)

        node_limits = of_nodes(cluster_build, limits, None, None)
        with IndexBuild(
            graph, tmp_path / "there.index", options, node_limits, spread=cluster_build
        ) as work:
            work.run(progress)
        assert killed
        assert killed[0] < 40
        wait_for(lambda: not cluster.nodes()[2].alive)  # a small build may end before
        assert [node.alive for node in cluster.nodes()] == [True, True, False]
    assert files(tmp_path / "there.index") == files(tmp_path / "here.index")


_COMMAND = """
import sys
from pathlib import Path
from cocite.cluster.ray import Cluster, cluster
from tests.cluster.work import Recorded
cluster._LOOK, cluster._LOOKS = 0.2, 3
with Cluster.connect("local:1") as found:
    list(found.in_order(Recorded(Path(sys.argv[1])), [1], threads=1, memory=1 << 20))
"""


def test_in_order_ends_when_head_node_dies(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    try:
        wait_for(lambda: list(tmp_path.iterdir()) or run.poll() is not None, 2 * LIMIT)
        assert run.poll() is None
        processes = psutil.Process(run.pid).children(recursive=True)
        (head,) = [process for process in processes if process.name() == "gcs_server"]
        head.kill()
        _, stderr = run.communicate(timeout=240)
    finally:
        run.kill()
    assert run.returncode == 1
    assert "the head node of the cluster" in stderr
    assert "has stopped responding" in stderr
