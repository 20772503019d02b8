"""A server over a cluster: the same API, with the state of shards."""

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import pytest

import cocite
from cocite.cluster.ray import Cluster
from cocite.server.service import Service
from tests.conftest import Shell
from tests.search.remote.in_process import InProcess
from tests.server.conftest import LocalServer

Get = Callable[..., SimpleNamespace]
SHARDS = 6


@pytest.fixture(scope="module")
def served(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, InProcess, Get]]:
    """A service over a cluster in this process, and a client for it."""
    cluster = InProcess(3)
    index = copytree(folder / "web.index", tmp_path_factory.mktemp("served") / "web.index")
    with pytest.MonkeyPatch.context() as patch:
        cluster.rule(patch)
        patch.setattr(Cluster, "connect", lambda address: cluster)
        options: dict[str, Any] = {"graphs": (str(folder / "web.graph"),), "deadline": 300.0}
        options |= {"cluster": "here", "shards": SHARDS, "target_latency": 30_000.0}
        server = LocalServer(index, **options)
        yield server.service, cluster, server
        server.service.close()


def test_cluster_answers_equal_single_machine(
    served: tuple[Service, InProcess, Get], folder: Path
) -> None:
    _, _, get = served
    index = cocite.open(folder / "web.index")
    response = get("/v1/related?node=red&k=5")
    assert response.status == 200, response.body
    assert int(response.headers["cocite-samples"]) == index.samples
    assert "max-age" in response.headers["cache-control"]
    answer = response.json
    assert [hit["node"] for hit in answer["hits"]] == [hit.node for hit in index.related("red", 5)]
    assert answer["settings"]["samples"] == index.samples
    assert "shards" not in answer
    pair = get("/v1/similarity?a=red&b=blue").json
    assert pair["score"] == index.similarity("red", "blue").score
    why = get("/v1/why?a=red&b=blue").json
    assert why["score"] == pair["score"]
    answers = get("/v1/batch", {"nodes": ["red", "blue"], "k": 3}).json["answers"]
    assert [each["node"] for each in answers] == ["red", "blue"]
    assert get("/v1/complete?text=re").json["nodes"][0]["node"] == "red"


def test_cluster_reports_shard_states(served: tuple[Service, InProcess, Get]) -> None:
    _, _, get = served
    (index,) = get("/v1/indexes").json["indexes"]
    assert [shard["shard"] for shard in index["shards"]] == list(range(SHARDS))
    assert {shard["state"] for shard in index["shards"]} == {"answers"}
    assert sum(shard["samples"] for shard in index["shards"]) == index["samples"]
    page = get("/").body.decode()
    assert "Sample servers of web" in page
    metrics = get("/metrics").body.decode()
    assert 'cocite_shard_answers{index="web",replica="0",shard="5"} 1.0' in metrics


def test_cluster_loses_and_regains_samples_of_lost_node(
    served: tuple[Service, InProcess, Get],
) -> None:
    service, cluster, get = served
    samples = service.holders["web"].now.index.samples or 0
    tag = get("/v1/related?node=red").headers["etag"]
    cluster.kill_node(1)
    responses = [get("/v1/related?node=red&k=5") for _ in range(10)]
    assert {response.status for response in responses} == {200}
    last = responses[-1]
    remaining = int(last.headers["cocite-samples"])
    assert 0.6 * samples < remaining < 0.7 * samples
    document = last.json
    assert document["samples"] == document["settings"]["samples"] == remaining
    assert document["shards"] == {"answered": 4, "of": SHARDS}
    assert "no-cache" in last.headers["cache-control"]
    assert last.headers["etag"] != tag
    assert "left alone" in get("/").body.decode()
    assert get("/?node=red").status == 200
    cluster.start_again(1)
    began = cluster.now
    while int(get("/v1/related?node=red").headers["cocite-samples"]) < samples:
        assert cluster.now < began + 5
        cluster.sleep(0.05)
    assert get("/v1/related?node=red").headers["etag"] == tag


def test_cluster_queries_fewer_shards_under_load(served: tuple[Service, InProcess, Get]) -> None:
    service, _, get = served
    samples = service.holders["web"].now.index.samples or 0
    service.adaptation.share = 0.3
    try:
        response = get("/v1/related?node=red")
    finally:
        service.adaptation.share = 1.0
    assert response.json["shards"] == {"answered": 2, "of": SHARDS}
    assert int(response.headers["cocite-samples"]) == 2 * samples // SHARDS


def test_cluster_starts_new_actors_for_replaced_index(
    served: tuple[Service, InProcess, Get], folder: Path, tmp_path: Path
) -> None:
    service, cluster, get = served
    holder = service.holders["web"]
    before, count = holder.now, len(cluster.made)
    graph = cocite.Graph.open(folder / "web.graph")
    cocite.build(graph, holder.path, measure="psimrank", samples=30, seed=3, overwrite=True)
    assert holder.look() == "taken"
    assert len(cluster.made) == count + SHARDS
    response = get("/v1/related?node=red&k=5")
    assert response.headers["cocite-samples"] == "30"
    assert response.headers["cocite-generation"] != before.generation
    holder.look()
    assert [actor.ended for actor in cluster.made] == [True] * count + [False] * SHARDS


def test_cluster_refuses_multiple_workers(folder: Path, shell: Shell) -> None:
    pytest.importorskip("ray", reason="the extra cluster is not installed")
    command = ["serve", str(folder / "web.index"), "--cluster", "local:2", "--workers", "2"]
    assert "one process sends queries to the cluster" in shell(command, 2).err
