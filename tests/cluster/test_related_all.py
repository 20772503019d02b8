"""Related nodes of every node on a cluster: equal to one machine."""

from pathlib import Path

import pytest

import cocite
from cocite.cluster.ray import Cluster
from cocite.search.batch.run import Batch, Machines


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> cocite.Index:
    folder = tmp_path_factory.mktemp("web")
    graph = cocite.generate_web(folder / "web.graph", nodes=3000, links=20_000, seed=3)
    return cocite.build(graph, folder / "web.index", measure="psimrank", samples=20)


def test_related_all_on_cluster_equals_one_machine(
    cluster: Cluster, index: cocite.Index, tmp_path: Path
) -> None:
    index.related_all(tmp_path / "here.csv", 5, min_score=0.01)
    with Batch(
        index.now, tmp_path / "there.csv", 5, machines=Machines(cluster), min_score=0.01
    ) as work:
        report = work.run()
    assert report.nodes == 3000
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_batch_on_cluster_resumes_local_batch(
    cluster: Cluster, index: cocite.Index, tmp_path: Path
) -> None:
    index.related_all(tmp_path / "here.csv", 5)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "relating" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Batch(index.now, tmp_path / "there.csv", 5) as work:
        work.run(stop)
    with Batch(index.now, tmp_path / "there.csv", 5, machines=Machines(cluster)) as work:
        assert 0 < work.done < 3000
        assert work.run().nodes == 3000 - work._before
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
