"""Refreshes: which samples are kept, drawn and linked, resuming, and refusals."""

import datetime
import itertools
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.constants import NOWHERE
from cocite.errors import Busy, Damaged, NotAStore, ResourceError, UnknownNode, UsageError
from cocite.graph.name_files import match_names
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.layouts.snapshots import Snapshot
from cocite.index.refresh import RefreshBuild
from cocite.options.build import RefreshOptions
from cocite.resources import Resources
from cocite.storage import disk
from cocite.storage.staging import Staging
from tests.builds import files, flip, stop_at
from tests.conftest import MakeGraph, with_psimrank
from tests.storage.enemy import Killed, KilledAt

Pairs = set[tuple[str, str]]
DAY = "2026-11-21"

OLD = [f"p{i}" for i in range(40)]
NEW = [f"p{i}" for i in range(6, 40)] + [f"a{i}" for i in range(5)] + ["z"]
"""Six names are gone; five new ones sort before all others, and one sorts last."""


def links(seed: int, names: list[str], count: int) -> Pairs:
    rng = np.random.default_rng(seed)
    return {(names[a], names[b]) for a, b in rng.integers(0, len(names), (count, 2)) if a != b}


@pytest.fixture
def graphs(make_graph: MakeGraph) -> list[Graph]:
    changed = {pair for pair in links(1, OLD, 160) if set(pair) <= set(NEW)}
    return [
        make_graph(sorted(links(1, OLD, 160)), OLD),
        make_graph(sorted(changed | links(2, NEW, 60)), NEW),
        make_graph(sorted(links(3, OLD, 150)), OLD),
    ]


def build(graph: Graph, path: Path, samples: int = 12, **options: Any) -> cocite.Index:
    return cocite.build(graph, path, samples=samples, length=6, seed=5, **with_psimrank(options))


def refresh_build(path: Path, graph: Graph, **options: Any) -> RefreshBuild:
    return RefreshBuild(path, graph, Resources.checked(), RefreshOptions(**options))


def test_refresh_follows_symlink(graphs: list[Graph], tmp_path: Path) -> None:
    """The link remains a link, since a server opens it by that path."""
    build(graphs[0], tmp_path / "plain")
    build(graphs[0], tmp_path / "far" / "of-now")
    (tmp_path / "now").symlink_to("far/of-now")
    cocite.refresh(tmp_path / "plain", graphs[1], fraction=0.5, force=True)
    cocite.refresh(tmp_path / "now", graphs[1], fraction=0.5, force=True)
    assert (tmp_path / "now").is_symlink()
    assert [entry.name for entry in tmp_path.glob("*.building")] == []
    linked, plain = files(tmp_path / "far" / "of-now"), files(tmp_path / "plain")
    assert linked.keys() == plain.keys()
    assert {name for name in linked if linked[name] != plain[name]} <= {"manifest.json"}
    followed, direct = (cocite.open(tmp_path / name).related("p7") for name in ("now", "plain"))
    assert followed == direct


def samples_of(path: Path) -> list[bytes]:
    """Return the bytes of each sample of each part, regardless of shard boundaries."""
    stored = StoredIndex.open(path)
    samples = []
    for part in stored.parts:
        for shard in part.shards:
            starts = [int(row[0]) for row in shard.blobs] + [shard.words.size]
            samples += [shard.words[low:high].tobytes() for low, high in itertools.pairwise(starts)]
    return samples


LAYOUTS = [
    *((f"{kind}simrank", "trees") for kind in ("", "p", "compact-")),
    ("xjaccard", "minhash"),
]
UNTRANSFERABLE = [("psimrank", "paths"), ("compact-simrank", "compact"), ("xjaccard", "sketch")]
ALL_LAYOUTS = LAYOUTS + UNTRANSFERABLE


