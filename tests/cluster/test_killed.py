"""A node that is killed in the middle costs time, and nothing else."""

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
from tests.cluster.work import Counter, Noted

MB = 1 << 20


def under_way(folder: Path, node: str) -> set[int]:
    """The items that a node is at, one at least, which do not end before they are let."""
    begun = {int(path.name.split()[0]) for path in folder.glob(f"* {node} begun")}
    return begun - {int(path.name.split()[0]) for path in folder.glob("* done")}


def test_items_of_a_node_that_is_killed_are_done_again(tmp_path: Path) -> None:
    with Cluster.connect("local:3") as cluster:
        with pytest.raises(UsageError, match="0 is the head"):
            cluster.kill_node(0)
        work = cluster.in_order(Noted(tmp_path), range(6), threads=1, memory=MB)
        (tmp_path / "0").touch()
        found = [next(work)]
        one = cluster.nodes()[1].id
        at_work = wait_for(lambda: under_way(tmp_path, one))
        cluster.kill_node(1)
        (tmp_path / "all").touch()
        found += work
        assert found == list(range(1000, 1006))
        done = [path.name.split() for path in tmp_path.iterdir() if path.name.endswith("done")]
        assert sorted(int(number) for number, *_ in done) == list(range(6))
        elsewhere = {int(number) for number, node, _ in done if node != one}
        assert at_work <= elsewhere  # what was lost was done again
        # Ray looks at nodes now and then
        wait_for(lambda: [node.alive for node in cluster.nodes()] == [True, False, True])

        two = cluster.nodes()[2].id
        (actor,) = cluster.actors(Counter, [(1,)], threads=1, memory=MB, restarts=0, nodes=[two])
        assert cluster.get(actor.call("add", 1)) == 2
        cluster.kill_node(2)
        with pytest.raises(WorkerLost):
            cluster.get(actor.call("add", 1), LIMIT)


def test_a_build_whose_node_is_killed_has_the_same_bytes(tmp_path: Path) -> None:
    graph = cocite.generate_web(tmp_path / "web.graph", nodes=20_000, links=150_000, seed=3)
    options = BuildOptions.checked("psimrank", settings={"samples": 40})
    means = Resources.checked(shard=2)
    with IndexBuild(graph, tmp_path / "here.index", options, means) as work:
        work.run()
    with Cluster.connect("local:3") as cluster:
        spread = ClusterBuild(cluster, None, None)
        killed: list[int] = []

        def progress(done: int, total: int) -> None:
            if done >= 8 and not killed:
                cluster.kill_node(2)
                killed.append(done)

        each = of_nodes(spread, means, None, None)
        with IndexBuild(graph, tmp_path / "there.index", options, each, spread=spread) as work:
            work.run(progress)
        assert killed
        assert killed[0] < 40
        wait_for(lambda: not cluster.nodes()[2].alive)  # a small build may be done before
        assert [node.alive for node in cluster.nodes()] == [True, True, False]
    assert files(tmp_path / "there.index") == files(tmp_path / "here.index")


_HEADLESS = """
import sys
from pathlib import Path
from cocite.cluster.ray import Cluster, cluster
from tests.cluster.work import Noted
cluster._LOOK, cluster._LOOKS = 0.2, 3
with Cluster.connect("local:1") as found:
    list(found.in_order(Noted(Path(sys.argv[1])), [1], threads=1, memory=1 << 20))
"""


def test_a_head_node_that_is_gone_ends_the_command(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", _HEADLESS, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    try:
        wait_for(lambda: list(tmp_path.iterdir()) or run.poll() is not None, 2 * LIMIT)
        assert run.poll() is None
        family = psutil.Process(run.pid).children(recursive=True)
        (head,) = [each for each in family if each.name() == "gcs_server"]
        head.kill()
        _, told = run.communicate(timeout=240)
    finally:
        run.kill()
    assert run.returncode == 1
    assert "the head node of the cluster" in told
    assert "has stopped responding" in told
