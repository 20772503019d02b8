"""Answers put together from shards: with all of them those of the index, to the bit; with some,
those of an index of their samples.
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
from tests.sampled import KINDS as SAMPLED
from tests.sampled import Built, built_once, near_graph

SAMPLES, SHARD, SHARDS = 40, 15, 6
KINDS = {name: kind for name, kind in SAMPLED.items() if name != "sketch"}
KINDS["texts"] = {"measure": "blend:0.7*psimrank+0.3*neighborhood"}
kinds = pytest.mark.parametrize("kind", KINDS)


class Direct:
    """Holders of all shards in this very process, of which some are ``gone``."""

    def __init__(self, path: Path, shards: int, gone: Collection[int] = ()) -> None:
        self.shards, self.gone = shards, gone
        self.holders = [SampleHolder(str(path), shard, shards) for shard in range(shards)]
        self.asked: list[ShardRequest] = []

    def ask(self, wanted: ShardRequest, shards: int) -> list[tuple[int, dict[int, ShardResponse]]]:
        self.asked.append(wanted)
        there = [i for i in range(self.shards) if i not in self.gone][:shards]
        return [(i, self.holders[i].tell(wanted)[1]) for i in reversed(there)]

    def status(self) -> list[ShardStatus]:
        return []

    def close(self) -> None:
        self.holders.clear()


def spread(index: Index, gone: Collection[int] = (), shards: int = SHARDS) -> Index:
    stored = index.stored
    remote = RemoteShards(stored, Direct(stored.store.path, shards, gone))
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


def told(index: Index, names: list[str]) -> list[Any]:
    """What an index says of some nodes, in all ways that it can be asked."""
    found: list[Any] = []
    for a, b in pairwise(names):
        found += [
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
            found.append(WhyDocument.of(index, (a, b), names[0]))
    return [asdict(each) for each in found]


@kinds
def test_all_shards_answer_as_the_index(kind: str, built: Built) -> None:
    index = built(kind)
    names = [index.nodes.name(i) for i in (0, 7, 21, 33, 50)]
    assert told(spread(index), names) == told(index, names)
    alone = spread(index, shards=1)
    assert told(alone, names[:2]) == told(index, names[:2])
    assert alone.related(names[0]) == index.related(names[0])
    assert alone.answered == (SAMPLES, 1, 1)
    many = [list(hits) for hits in alone.related_many(names, 4)]
    assert many == [list(hits) for hits in index.related_many(names, 4)]


@kinds
def test_missing_shards_answer_as_an_index_of_their_samples(kind: str, built: Built) -> None:
    """The last two shards are gone: what is left are the first samples."""
    index = built(kind)
    names = [index.nodes.name(i) for i in (0, 7, 21, 33, 50)]
    least = 4 * SAMPLES // SHARDS
    found = told(spread(index, gone={4, 5}), names)
    wanted = told(index.with_samples(least), names)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.pop("loss") == {"samples": least, "shards": {"answered": 4, "of": SHARDS}}
        theirs.pop("loss")
        assert mine == theirs


def test_missed_samples_equal_lost_files(built: Built, tmp_path: Path) -> None:
    """Shards that are the files of an index: one that is silent, and one that is not there."""
    index = built("trees")
    path = index.stored.store.path
    (middle,) = [name for name in copytree(path, tmp_path / "i").iterdir() if "15" in name.name]
    middle.unlink()
    files = cocite.open(tmp_path / "i")
    assert files.samples == SAMPLES - SHARD
    one = spread(index, shards=SAMPLES, gone=range(SHARD, 2 * SHARD))
    for i in range(0, 50, 17):
        name = index.nodes.name(i)
        assert one.related(name) == files.related(name)
    assert one.related(name, refine=True, k=3) == files.related(name, refine=True, k=3)


def test_refreshed_index_gives_every_shard_all_snapshots(graph: Graph, tmp_path: Path) -> None:
    old = cocite.build(graph, measure="psimrank", samples=SAMPLES)
    rows = (graph.path.parent / "links.tsv").read_text()
    more = "".join(f"n{a}\tn{b}\n" for a, b in [(1, 200), (3, 200), (2, 200), (1, 4)])
    (tmp_path / "more.tsv").write_text(rows + more)
    newer = cocite.ingest(tmp_path / "more.tsv", tmp_path / "g", delimiter="tab", header="no")
    index = cocite.refresh(old.stored.store.path, newer, fraction=0.25)
    names = ["n200", "n4", "n2"]
    assert told(spread(index), names) == told(index, names)
    found = spread(index, gone={2, 4}).related("n200")
    assert found
    assert all(hit.low <= hit.score <= hit.high for hit in found)


def test_settings_of_a_question_are_those_of_any_other(built: Built) -> None:
    index = built("trees")
    other = spread(index)
    for settings in (
        {"decay": 0.3},
        {"meeting_weight": "t <= 2"},
        {"meeting_weight": "hitting"},
        {"evidence": "geometric"},
    ):
        for name in ("n3", "n17"):
            assert other.related(name, **settings) == index.related(name, **settings)
            score = index.similarity(name, "n5", **settings)
            assert other.similarity(name, "n5", **settings) == score
    assert other.related("n3", prefix="n1") == index.related("n3", prefix="n1")
    assert other.related("n3", order="pagerank") == index.related("n3", order="pagerank")


@pytest.mark.parametrize("kind", ["trees", "minhash", "both"])
def test_refined_answers_are_those_of_the_index(kind: str, built: Built) -> None:
    index = built(kind)
    for name in ("n3", "n41"):
        assert spread(index).related(name, 5, refine=True) == index.related(name, 5, refine=True)
        mine = spread(index).similarity(name, "n5", refine=True)
        assert mine == index.similarity(name, "n5", refine=True)


def test_the_order_of_hits_is_of_the_samples_that_made_them(built: Built) -> None:
    index = built("trees")
    other = spread(index)
    replicas = replicas_of(other)
    hits = other.related("n3")
    replicas.gone = {0, 1, 2, 3, 4}
    assert hits.certain_ranks == index.related("n3").certain_ranks
    assert len(replicas.asked) == 1


def test_fewer_samples_are_those_of_fewer_shards(built: Built) -> None:
    index = built("trees")
    some = spread(index).with_samples(10)
    assert some.remote is not None
    assert (some.samples, some.remote.query_shards) == (10, 2)
    assert some.related("n3") == index.with_samples(2 * SAMPLES // SHARDS).related("n3")
    assert some.answered == (13, 2, SHARDS)
    with pytest.raises(UsageError, match="choose 1 to 40"):
        spread(index).with_samples(41)


def test_what_cannot_be_spread_is_refused(graph: Graph) -> None:
    exact = cocite.build(graph, measure="cocitation")
    with pytest.raises(UsageError, match="scores are computed"):
        RemoteShards(exact.stored, Direct(exact.stored.store.path, 0))
    sketch = cocite.build(graph, measure="xjaccard", bits=2, samples=8)
    with pytest.raises(UsageError, match="has a value for each node"):
        SampleHolder(str(sketch.stored.store.path), 0, 2)
    with pytest.raises(UsageError, match="single queries only"):
        spread(cocite.build(graph, measure="psimrank", samples=9)).related_all("x")


def test_damaged_shard_answers_without(built: Built, tmp_path: Path) -> None:
    copy = Path(copytree(built("trees").stored.store.path, tmp_path / "i"))
    index = cocite.open(copy, verify=False)
    (first, *_) = sorted(p for p in copy.iterdir() if p.name.startswith("in.samples"))
    first.chmod(0o644)
    first.write_bytes(b"\xf0" * first.stat().st_size)
    # Of its samples, 13 to 19, two are in it: the question that it asks itself first finds that.
    holder = SampleHolder(str(copy), 2, SHARDS)
    assert holder.holds().samples == 5
    _, told = holder.tell(ShardRequest(rows=(3,)))
    assert told[0].numbers.tolist() == [15, 16, 17, 18, 19]
    assert holder.holds().lost == (first.name,)
    with pytest.raises(Damaged, match="has lost all samples"):
        SampleHolder(str(copy), 0, SHARDS).tell(ShardRequest(rows=(3,)))
    assert index.samples == SAMPLES


def test_two_shards_with_the_same_samples_are_noticed(built: Built) -> None:
    other = spread(built("trees"))
    replicas = replicas_of(other)
    replicas.holders[1] = replicas.holders[0]
    with pytest.raises(Damaged, match="the same sample"):
        other.related("n3")