@pytest.mark.parametrize(("measure", "layout"), LAYOUTS)
def test_refresh_with_same_graph_links_shards(
    graphs: list[Graph], tmp_path: Path, measure: str, layout: str
) -> None:
    options: dict[str, Any] = {"measure": measure, "layout": layout}
    build(graphs[0], tmp_path / "x", shard=3, **options)
    opened = cocite.open(tmp_path / "x")
    before = opened.related("p7", 100)
    inode = (tmp_path / "x" / "in.samples-000009").stat().st_ino
    cocite.refresh(tmp_path / "x", graphs[0], fraction=0.25, force=True)
    assert (tmp_path / "x" / "in.samples-000009").stat().st_ino == inode
    assert opened.related("p7", 100) == before  # an open index stays as it was
    build(graphs[0], tmp_path / "all", 16, **options)
    assert samples_of(tmp_path / "x") == samples_of(tmp_path / "all")[3:15]
    # This share ends in the middle of a shard.
    index = cocite.refresh(tmp_path / "x", graphs[0], fraction=1 / 12, force=True)
    assert index.samples == 12
    assert samples_of(tmp_path / "x") == samples_of(tmp_path / "all")[4:]
    assert not {p for p in tmp_path.iterdir() if p.name.endswith(".building")}
    assert not index.stored.store.has("since")


@pytest.mark.parametrize(
    ("measure", "layout", "direction"),
    [(*each, way) for each, way in zip(ALL_LAYOUTS, itertools.cycle(("in", "both")))],
)
def test_refresh_fraction_one_equals_build_of_new_graph(
    graphs: list[Graph], tmp_path: Path, measure: str, layout: str, direction: str
) -> None:
    options: dict[str, Any] = {"measure": measure, "layout": layout, "direction": direction}
    build(graphs[0], tmp_path / "x", **options)
    index = cocite.refresh(tmp_path / "x", graphs[1], fraction=1, force=True)
    build(graphs[1], tmp_path / "n", 24, **options)
    fresh, parts = samples_of(tmp_path / "n"), 1 + (direction == "both")
    assert samples_of(tmp_path / "x") == [
        sample for part in range(parts) for sample in fresh[24 * part + 12 : 24 * part + 24]
    ]
    (generation,) = index.stored.store.facts["generations"]
    assert generation["first"] == 12
    assert generation["samples"] == 12
    assert generation["digest"] == graphs[1].digest
    assert list(index.nodes) == list(graphs[1].names)
    with pytest.raises(UnknownNode):
        index.related("p0")


def test_refresh_retires_all_old_samples(graphs: list[Graph], tmp_path: Path) -> None:
    build(graphs[0], tmp_path / "x")
    drawn = 12
    for share in (0.4, 0.4, 0.3):
        index = cocite.refresh(tmp_path / "x", graphs[1], fraction=share, force=True)
        drawn += int(np.ceil(round(share * 12, 9)))
    build(graphs[1], tmp_path / "n", drawn)
    assert samples_of(tmp_path / "x") == samples_of(tmp_path / "n")[-12:]
    facts = index.stored.store.facts["generations"]
    assert {g["digest"] for g in facts} == {graphs[1].digest}
    assert sum(g["samples"] for g in facts) == 12
    assert facts[-1]["first"] + facts[-1]["samples"] == drawn
    assert not index.stored.store.has("since")


def test_refresh_generations_record_graph_and_date(graphs: list[Graph], tmp_path: Path) -> None:
    build(graphs[0], tmp_path / "x")
    os.utime(tmp_path / "x" / "manifest.json", (0, 0))
    cocite.refresh(tmp_path / "x", graphs[1], fraction=0.25, date=DAY, force=True)
    cocite.refresh(
        tmp_path / "x", graphs[2], fraction=0.07, force=True
    )  # 0.84 of a sample is rounded up
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    names = [graph.path.name for graph in graphs]
    generations = cocite.open(tmp_path / "x").stored.store.facts["generations"]
    assert [Snapshot(**each) for each in generations] == [
        Snapshot(
            number, *numbers, names[number], graphs[number].digest, date, f"../{names[number]}"
        )
        for number, numbers, date in (
            (0, (4, 8), "1970-01-01"),
            (1, (12, 3), DAY),
            (2, (15, 1), today),
        )
    ]


