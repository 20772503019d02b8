"""Builds on a cluster: the bytes of one machine, whatever is killed, however the graph comes."""

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
    return cocite.generate_web(folder / "web.graph", nodes=20_000, links=150_000, seed=3)


@pytest.fixture(scope="module")
def local(graph: Graph) -> dict[str, bytes]:
    """What one machine makes; beside the graph, as the manifest says how that lies to it."""
    path = graph.path.with_name("local.index")
    cocite.build(graph, path, measure="psimrank", **SHARDS)
    return files(path)


def begun(
    spread: ClusterBuild, graph: Graph, path: Path, measure: str, **chosen: Any
) -> IndexBuild:
    """A build on nodes of a cluster, in shards of three if it has samples."""
    options = BuildOptions.checked(measure, **chosen)
    means = of_nodes(
        spread, Resources.checked(shard=3 if chosen.get("settings") else None), None, None
    )
    return IndexBuild(graph, path, options, means, spread=spread)


def build_on(cluster: Cluster, graph: Graph, path: Path, **more: Any) -> list[int]:
    """Build on nodes of a cluster that is connected; the samples done at each report."""
    done: list[int] = []
    spread = ClusterBuild(cluster, more.pop("url", None), more.pop("staging_url", None))
    with begun(spread, graph, path, "psimrank", settings={"samples": 24}) as build:
        build.run(lambda at, total: done.append(at))
    return done


def test_bytes_equal_one_machine(cluster: Cluster, graph: Graph, local: dict[str, bytes]) -> None:
    path = graph.path.with_name("spread.index")
    assert build_on(cluster, graph, path) == [0, *range(3, 25, 3)]
    assert files(path) == local
    assert not path.with_name("spread.index.building").exists()


