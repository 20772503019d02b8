"""A node that is killed in the middle costs time, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import cocite
from cocite.errors import LostWorker, UsageError
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.index.spread import Spread, of_nodes
from cocite.means import Means
from cocite.runner.ray import Cluster
from tests.cluster.work import Counter, Noted

MB = 1 << 20
SECONDS = 5.0
"""Of an item."""


def under_way(folder: Path, node: str) -> set[int]:
    """Wait until a node is at an item that takes seconds more, and has sent what it had before;
    which item, as a set.
    """
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for path in folder.glob(f"* {node} begun"):
            number = path.name.split()[0]
            age = time.time() - path.stat().st_mtime
            if 0.5 < age < SECONDS / 2 and not any(folder.glob(f"{number} * done")):
                return {int(number)}
        time.sleep(0.01)
    raise AssertionError("the node did nothing")


def test_items_of_a_node_that_is_killed_are_done_again(tmp_path: Path) -> None:
    with Cluster.connect("local:3") as cluster:
        with pytest.raises(UsageError, match="0 is the head"):
            cluster.kill_node(0)
        work = cluster.in_order(Noted(tmp_path, SECONDS), range(6), threads=1, memory=MB)
        found = [next(work)]
        one = cluster.nodes()[1].id
        at_work = under_way(tmp_path, one)
        cluster.kill_node(1)
        found += work
        assert found == list(range(1000, 1006))
        done = [path.name.split() for path in tmp_path.iterdir() if path.name.endswith("done")]
        assert sorted(int(number) for number, *_ in done) == list(range(6))
        elsewhere = {int(number) for number, node, _ in done if node != one}
        assert at_work <= elsewhere  # what was lost was done again
        until = time.monotonic() + 60  # Ray looks at nodes now and then
        while [node.alive for node in cluster.nodes()] != [True, False, True]:
            assert time.monotonic() < until
            time.sleep(0.2)

        two = cluster.nodes()[2].id
        (actor,) = cluster.actors(Counter, [(1,)], threads=1, memory=MB, restarts=0, nodes=[two])
        assert cluster.get(actor.call("add", 1)) == 2
        cluster.kill_node(2)
        with pytest.raises(LostWorker):
            cluster.get(actor.call("add", 1), 60)


def test_a_build_whose_node_is_killed_has_the_same_bytes(tmp_path: Path) -> None:
    graph = cocite.generate_web(tmp_path / "web.graph", nodes=20_000, links=150_000, seed=3)
    options = BuildOptions.checked("psimrank", settings={"samples": 40})
    means = Means.checked(shard=2)
    with IndexBuild(graph, tmp_path / "here.index", options, means) as work:
        work.run()
    with Cluster.connect("local:3") as cluster:
        spread = Spread(cluster, None, None)
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
        until = time.monotonic() + 60
        while cluster.nodes()[2].alive and time.monotonic() < until:
            time.sleep(0.1)  # a small build may be done before Ray has noticed
        assert [node.alive for node in cluster.nodes()] == [True, True, False]
    found = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("here.index", "there.index")
    ]
    assert found[0] == found[1]


_HEADLESS = """
import sys
from pathlib import Path
from cocite.runner.ray import Cluster, cluster
from tests.cluster.work import Noted
cluster._LOOK, cluster._LOOKS = 0.2, 3
with Cluster.connect("local:1") as found:
    list(found.in_order(Noted(Path(sys.argv[1]), 600.0), [1], threads=1, memory=1 << 20))
"""


def test_a_head_node_that_is_gone_ends_the_command(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", _HEADLESS, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 240
        while not list(tmp_path.iterdir()):
            assert time.monotonic() < until
            assert run.poll() is None
            time.sleep(0.05)
        family = psutil.Process(run.pid).children(recursive=True)
        (head,) = [each for each in family if each.name() == "gcs_server"]
        head.kill()
        _, told = run.communicate(timeout=240)
    finally:
        run.kill()
    assert run.returncode == 1
    assert "the head node of the cluster" in told
    assert "does not answer any more" in told