def test_refresh_threads_keep_bytes(graphs: list[Graph], tmp_path: Path) -> None:
    for name, threads in (("x", 1), ("y", 2)):
        build(graphs[0], tmp_path / name, direction="both")
        cocite.refresh(
            tmp_path / name, graphs[1], fraction=0.4, threads=threads, date=DAY, force=True
        )
    assert files(tmp_path / "x") == files(tmp_path / "y")


def test_refresh_rebuilds_parts_without_samples(graphs: list[Graph], tmp_path: Path) -> None:
    blend = "blend:0.5*psimrank+0.5*cocitation(idf=true)"
    build(graphs[0], tmp_path / "x", measure=blend)
    cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    build(graphs[1], tmp_path / "n", measure=blend)
    refreshed, rebuilt = files(tmp_path / "x"), files(tmp_path / "n")
    exact = [name for name in rebuilt if name.startswith("cocitation")]
    assert exact
    assert all(refreshed[name] == rebuilt[name] for name in exact)
    assert refreshed["psimrank-in.digests"] != rebuilt["psimrank-in.digests"]


@pytest.mark.parametrize("measure", ["cocitation", "ppr", "pagesim"])
def test_refresh_rebuilds_unsampled_measure(
    graphs: list[Graph], tmp_path: Path, measure: str
) -> None:
    cocite.build(graphs[0], tmp_path / "x", measure=measure)
    with refresh_build(tmp_path / "x", graphs[1], fraction=0.1) as work:
        assert (work.retained, len(work.drawn)) == (0, 0)
        work.run()
    cocite.build(graphs[1], tmp_path / "n", measure=measure)
    assert files(tmp_path / "x") == files(tmp_path / "n")


