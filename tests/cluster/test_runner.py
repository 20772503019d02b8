"""A cluster does items in order, actors keep state, and errors keep their type."""

import subprocess
import sys
from pathlib import Path

import pytest

from cocite.cluster.ray import Cluster
from cocite.cluster.ray import cluster as module
from cocite.errors import ClusterError, QueryTimeout, UnknownNode, UsageError
from tests.clock import LIMIT
from tests.cluster.work import Counter, Meeting, Recorded, fails_at_3_and_4, square

MB = 1 << 20


def test_in_order_spreads_items_over_nodes(cluster: Cluster, tmp_path: Path) -> None:
    nodes = cluster.nodes()
    assert len(nodes) == 3
    assert all(node.alive and node.cpus and node.memory for node in nodes)
    found = list(cluster.in_order(square, range(40), threads=1, memory=MB))
    assert found == [number**2 for number in range(40)]
    meeting = Meeting(tmp_path)
    assert len(set(cluster.in_order(meeting, range(12), threads=1, memory=MB))) > 1


def test_in_order_begins_at_most_ahead_items(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "all").touch()
    work = cluster.in_order(Recorded(tmp_path), iter(range(50)), threads=1, memory=MB, ahead=4)
    for done in range(1, 40):
        assert next(work) == 999 + done
        assert len(list(tmp_path.glob("*begun"))) <= done + 4
    work.close()  # type: ignore[attr-defined]


def test_in_order_raises_original_error(cluster: Cluster) -> None:
    work = cluster.in_order(fails_at_3_and_4, range(6), threads=1, memory=MB)
    assert [next(work) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(UnknownNode, match="the nearest name is 'Zebra'") as found:
        next(work)
    assert found.value.suggestions == ("Zebra",)
    assert found.value.__notes__ == ["look again"]
    with pytest.raises(ZeroDivisionError, match="by nothing"):
        list(cluster.in_order(fails_at_3_and_4, [4], threads=1, memory=MB))


def test_in_order_refuses_impossible_work(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="no node of the cluster has 500 threads"):
        next(cluster.in_order(square, [1], threads=500, memory=MB))
    with pytest.raises(UsageError, match="990 TB of memory"):
        next(cluster.in_order(square, [1], threads=1, memory=900 << 40))


def test_actors_keep_state_and_pass_answers(cluster: Cluster, tmp_path: Path) -> None:
    one, two = cluster.actors(Counter, [(1,), (10,)], threads=1, memory=MB, restarts=0)
    assert cluster.get(one.call("add", 5)) == 6
    sent = one.call("add", 1)
    assert cluster.get(two.call("add", sent)) == 17  # an answer may be an argument of another actor
    low, high = two.call_for(2, "halves")
    assert (cluster.get(low), cluster.get(high)) == (8, 9)
    assert cluster.get(cluster.put([1, 2])) == [1, 2]
    slow = one.call("wait", tmp_path / "there")
    done, waiting = cluster.wait([slow, two.call("add", 0)])  # for one of them
    assert (len(done), waiting) == (1, [slow])
    with pytest.raises(QueryTimeout):
        cluster.get(slow, 0.1)
    assert not one.alive(0.2)
    assert two.alive(LIMIT)
    (tmp_path / "there").touch()
    assert cluster.get(slow) == "done"
    for actor in (one, two):
        actor.kill()


def test_actor_call_raises_constructor_error(cluster: Cluster) -> None:
    actor, *_ = cluster.actors(Counter, [(-1,)], threads=1, memory=MB, restarts=0)
    with pytest.raises(UsageError, match="start is below 0"):
        cluster.get(actor.call("add", 1))
    low, high = actor.call_for(2, "halves")
    for each in (low, high):
        with pytest.raises(UsageError, match="start is below 0"):
            cluster.get(each)
    actor.kill()


def test_check_versions_names_differences(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "__version__", "0.0.7")
    message = r"has different versions.*here 0\.0\.7.*the same versions on all"
    with pytest.raises(ClusterError, match=message):
        cluster._check_versions()


def test_connect_refuses_second_connection(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="one at a time"):
        Cluster.connect("local:2")


def test_connect_refuses_invalid_or_unreachable_address() -> None:
    addresses = ["local:0", "local:x", "local:65", "nowhere", "a:b", "host:99999"]
    code = f"""
from cocite.errors import ClusterError, UsageError
from cocite.cluster.ray import Cluster
for address in {addresses}:
    try:
        Cluster.connect(address)
    except UsageError as error:
        assert "local:N" in str(error), address
        print(address)
try:
    Cluster.connect("127.0.0.1:1")
except ClusterError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *refused, unreachable = found.stdout.splitlines()
    assert refused == addresses
    assert unreachable.startswith("no cluster answers at 127.0.0.1:1")
