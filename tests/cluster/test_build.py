"""Builds on a cluster: equal to one machine, even after kills, and for a graph at a URL."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.cluster.ray import Cluster
from cocite.errors import ClusterError, UsageError
from cocite.index.build import IndexBuild
from cocite.index.cluster import ClusterBuild, SampleWork, of_nodes
from cocite.index.plan import BuildOptions
from cocite.options.build import RefreshOptions
from cocite.resources import Resources
from tests.builds import files
from tests.clock import HOLD

SHARDS = {"samples": 24, "shard": 3}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("web")
    return cocite.generate_web(folder / "web.graph", nodes=10_000, links=75_000, seed=3)


@pytest.fixture(scope="module")
def local(graph: Graph) -> dict[str, bytes]:
    """The index of one machine, beside the graph, because the manifest holds its relative path."""
    path = graph.path.with_name("local.index")
    cocite.build(graph, path, measure="psimrank", **SHARDS)
    return files(path)


def start_build(
    cluster_build: ClusterBuild, graph: Graph, path: Path, measure: str, **given: Any
) -> IndexBuild:
    """Start a build on nodes of a cluster, in shards of three if it has samples."""
    options = BuildOptions.checked(measure, **given)
    limits = of_nodes(
        cluster_build, Resources.checked(shard=3 if given.get("settings") else None), None, None
    )
    return IndexBuild(graph, path, options, limits, spread=cluster_build)


def build_on(cluster: Cluster, graph: Graph, path: Path, **urls: Any) -> list[int]:
    """Build on nodes of a connected cluster; returns the samples done at each report."""
    done: list[int] = []
    cluster_build = ClusterBuild(cluster, urls.pop("url", None), urls.pop("staging_url", None))
    with start_build(cluster_build, graph, path, "psimrank", settings={"samples": 24}) as build:
        build.run(lambda at, total: done.append(at))
    return done


def test_cluster_build_equals_one_machine(
    cluster: Cluster, graph: Graph, local: dict[str, bytes]
) -> None:
    path = graph.path.with_name("spread.index")
    assert build_on(cluster, graph, path) == [0, *range(3, 25, 3)]
    assert files(path) == local
    assert not path.with_name("spread.index.building").exists()


def test_cluster_build_copies_graph_and_stages_shards(
    cluster: Cluster, graph: Graph, local: dict[str, bytes], tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    shutil.copytree(graph.path, bucket / "web.graph")
    path, via = graph.path.with_name("sent.index"), bucket / "shards"
    build_on(cluster, graph, path, url=f"file://{bucket}/web.graph", staging_url=f"file://{via}")
    assert files(path) == local
    assert not list(via.rglob("*.*"))  # staged files are removed


def test_cluster_build_writes_output_to_url(
    cluster: Cluster, graph: Graph, local: dict[str, bytes], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("COCITE_COPIES", str(tmp_path / "copies"))
    bucket, options = tmp_path / "bucket", dict[str, Any](SHARDS)
    url = f"file://{bucket}/web.index"
    cocite.build(graph, url, measure="psimrank", cluster=cluster, **options)
    assert files(bucket / "web.index") == local  # its graph is beside it, too
    assert {path.parent.name for path in bucket.rglob("*.*") if path.is_file()} <= {"web.index"}


def test_cluster_build_names_inaccessible_graph(
    cluster: Cluster, graph: Graph, tmp_path: Path
) -> None:
    cluster_build, copy = ClusterBuild(cluster, None, None), tmp_path / "web.graph"
    shutil.copytree(graph.path, copy)
    settings = {"samples": 6}
    work = start_build(
        cluster_build, Graph.open(copy), tmp_path / "a.index", "psimrank", settings=settings
    )
    copy.rename(tmp_path / "elsewhere")
    with work, pytest.raises(ClusterError, match=r"cannot access .*web.graph.*--staging-url"):
        work.run()


class Counting(ClusterBuild):
    """Records the pieces that nodes are asked for."""

    def pieces(self, work: SampleWork, requests: Iterable[Any]) -> Iterator[Any]:
        self.requested = [*getattr(self, "requested", ()), *(items := list(requests))]
        return super().pieces(work, items)


@pytest.mark.parametrize(("measure", "copied"), [("fusion", False), ("ppr-pmi", True)])
def test_cluster_build_rows_equal_one_machine(
    cluster: Cluster, graph: Graph, tmp_path: Path, measure: str, copied: bool
) -> None:
    url, chosen = None, dict[str, Any]()
    if copied:
        chosen = {"only_range": "2/3"}  # nodes make all rows
        shutil.copytree(graph.path, tmp_path / "bucket" / "web.graph")
        url = f"file://{tmp_path}/bucket/web.graph"
    cocite.build(graph, tmp_path / "a.index", measure=measure, **chosen)
    cluster_build = Counting(cluster, url, None)
    with start_build(cluster_build, graph, tmp_path / "b.index", measure, **chosen) as work:
        work.estimate()
        work.run()
    assert files(tmp_path / "b.index") == files(tmp_path / "a.index")
    kinds = ["lists", "pushed"] if measure == "fusion" else ["pushed"]
    assert [kind for kind, nodes in cluster_build.requested if nodes.start == 0] == kinds
    assert sum(len(nodes) for _, nodes in cluster_build.requested) == len(kinds) * graph.nodes


def test_cluster_build_resumes_with_missing_rows(
    cluster: Cluster, graph: Graph, tmp_path: Path
) -> None:
    cluster_build = Counting(cluster, None, None)

    def stop(done: int, total: int) -> None:
        if done > 0.4 * total:
            raise KeyboardInterrupt

    for report in (stop, lambda done, total: None):
        with (
            suppress(KeyboardInterrupt),
            start_build(cluster_build, graph, tmp_path / "b.index", "ppr-pmi") as work,
        ):
            first = list(getattr(cluster_build, "requested", ()))
            work.run(report)
    cocite.build(graph, tmp_path / "a.index", measure="ppr-pmi")
    assert files(tmp_path / "b.index") == files(tmp_path / "a.index")
    resumed = cluster_build.requested[len(first) :]
    assert 0 < len(resumed) < len(first)
    assert resumed == first[-len(resumed) :]


def test_cluster_build_refuses_one_machine_measure(
    cluster: Cluster, graph: Graph, tmp_path: Path
) -> None:
    cluster_build = ClusterBuild(cluster, None, None)
    with pytest.raises(UsageError, match="cocitation can only be built on one machine"):
        start_build(cluster_build, graph, tmp_path / "a", "cocitation")


def test_refresh_on_cluster_equals_one_machine(
    cluster: Cluster, graph: Graph, local: dict[str, bytes], tmp_path: Path
) -> None:
    from cocite.index.refresh import RefreshBuild

    newer = cocite.generate_web(tmp_path / "newer.graph", nodes=10_500, links=80_000, seed=4)
    found = []
    for name, cluster_build in (("here", None), ("there", ClusterBuild(cluster, None, None))):
        path = tmp_path / f"{name}.index"
        shutil.copytree(graph.path.with_name("local.index"), path)
        limits = of_nodes(cluster_build, Resources.checked(shard=3), None, None)
        with RefreshBuild(
            path,
            newer,
            limits,
            RefreshOptions(fraction=0.5, date="2026-11-21"),
            spread=cluster_build,
        ) as work:
            work.run()
        found.append(files(path))
    assert found[0] == found[1] != local


def without_times(evaluation: Any) -> str:
    """An evaluation as JSON, without the times of builds."""
    document = evaluation.to_json()
    document["figures"] = [row for row in document["figures"] if row["figure"] != "build_seconds"]
    return json.dumps(document)


def test_evaluate_on_cluster_equals_one_machine(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures, labels = [], tmp_path / "topics.tsv"
    web = cocite.generate_web(tmp_path / "web.graph", nodes=300, links=2000, labels=labels)
    options: Any = {"labels": labels, "queries": 50, "settings": {"samples": 8, "length": 5}}
    local = cocite.evaluate(web, **options)
    shards = ClusterBuild.shards

    def counting(self: ClusterBuild, work: Any, ranges: Any) -> Any:
        measures.append(work.plan.measure.name)
        return shards(self, work, ranges)

    monkeypatch.setattr(ClusterBuild, "shards", counting)
    remote = cocite.evaluate(web, cluster=cluster, **options)
    assert without_times(remote) == without_times(local)
    assert {"psimrank", "simrank", "xjaccard"} <= set(measures)
    assert "cocitation" not in measures
    index = cocite.build(web, tmp_path / "web.index", measure="cocitation")
    with pytest.raises(UsageError, match="only apply when indexes are built"):
        cocite.evaluate(index, labels=labels, cluster=cluster)


def test_tune_on_cluster_equals_one_machine(cluster: Cluster, tmp_path: Path) -> None:
    graph = cocite.generate_web(tmp_path / "web.graph", nodes=600, links=4000, seed=2)
    options: Any = {"measures": ["psimrank", "cocitation"], "directions": ["in"], "samples": 4}
    local = cocite.tune(graph, tmp_path / "here.toml", time=None, **options)
    remote = cocite.tune(graph, tmp_path / "there.toml", time=None, cluster=cluster, **options)
    assert [(t.name, t.figure) for t in remote.tried] == [(t.name, t.figure) for t in local.tried]
    assert remote.settings == local.settings


BUILD = """
import sys, cocite
from cocite.index.cluster import ClusterBuild
HOLD
path, output, cluster, most = sys.argv[1:]
shards = ClusterBuild.shards

def held(self, work, ranges):
    for number, made in enumerate(shards(self, work, ranges), 1):
        yield made
        if number == int(most):
            hold()

ClusterBuild.shards = held
cocite.build(path, output, measure="psimrank", samples=24, shard=3, cluster=cluster)
""".replace("HOLD", HOLD)
"""A build that holds still after a number of shards."""


def test_cluster_build_resumes_after_killed_driver(
    cluster: Cluster, graph: Graph, local: dict[str, bytes]
) -> None:
    path = graph.path.with_name("killed.index")
    building = path.with_name("killed.index.building")
    command = [sys.executable, "-c", BUILD, str(graph.path), str(path), "local:2", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert "held\n" in iter(driver.stdout.readline, "")
        driver.send_signal(signal.SIGKILL)
    notes = {note.name: note.stat().st_mtime_ns for note in building.glob("*samples-*.json")}
    assert 2 <= len(notes) < 8
    first, *_ = build_on(cluster, graph, path)
    assert first == 3 * len(notes)
    assert files(path) == local