def test_refresh_combines_small_shards(
    graphs: list[Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.index.parts._MOST_LINKED", 5)
    build(graphs[0], tmp_path / "x", 40, shard=10)
    for _ in range(7):
        cocite.refresh(tmp_path / "x", graphs[0], fraction=1 / 40, force=True)
        assert len(list((tmp_path / "x").glob("in.samples-*"))) <= 9
    build(graphs[0], tmp_path / "n", 47)
    assert samples_of(tmp_path / "x") == samples_of(tmp_path / "n")[7:]


# -- during a refresh ------------------------------------------------------------------


@pytest.mark.long
def test_refresh_keeps_concurrent_queries_consistent(graphs: list[Graph], tmp_path: Path) -> None:
    """Every answer comes from exactly one generation."""
    path = tmp_path / "x"
    opened = build(graphs[0], path, 60)
    allowed = [opened.related("p7", 100)]
    answers: list[tuple[Any, Any]] = []
    errors: list[BaseException] = []
    finished = threading.Event()

    def query() -> None:
        try:
            while not finished.is_set():
                answers.append((opened.related("p7", 100), cocite.open(path).related("p7", 100)))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=query)
    thread.start()
    try:
        for number in range(8):
            index = cocite.refresh(path, graphs[(number + 1) % 3], fraction=0.2, force=True)
            allowed.append(index.related("p7", 100))
    finally:
        finished.set()
        thread.join()
    assert not errors
    assert len(answers) > 8
    assert all(old == allowed[0] for old, _ in answers)
    order = [allowed.index(fresh) for _, fresh in answers]
    assert order == sorted(order)
    assert len(set(order)) > 2


@pytest.mark.parametrize("call", ["write", "sync_file", "rename", "exchange"])
def test_refresh_killed_at_any_call_leaves_old_or_new_index(
    graphs: list[Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    for name in ("old", "new"):
        build(graphs[0], tmp_path / name)
    cocite.refresh(tmp_path / "new", graphs[1], fraction=0.5, date=DAY, force=True)
    old, new = files(tmp_path / "old"), files(tmp_path / "new")
    real, kills = getattr(disk, call), 0
    for nth in range(1, 100, 3):
        build(graphs[0], tmp_path / f"x{nth}")
        killed_call = KilledAt(real, nth)
        with monkeypatch.context() as patch:
            patch.setattr(disk, call, killed_call)
            try:
                cocite.refresh(tmp_path / f"x{nth}", graphs[1], fraction=0.5, date=DAY, force=True)
            except Killed:
                kills += 1
        content = files(tmp_path / f"x{nth}")
        assert content in (old, new)
        if content == old:
            cocite.refresh(tmp_path / f"x{nth}", graphs[1], fraction=0.5, date=DAY, force=True)
        assert files(tmp_path / f"x{nth}") == new
        if killed_call.calls < nth:
            break
    assert kills


def test_refresh_resumes_only_with_same_settings(graphs: list[Graph], tmp_path: Path) -> None:
    build(graphs[0], tmp_path / "x", 80)

    stop = stop_at(60)
    with pytest.raises(KeyboardInterrupt):
        cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, date=DAY, progress=stop, force=True)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("drawn: 40, here 32", {"fraction": 0.4}),
        (f"date: {DAY}, here 2026-11-22", {"fraction": 0.5, "date": "2026-11-22"}),
    ]
    for message, options in cases:
        with pytest.raises(UsageError, match=rf"unfinished build with other settings: {message}\."):
            cocite.refresh(tmp_path / "x", graphs[1], **options, force=True)
    with pytest.raises(UsageError, match="unfinished build with other settings: "):
        build(graphs[0], tmp_path / "x", 80, overwrite=True)
    with refresh_build(tmp_path / "x", graphs[1], fraction=0.5) as work:
        assert work.date == DAY
        assert work.done == 56  # three shards of old samples, one of new
        assert work.run().units == 24
    assert cocite.open(tmp_path / "x").samples == 80
    with pytest.raises(KeyboardInterrupt):
        cocite.refresh(tmp_path / "x", graphs[0], fraction=0.5, progress=stop, force=True)
    index = cocite.refresh(tmp_path / "x", graphs[0], fraction=1, restart=True, force=True)
    assert len(index.stored.freshness.snapshots) == 1


def test_refresh_refuses_replaced_index(graphs: list[Graph], tmp_path: Path) -> None:
    build(graphs[0], tmp_path / "x")
    late = refresh_build(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    with pytest.raises(Busy, match="replaced during the refresh"), late:
        pass
    with Staging(tmp_path / "x", "index", overwrite=True), pytest.raises(Busy, match="is building"):
        cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    assert len(cocite.open(tmp_path / "x").stored.freshness.snapshots) == 2
    assert not (tmp_path / "x.building").exists()


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "layout"), UNTRANSFERABLE)
def test_refresh_refuses_untransferable_layout(
    graphs: list[Graph], tmp_path: Path, measure: str, layout: str
) -> None:
    build(graphs[0], tmp_path / "x", measure=measure, layout=layout)
    with pytest.raises(UsageError, match=rf"{layout} layout, whose samples cannot be transferred"):
        cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)


def test_refresh_reports_bad_path_date_and_memory(
    graphs: list[Graph], make_graph: MakeGraph, tmp_path: Path
) -> None:
    with pytest.raises(NotAStore):
        cocite.refresh(tmp_path / "nowhere", graphs[1], fraction=0.5, force=True)
    build(graphs[0], tmp_path / "x")
    with pytest.raises(UsageError, match="date is 'soon'; it must be a date such as 2026-11-21"):
        cocite.refresh(tmp_path / "x", graphs[1], date="soon", force=True)
    # Drawing samples can use the disk; matching names cannot.
    large = make_graph([("p1", "p2")], [*OLD, *range(400_000)])
    with pytest.raises(ResourceError, match=r"the new graph \(400,040 nodes\) needs .* of memory"):
        cocite.refresh(tmp_path / "x", large, memory="5MB", force=True)
    assert cocite.refresh(tmp_path / "x", large, memory="5MB", fraction=1, force=True).samples == 12


