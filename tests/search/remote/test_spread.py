"""Queries of remote shards: with all shards they equal the index, to the bit; with some, they equal
an index of their samples.
"""

from collections.abc import Collection
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import cocite
from cocite import Graph, Index
from cocite.errors import Damaged, UsageError
from cocite.index.layouts.messages import ShardRequest, ShardResponse
from cocite.search.remote.index import RemoteShards, SampleHolder, ShardStatus
from cocite.search.results import RelatedDocument, SimilarityDocument, WhyDocument
from tests.sampled import KINDS as ALL_KINDS
from tests.sampled import Built, built_once, near_graph

SAMPLES, SHARD, SHARDS = 40, 15, 6
MOST_SAMPLES = "cocite.search.refine.candidates.MOST_SAMPLES"
KINDS = {name: kind for name, kind in ALL_KINDS.items() if name != "sketch"}
KINDS["texts"] = {"measure": "blend:0.7*psimrank+0.3*neighborhood"}
kinds = pytest.mark.parametrize("kind", KINDS)


class LocalHolders:
    """Holders of all shards in this process, of which some are ``gone``."""

    def __init__(self, path: Path, shards: int, gone: Collection[int] = ()) -> None:
        self.shards, self.gone = shards, gone
        self.holders = [SampleHolder(str(path), shard, shards) for shard in range(shards)]
        self.requests: list[ShardRequest] = []

    def ask(self, request: ShardRequest, shards: int) -> list[tuple[int, dict[int, ShardResponse]]]:
        self.requests.append(request)
        available = [i for i in range(self.shards) if i not in self.gone][:shards]
        return [(i, self.holders[i].tell(request)[1]) for i in reversed(available)]

    def status(self) -> list[ShardStatus]:
        return []

    def close(self) -> None:
        self.holders.clear()


def open_remote(index: Index, gone: Collection[int] = (), shards: int = SHARDS) -> Index:
    stored = index.stored
    remote = RemoteShards(stored, LocalHolders(stored.store.path, shards, gone))
    return Index(stored, index.means, index.given, remote=remote)


