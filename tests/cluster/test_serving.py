"""Samples that answer from Ray nodes: all of them give the answers of the index, and servers that
are killed, asleep or slow cost samples, but no answer.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Index
from cocite.cluster.ray import Cluster
from cocite.errors import WorkerLost
from cocite.search.remote.index import RemoteShards
from cocite.search.remote.replicas import ReplicaSet
from tests.clock import LIMIT, wait_for
from tests.sampled import near_graph

SAMPLES, SHARDS, NODES = 40, 8, 4
DEADLINE = 1.0
"""Seconds, for several nodes on a machine that may be busy."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("serving")
    graph = near_graph(folder)
    return cocite.build(graph, folder / "i", measure="psimrank", samples=SAMPLES)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with Cluster.connect(f"local:{NODES}") as found:
        yield found


@pytest.fixture(scope="module")
def remote_index(index: Index, nodes: Cluster) -> Iterator[Index]:
    path: Path = index.stored.store.path
    found = cocite.open(path, cluster=nodes, shards=SHARDS, deadline=1000 * DEADLINE)
    assert found.remote is not None
    with found:
        yield found


def remote_of(index: Index) -> RemoteShards:
    assert index.remote is not None
    return index.remote


def answering_samples(remote_index: Index) -> int:
    """The number of samples that answer a query now; it has an answer in any case."""
    hits = remote_index.related("n3", 5)
    assert hits
    assert all(hit.low <= hit.score <= hit.high for hit in hits)
    assert remote_index.answered is not None
    return remote_index.answered.samples


def wait_for_all_samples(remote_index: Index) -> None:
    """Query until all samples answer."""
    wait_for(lambda: answering_samples(remote_index) == SAMPLES)


def server_processes(remote_index: Index, nodes: Cluster) -> list[int]:
    """The process of each shard's server, once it responds."""
    replicas = remote_of(remote_index).replicas
    assert isinstance(replicas, ReplicaSet)
    return [_process(nodes, server.actor) for (server,) in replicas._servers]


def _process(nodes: Cluster, actor: Any) -> int:
    def process() -> int:
        """Calls to a restarting server wait or fail."""
        with suppress(WorkerLost):
            return int(nodes.get(actor.call("holds"), LIMIT).process)
        return 0

    return wait_for(process)


def busiest(remote_index: Index, nodes: Cluster) -> int:
    """The number of the node, other than the head, that runs most servers.

    Ray does not always place a server on the requested node, so a node may have none.
    """
    from ray._private.state import actors

    replicas = remote_of(remote_index).replicas
    assert isinstance(replicas, ReplicaSet)
    placed = [
        actors(server.actor.handle._actor_id.hex())["Address"]["NodeID"]
        for (server,) in replicas._servers
    ]
    return max(range(1, NODES), key=lambda number: placed.count(nodes.nodes()[number].id))


def wait_until_healed(remote_index: Index, nodes: Cluster) -> None:
    """Wait until all servers run again and all samples answer."""
    server_processes(remote_index, nodes)
    wait_for_all_samples(remote_index)


def test_remote_shards_equal_local_index(remote_index: Index, index: Index) -> None:
    for name in ("n3", "n7", "n41"):
        wait_for_all_samples(remote_index)
        assert remote_index.related(name, 7) == index.related(name, 7)
        assert remote_index.similarity(name, "n5") == index.similarity(name, "n5")
        assert remote_index.why(name, "n5") == index.why(name, "n5")
    assert remote_index.answered == (SAMPLES, SHARDS, SHARDS)
    assert len({each.node for each in remote_of(remote_index).replicas.status()}) == NODES


def test_remote_shards_skip_sleeping_server(remote_index: Index, nodes: Cluster) -> None:
    sleeping = server_processes(remote_index, nodes)[2]
    os.kill(sleeping, signal.SIGSTOP)
    try:  # test_replicas.py tests how long each query waits
        assert all(answering_samples(remote_index) < SAMPLES for _ in range(20))
        assert [each.state for each in remote_of(remote_index).replicas.status()].count(
            "left alone"
        ) >= 1
    finally:
        os.kill(sleeping, signal.SIGCONT)
    wait_until_healed(remote_index, nodes)


def test_remote_shards_survive_killed_servers(remote_index: Index, nodes: Cluster) -> None:
    for process in server_processes(remote_index, nodes)[1:4]:
        os.kill(process, signal.SIGKILL)
    found = [answering_samples(remote_index) for _ in range(5)]
    assert SAMPLES // SHARDS <= min(found) < SAMPLES
    wait_until_healed(remote_index, nodes)

    def restarts() -> bool:
        """A restarted server reports its new process at the next query."""
        answering_samples(remote_index)
        return sum(each.restarts for each in remote_of(remote_index).replicas.status()) >= 3

    wait_for(restarts)


def test_remote_shards_survive_killed_node(remote_index: Index, nodes: Cluster) -> None:
    """No query fails; samples drop, and return with the servers on other nodes."""
    wait_for_all_samples(remote_index)
    nodes.kill_node(busiest(remote_index, nodes))
    # Its servers end shortly after it.
    fallen = wait_for(lambda: (found := answering_samples(remote_index)) < SAMPLES and found)
    assert SAMPLES // SHARDS <= fallen < SAMPLES
    wait_until_healed(remote_index, nodes)
    assert answering_samples(remote_index) == SAMPLES