def test_refresh_refuses_mixed_weights(
    graphs: list[Graph], make_graph: MakeGraph, tmp_path: Path
) -> None:
    rows = [(a, b, 1 + i % 3) for i, (a, b) in enumerate(sorted(links(1, OLD, 160)))]
    weighted = make_graph(rows, OLD, weight_column="3")
    rows = [(a, b, 1 + i % 5) for i, (a, b) in enumerate(sorted(links(2, OLD, 160)))]
    heavier = make_graph(rows, OLD, weight_column="3")
    build(graphs[0], tmp_path / "plain")
    build(weighted, tmp_path / "weighted")
    build(weighted, tmp_path / "ignored", unweighted=True)
    with pytest.raises(UsageError, match=r"have weights, but the links of .* have none"):
        cocite.refresh(tmp_path / "plain", weighted, force=True)
    with pytest.raises(UsageError, match=r"have none, but the links of .* have weights"):
        cocite.refresh(tmp_path / "weighted", graphs[0], force=True)
    for name, unweighted in (("weighted", False), ("ignored", True)):
        index = cocite.refresh(tmp_path / name, heavier, fraction=0.5, force=True)
        assert index.stored.weighted is not unweighted
        build(heavier, tmp_path / f"{name}-now", 18, unweighted=unweighted)
        expected = samples_of(tmp_path / f"{name}-now")
        assert samples_of(tmp_path / name)[6:] == expected[12:]


def test_refresh_refuses_damaged_shard(graphs: list[Graph], tmp_path: Path) -> None:
    build(graphs[0], tmp_path / "x")
    before = files(tmp_path / "x")
    path = tmp_path / "x" / "in.samples-000000"
    flip(path, -70)
    with pytest.raises(Damaged, match=r"in\.samples-000000 has checksum .* or rebuild it"):
        cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    assert {**files(tmp_path / "x"), path.name: before[path.name]} == before


def test_since_beyond_samples_raises_damaged(graphs: list[Graph], tmp_path: Path) -> None:
    build(graphs[0], tmp_path / "x")
    cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    path = tmp_path / "x" / "since"
    since = np.fromfile(path, np.uint32)
    since[0] = 18
    since.tofile(path)
    index = cocite.open(tmp_path / "x", verify=False)
    with pytest.raises(Damaged, match="a node has no samples"):
        index.similarity(index.nodes.name(0), "p9")
    with pytest.raises(Damaged, match="a node has no samples"):
        index.related_all(tmp_path / "all.csv")


# -- names -----------------------------------------------------------------------------

KINDS = {
    "dense": [str(i) for i in range(60)],
    "fewer": [str(i) for i in range(45)],
    "integers": [str(i * i) for i in range(50)],
    "text": [f"p{i}" for i in range(40)],
    "mixed": [str(i) for i in range(30)] + ["x", "a page", "http://b.org/"],
    "urls": [f"http://s{i % 7}.org/{i}" for i in range(50)] + ["x"],
}


def assert_matched(old: Names, new: Names) -> None:
    names = list(new)
    for name, match in zip(old, match_names(old, new).tolist(), strict=True):
        assert match == (names.index(name) if name in names else NOWHERE)


@pytest.mark.parametrize(
    ("old", "new"),
    [(old, list(KINDS)[(i + by) % len(KINDS)]) for i, old in enumerate(KINDS) for by in (0, 1, 4)],
)
def test_match_names_finds_moved_names(make_graph: MakeGraph, old: str, new: str) -> None:
    old_names = make_graph([KINDS[old][:2]], KINDS[old]).names
    new_names = make_graph([KINDS[new][-2:]], KINDS[new]).names
    assert_matched(old_names, new_names)


def test_match_names_handles_hash_collisions(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.graph.name_files.name_hash", len)
    old = make_graph([("p1", "p2")], [f"p{i}" for i in range(30)]).names
    new = make_graph([("p1", "q2")], [f"p{i}" for i in range(10, 40)]).names
    assert_matched(old, new)
