"""Samples that answer from Ray nodes: with all of them the index's answers; whoever is killed,
asleep or slow costs samples, and no answer.
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
"""Seconds: several nodes on a machine that may have much else to do."""


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
def spread(index: Index, nodes: Cluster) -> Iterator[Index]:
    path: Path = index.stored.store.path
    found = cocite.open(path, cluster=nodes, shards=SHARDS, deadline=1000 * DEADLINE)
    assert found.remote is not None
    with found:
        yield found


def remote_of(index: Index) -> RemoteShards:
    assert index.remote is not None
    return index.remote


def samples(spread: Index) -> int:
    """How many answer a question now, which has an answer in any case."""
    hits = spread.related("n3", 5)
    assert hits
    assert all(hit.low <= hit.score <= hit.high for hit in hits)
    assert spread.answered is not None
    return spread.answered.samples


def until_all(spread: Index) -> None:
    """Ask until all samples answer."""
    wait_for(lambda: samples(spread) == SAMPLES)


def processes(spread: Index, nodes: Cluster) -> list[int]:
    """The process of each shard's server, when it says so again."""
    replicas = remote_of(spread).replicas
    assert isinstance(replicas, ReplicaSet)
    return [_process(nodes, server.actor) for (server,) in replicas._servers]


def _process(nodes: Cluster, actor: Any) -> int:
    def process() -> int:
        """Some calls wait for a server that is started again, some fail."""
        with suppress(WorkerLost):
            return int(nodes.get(actor.call("holds"), LIMIT).process)
        return 0

    return wait_for(process)


def busiest(spread: Index, nodes: Cluster) -> int:
    """Return the number of the node, other than the head, that runs most servers.

    Ray does not always place a server on the node it was asked for, so a node may have none.
    """
    from ray._private.state import actors

    replicas = remote_of(spread).replicas
    assert isinstance(replicas, ReplicaSet)
    at = [
        actors(server.actor.handle._actor_id.hex())["Address"]["NodeID"]
        for (server,) in replicas._servers
    ]
    return max(range(1, NODES), key=lambda number: at.count(nodes.nodes()[number].id))


def healed(spread: Index, nodes: Cluster) -> None:
    """All servers are there again, and are all asked soon after."""
    processes(spread, nodes)
    until_all(spread)


def test_all_shards_give_the_answers_of_the_index(spread: Index, index: Index) -> None:
    for name in ("n3", "n7", "n41"):
        until_all(spread)
        assert spread.related(name, 7) == index.related(name, 7)
        assert spread.similarity(name, "n5") == index.similarity(name, "n5")
        assert spread.why(name, "n5") == index.why(name, "n5")
    assert spread.answered == (SAMPLES, SHARDS, SHARDS)
    assert len({each.node for each in remote_of(spread).replicas.status()}) == NODES


def test_sleeping_server_does_not_delay_an_answer(spread: Index, nodes: Cluster) -> None:
    asleep = processes(spread, nodes)[2]
    os.kill(asleep, signal.SIGSTOP)
    try:  # it sleeps until all are answered; how long each waits: test_replicas.py
        assert all(samples(spread) < SAMPLES for _ in range(20))
        assert [each.state for each in remote_of(spread).replicas.status()].count("left alone") >= 1
    finally:
        os.kill(asleep, signal.SIGCONT)
    healed(spread, nodes)


def test_three_of_eight_servers_that_are_killed(spread: Index, nodes: Cluster) -> None:
    for process in processes(spread, nodes)[1:4]:
        os.kill(process, signal.SIGKILL)
    found = [samples(spread) for _ in range(5)]
    assert SAMPLES // SHARDS <= min(found) < SAMPLES
    healed(spread, nodes)

    def restarts() -> bool:
        """Each server says that it is another process when it is asked the next time."""
        samples(spread)
        return sum(each.restarts for each in remote_of(spread).replicas.status()) >= 3

    wait_for(restarts)


def test_a_node_that_is_killed_in_a_stream_of_questions(spread: Index, nodes: Cluster) -> None:
    """Zero questions fail; samples fall, and are back when the servers are, on other nodes."""
    until_all(spread)
    nodes.kill_node(busiest(spread, nodes))
    # Its servers end a moment after it.
    fell = wait_for(lambda: (found := samples(spread)) < SAMPLES and found)
    assert SAMPLES // SHARDS <= fell < SAMPLES
    healed(spread, nodes)
    assert samples(spread) == SAMPLES