def replicas_of(index: Index) -> Any:
    assert index.remote is not None
    return index.remote.replicas


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return near_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def built(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("indexes")
    return built_once(graph, folder, KINDS, samples=SAMPLES, shard=SHARD)


def query_all(index: Index, names: list[str]) -> list[Any]:
    """The documents of all kinds of queries of an index, for some nodes."""
    documents: list[Any] = []
    for a, b in pairwise(names):
        documents += [
            RelatedDocument.of(index, a, 7),
            RelatedDocument.of(index, a, 5, interval="bernstein", min_confidence=0.9),
            RelatedDocument.of(index, (a, b), 5),
            RelatedDocument.of(index, (a, b), 5, aggregate="min"),
            SimilarityDocument.of(index, a, b),
            SimilarityDocument.of(index, a, a),
            WhyDocument.of(index, a, b),
            WhyDocument.of(index, a, a),
        ]
        if a != names[0]:
            documents.append(WhyDocument.of(index, (a, b), names[0]))
    return [asdict(document) for document in documents]


@kinds
def test_remote_shards_equal_local_index(kind: str, built: Built) -> None:
    index = built(kind)
    names = [index.nodes.name(i) for i in (0, 21, 50)]
    assert query_all(open_remote(index), names) == query_all(index, names)
    single = open_remote(index, shards=1)
    assert query_all(single, names[:2]) == query_all(index, names[:2])
    assert single.related(names[0]) == index.related(names[0])
    assert single.answered == (SAMPLES, 1, 1)
    lists = [list(hits) for hits in single.related_many(names, 4)]
    assert lists == [list(hits) for hits in index.related_many(names, 4)]


@kinds
def test_remote_shards_missing_equal_smaller_index(kind: str, built: Built) -> None:
    """The last two shards are gone, so that the first samples are left."""
    index = built(kind)
    names = [index.nodes.name(i) for i in (0, 21, 50)]
    remaining = 4 * SAMPLES // SHARDS
    documents = query_all(open_remote(index, gone={4, 5}), names)
    expected_documents = query_all(index.with_samples(remaining), names)
    for actual, expected in zip(documents, expected_documents, strict=True):
        assert actual.pop("loss") == {
            "samples": remaining,
            "shards": {"answered": 4, "of": SHARDS},
        }
        expected.pop("loss")
        assert actual == expected


def test_remote_shards_missing_equal_lost_files(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent shard equals a missing file with the same samples."""
    monkeypatch.setattr(MOST_SAMPLES, 64)
    index = built("trees")
    path = index.stored.store.path
    (lost_file,) = [name for name in copytree(path, tmp_path / "i").iterdir() if "15" in name.name]
    lost_file.unlink()
    lossy = cocite.open(tmp_path / "i")
    assert lossy.samples == SAMPLES - SHARD
    remote = open_remote(index, shards=SAMPLES, gone=range(SHARD, 2 * SHARD))
    for i in range(0, 50, 17):
        name = index.nodes.name(i)
        assert remote.related(name) == lossy.related(name)
    assert remote.related(name, refine=True, k=3) == lossy.related(name, refine=True, k=3)


def test_remote_shards_cover_all_snapshots_of_refreshed(graph: Graph, tmp_path: Path) -> None:
    old = cocite.build(graph, measure="psimrank", samples=SAMPLES)
    rows = (graph.path.parent / "links.tsv").read_text()
    new_links = "".join(f"n{a}\tn{b}\n" for a, b in [(1, 200), (3, 200), (2, 200), (1, 4)])
    (tmp_path / "more.tsv").write_text(rows + new_links)
    newer = cocite.ingest(tmp_path / "more.tsv", tmp_path / "g", delimiter="tab", header="no")
    index = cocite.refresh(old.stored.store.path, newer, fraction=0.25)
    names = ["n200", "n4", "n2"]
    assert query_all(open_remote(index), names) == query_all(index, names)
    found = open_remote(index, gone={2, 4}).related("n200")
    assert found
    assert all(hit.low <= hit.score <= hit.high for hit in found)


def test_remote_shards_accept_query_settings(built: Built) -> None:
    index = built("trees")
    remote = open_remote(index)
    for settings in (
        {"decay": 0.3},
        {"meeting_weight": "t <= 2"},
        {"meeting_weight": "hitting"},
        {"evidence": "geometric"},
    ):
        for name in ("n3", "n17"):
            assert remote.related(name, **settings) == index.related(name, **settings)
            score = index.similarity(name, "n5", **settings)
            assert remote.similarity(name, "n5", **settings) == score
    assert remote.related("n3", prefix="n1") == index.related("n3", prefix="n1")
    assert remote.related("n3", order="pagerank") == index.related("n3", order="pagerank")


@pytest.mark.parametrize("kind", ["trees", "minhash", "both"])
def test_remote_shards_refine_equals_local_index(
    kind: str, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MOST_SAMPLES, 64)
    index = built(kind)
    remote = open_remote(index)
    for name in ("n3", "n41"):
        assert remote.related(name, 5, refine=True) == index.related(name, 5, refine=True)
        score = remote.similarity(name, "n5", refine=True)
        assert score == index.similarity(name, "n5", refine=True)


def test_remote_shards_certain_ranks_use_same_samples(built: Built) -> None:
    index = built("trees")
    remote = open_remote(index)
    replicas = replicas_of(remote)
    hits = remote.related("n3")
    replicas.gone = {0, 1, 2, 3, 4}
    assert hits.certain_ranks == index.related("n3").certain_ranks
    assert len(replicas.requests) == 1


def test_remote_shards_with_samples_queries_fewer_shards(built: Built) -> None:
    index = built("trees")
    smaller = open_remote(index).with_samples(10)
    assert smaller.remote is not None
    assert (smaller.samples, smaller.remote.query_shards) == (10, 2)
    assert smaller.related("n3") == index.with_samples(2 * SAMPLES // SHARDS).related("n3")
    assert smaller.answered == (13, 2, SHARDS)
    with pytest.raises(UsageError, match="choose 1 to 40"):
        open_remote(index).with_samples(41)


def test_remote_shards_reject_unsupported_indexes(graph: Graph) -> None:
    exact = cocite.build(graph, measure="cocitation")
    with pytest.raises(UsageError, match="scores are computed"):
        RemoteShards(exact.stored, LocalHolders(exact.stored.store.path, 0))
    sketch = cocite.build(graph, measure="xjaccard", bits=2, samples=8)
    with pytest.raises(UsageError, match="has a value for each node"):
        SampleHolder(str(sketch.stored.store.path), 0, 2)
    with pytest.raises(UsageError, match="single queries only"):
        open_remote(cocite.build(graph, measure="psimrank", samples=9)).related_all("x")


def test_sample_holder_skips_damaged_shard(built: Built, tmp_path: Path) -> None:
    copy = Path(copytree(built("trees").stored.store.path, tmp_path / "i"))
    index = cocite.open(copy, verify=False)
    (first, *_) = sorted(p for p in copy.iterdir() if p.name.startswith("in.samples"))
    first.chmod(0o644)
    first.write_bytes(b"\xf0" * first.stat().st_size)
    # The damaged file has two of its samples, 13 to 19; its self-check finds that.
    holder = SampleHolder(str(copy), 2, SHARDS)
    assert holder.holds().samples == 5
    _, responses = holder.tell(ShardRequest(rows=(3,)))
    assert responses[0].numbers.tolist() == [15, 16, 17, 18, 19]
    assert holder.holds().lost == (first.name,)
    with pytest.raises(Damaged, match="has lost all samples"):
        SampleHolder(str(copy), 0, SHARDS).tell(ShardRequest(rows=(3,)))
    assert index.samples == SAMPLES


def test_remote_shards_detect_duplicate_samples(built: Built) -> None:
    remote = open_remote(built("trees"))
    replicas = replicas_of(remote)
    replicas.holders[1] = replicas.holders[0]
    with pytest.raises(Damaged, match="the same sample"):
        remote.related("n3")
