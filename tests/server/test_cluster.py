"""A server whose samples answer from elsewhere: the same API, and what it says of who answers."""

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
    """A service over a cluster in this process, and a way to ask it."""
    cluster = InProcess(3)
    own = copytree(folder / "web.index", tmp_path_factory.mktemp("served") / "web.index")
    with pytest.MonkeyPatch.context() as patch:
        cluster.rule(patch)
        patch.setattr(Cluster, "connect", lambda address: cluster)
        graphs = (str(folder / "web.graph"),)
        options: dict[str, Any] = {
            "cluster": "here",
            "shards": SHARDS,
            "deadline": 300.0,
            "graphs": graphs,
        }
        server = LocalServer(own, target_latency=30_000.0, **options)
        yield server.service, cluster, server
        server.service.close()


def test_api_answers_as_one_machine(served: tuple[Service, InProcess, Get], folder: Path) -> None:
    _, _, get = served
    index = cocite.open(folder / "web.index")
    found = get("/v1/related?node=red&k=5")
    assert found.status == 200, found.body
    assert int(found.headers["cocite-samples"]) == index.samples
    assert "max-age" in found.headers["cache-control"]
    answer = found.json
    assert [hit["node"] for hit in answer["hits"]] == [hit.node for hit in index.related("red", 5)]
    assert answer["settings"]["samples"] == index.samples
    assert "shards" not in answer
    pair = get("/v1/similarity?a=red&b=blue").json
    assert pair["score"] == index.similarity("red", "blue").score
    why = get("/v1/why?a=red&b=blue").json
    assert why["score"] == pair["score"]
    many = get("/v1/batch", {"nodes": ["red", "blue"], "k": 3}).json["answers"]
    assert [each["node"] for each in many] == ["red", "blue"]
    assert get("/v1/complete?text=re").json["nodes"][0]["node"] == "red"


def test_who_answers_is_told(served: tuple[Service, InProcess, Get]) -> None:
    _, _, get = served
    (index,) = get("/v1/indexes").json["indexes"]
    assert [each["shard"] for each in index["shards"]] == list(range(SHARDS))
    assert {each["state"] for each in index["shards"]} == {"answers"}
    assert sum(each["samples"] for each in index["shards"]) == index["samples"]
    page = get("/").body.decode()
    assert "Where web answers from" in page
    metrics = get("/metrics").body.decode()
    assert 'cocite_shard_answers{index="web",replica="0",shard="5"} 1.0' in metrics


def test_lost_servers_cost_precision_and_come_back(served: tuple[Service, InProcess, Get]) -> None:
    service, cluster, get = served
    have = service.holders["web"].now.index.samples or 0
    tag = get("/v1/related?node=red").headers["etag"]
    cluster.kill_node(1)
    answers = [get("/v1/related?node=red&k=5") for _ in range(10)]
    assert {each.status for each in answers} == {200}
    last = answers[-1]
    left = int(last.headers["cocite-samples"])
    assert 0.6 * have < left < 0.7 * have
    document = last.json
    assert document["samples"] == document["settings"]["samples"] == left
    assert document["shards"] == {"answered": 4, "of": SHARDS}
    assert "no-cache" in last.headers["cache-control"]
    assert last.headers["etag"] != tag
    assert "left alone" in get("/").body.decode()
    assert get("/?node=red").status == 200
    cluster.start_again(1)
    began = cluster.now
    while int(get("/v1/related?node=red").headers["cocite-samples"]) < have:
        assert cluster.now < began + 5
        cluster.sleep(0.05)
    assert get("/v1/related?node=red").headers["etag"] == tag


def test_under_load_fewer_shards_are_asked(served: tuple[Service, InProcess, Get]) -> None:
    service, _, get = served
    have = service.holders["web"].now.index.samples or 0
    service.adaptation.share = 0.3
    try:
        found = get("/v1/related?node=red")
    finally:
        service.adaptation.share = 1.0
    assert found.json["shards"] == {"answered": 2, "of": SHARDS}
    assert int(found.headers["cocite-samples"]) == 2 * have // SHARDS


def test_an_index_that_takes_its_place_has_servers_of_its_own(
    served: tuple[Service, InProcess, Get], folder: Path, tmp_path: Path
) -> None:
    service, cluster, get = served
    holder = service.holders["web"]
    before, made = holder.now, len(cluster.made)
    graph = cocite.Graph.open(folder / "web.graph")
    cocite.build(graph, holder.path, measure="psimrank", samples=30, seed=3, overwrite=True)
    assert holder.look() == "taken"
    assert len(cluster.made) == made + SHARDS
    found = get("/v1/related?node=red&k=5")
    assert found.headers["cocite-samples"] == "30"
    assert found.headers["cocite-generation"] != before.generation
    holder.look()
    assert [actor.ended for actor in cluster.made] == [True] * made + [False] * SHARDS


def test_what_does_not_go_together_is_refused(folder: Path, shell: Shell) -> None:
    pytest.importorskip("ray", reason="the extra cluster is not installed")
    asked = ["serve", str(folder / "web.index"), "--cluster", "local:2", "--workers", "2"]
    assert "one process sends queries to the cluster" in shell(asked, 2).err