def test_nodes_that_see_nothing_take_a_copy_and_send_shards(
    cluster: Cluster, graph: Graph, local: dict[str, bytes], tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    shutil.copytree(graph.path, bucket / "web.graph")
    path, via = graph.path.with_name("sent.index"), bucket / "shards"
    build_on(cluster, graph, path, url=f"file://{bucket}/web.graph", staging_url=f"file://{via}")
    assert files(path) == local
    assert not list(via.rglob("*.*"))  # what was taken is removed


def test_an_output_at_a_url_comes_by_it(
    cluster: Cluster, graph: Graph, local: dict[str, bytes], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("COCITE_COPIES", str(tmp_path / "copies"))
    bucket, options = tmp_path / "bucket", dict[str, Any](SHARDS)
    url = f"file://{bucket}/web.index"
    cocite.build(graph, url, measure="psimrank", cluster=cluster, **options)
    assert files(bucket / "web.index") == local  # whose graph is beside it, too
    assert {path.parent.name for path in bucket.rglob("*.*") if path.is_file()} <= {"web.index"}


def test_unseen_graph_is_named_by_node(cluster: Cluster, graph: Graph, tmp_path: Path) -> None:
    seen, copy = ClusterBuild(cluster, None, None), tmp_path / "web.graph"
    shutil.copytree(graph.path, copy)
    settings = {"samples": 6}
    work = begun(seen, Graph.open(copy), tmp_path / "a.index", "psimrank", settings=settings)
    copy.rename(tmp_path / "elsewhere")
    with work, pytest.raises(ClusterError, match=r"cannot access .*web.graph.*--staging-url"):
        work.run()


class Counting(ClusterBuild):
    """Notes which pieces nodes are asked for."""

    def pieces(self, work: SampleWork, asked: Iterable[Any]) -> Iterator[Any]:
        self.asked = [*getattr(self, "asked", ()), *(found := list(asked))]
        return super().pieces(work, found)


@pytest.mark.parametrize("measure", ["fusion", "ppr-pmi"])
@pytest.mark.parametrize("copied", [False, True])
def test_rows_are_those_of_one_machine(
    cluster: Cluster, graph: Graph, tmp_path: Path, measure: str, copied: bool
) -> None:
    url, chosen = None, dict[str, Any]()
    if copied:
        chosen = {"only_range": "2/3"}  # nodes make the rows of all
        shutil.copytree(graph.path, tmp_path / "bucket" / "web.graph")
        url = f"file://{tmp_path}/bucket/web.graph"
    cocite.build(graph, tmp_path / "a.index", measure=measure, **chosen)
    spread = Counting(cluster, url, None)
    with begun(spread, graph, tmp_path / "b.index", measure, **chosen) as work:
        work.estimate()
        work.run()
    assert files(tmp_path / "b.index") == files(tmp_path / "a.index")
    kinds = ["lists", "pushed"] if measure == "fusion" else ["pushed"]
    assert [kind for kind, nodes in spread.asked if nodes.start == 0] == kinds
    assert sum(len(nodes) for _, nodes in spread.asked) == len(kinds) * graph.nodes


def test_killed_rows_build_asks_for_what_is_missing(
    cluster: Cluster, graph: Graph, tmp_path: Path
) -> None:
    spread = Counting(cluster, None, None)

    def stop(done: int, total: int) -> None:
        if done > 0.4 * total:
            raise KeyboardInterrupt

    for report in (stop, lambda done, total: None):
        with (
            suppress(KeyboardInterrupt),
            begun(spread, graph, tmp_path / "b.index", "ppr-pmi") as work,
        ):
            first = list(getattr(spread, "asked", ()))
            work.run(report)
    cocite.build(graph, tmp_path / "a.index", measure="ppr-pmi")
    assert files(tmp_path / "b.index") == files(tmp_path / "a.index")
    again = spread.asked[len(first) :]
    assert 0 < len(again) < len(first)
    assert again == first[-len(again) :]


def test_a_measure_in_one_go_is_refused(cluster: Cluster, graph: Graph, tmp_path: Path) -> None:
    spread = ClusterBuild(cluster, None, None)
    with pytest.raises(UsageError, match="cocitation can only be built on one machine"):
        begun(spread, graph, tmp_path / "a", "cocitation")


def test_a_refresh_is_that_of_one_machine(
    cluster: Cluster, graph: Graph, local: dict[str, bytes], tmp_path: Path
) -> None:
    from cocite.index.refresh import RefreshBuild

    newer = cocite.generate_web(tmp_path / "newer.graph", nodes=20_500, links=155_000, seed=4)
    found = []
    for name, spread in (("here", None), ("there", ClusterBuild(cluster, None, None))):
        path = tmp_path / f"{name}.index"
        shutil.copytree(graph.path.with_name("local.index"), path)
        means = of_nodes(spread, Resources.checked(shard=3), None, None)
        with RefreshBuild(
            path, newer, means, RefreshOptions(fraction=0.5, date="2026-11-21"), spread=spread
        ) as work:
            work.run()
        found.append(files(path))
    assert found[0] == found[1] != local


def timeless(found: Any) -> str:
    """All that an evaluation says, but how long builds took."""
    told = found.to_json()
    told["figures"] = [row for row in told["figures"] if row["figure"] != "build_seconds"]
    return json.dumps(told)


def test_same_figures(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spread, labels = [], tmp_path / "topics.tsv"
    web = cocite.generate_web(tmp_path / "web.graph", nodes=300, links=2000, labels=labels)
    how: Any = {"labels": labels, "queries": 50, "settings": {"samples": 8, "length": 5}}
    here = cocite.evaluate(web, **how)
    shards = ClusterBuild.shards

    def counted(self: ClusterBuild, work: Any, ranges: Any) -> Any:
        spread.append(work.plan.measure.name)
        return shards(self, work, ranges)

    monkeypatch.setattr(ClusterBuild, "shards", counted)
    there = cocite.evaluate(web, cluster=cluster, **how)
    assert timeless(there) == timeless(here)
    assert {"psimrank", "simrank", "xjaccard"} <= set(spread)
    assert "cocitation" not in spread
    index = cocite.build(web, tmp_path / "web.index", measure="cocitation")
    with pytest.raises(UsageError, match="only apply when indexes are built"):
        cocite.evaluate(index, labels=labels, cluster=cluster)


def test_a_tuning_chooses_as_on_one_machine(cluster: Cluster, tmp_path: Path) -> None:
    graph = cocite.generate_web(tmp_path / "web.graph", nodes=600, links=4000, seed=2)
    options: Any = {"measures": ["psimrank", "cocitation"], "directions": ["in"], "samples": 4}
    here = cocite.tune(graph, tmp_path / "here.toml", time=None, **options)
    there = cocite.tune(graph, tmp_path / "there.toml", time=None, cluster=cluster, **options)
    assert [(t.name, t.figure) for t in there.tried] == [(t.name, t.figure) for t in here.tried]
    assert there.settings == here.settings


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
cocite.build(path, output, measure="psimrank", samples=24, shard=3, cluster=cluster or None)
""".replace("HOLD", HOLD)
"""A build that holds still when it has so many shards."""


def test_a_driver_that_is_killed_goes_on(graph: Graph, local: dict[str, bytes]) -> None:
    path = graph.path.with_name("killed.index")
    building = path.with_name("killed.index.building")
    command = [sys.executable, "-c", BUILD, str(graph.path), str(path), "local:2"]
    with subprocess.Popen([*command, "2"], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert "held\n" in iter(driver.stdout.readline, "")
        driver.send_signal(signal.SIGKILL)
    kept = {note.name: note.stat().st_mtime_ns for note in building.glob("*samples-*.json")}
    assert 2 <= len(kept) < 8
    subprocess.run([*command, "0"], check=True)
    assert files(path) == local
