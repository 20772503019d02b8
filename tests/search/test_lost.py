"""Indexes that have lost samples: queries use the rest, say so, and have wider intervals."""

import json
import logging
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph, Index
from cocite.constants import NOWHERE
from cocite.errors import Damaged
from cocite.index.layouts.reader import SampledReader, Span
from cocite.search.intervals import half_width
from tests.batches import all_rows
from tests.conftest import CliJson, Shell, with_psimrank
from tests.sampled import KINDS, Built, built_once, near_graph

SAMPLES, SHARD = 40, 10


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return near_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def built(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("indexes")
    return built_once(graph, folder, KINDS, samples=SAMPLES, shard=SHARD)


def copy_without(index: Index, path: Path, *lost: str) -> Index:
    """Copy an index without some files; by default the shards with samples 10 to 19."""
    shutil.copytree(index.stored.store.path, path)
    for name in lost or [file.name for file in path.glob("*samples-000010")]:
        (path / name).unlink()
    return cocite.open(path)


def related_pairs(index: Index) -> list[tuple[str, str]]:
    """Pairs of related nodes."""
    found = []
    for node in range(0, len(index.nodes), 9):
        name = index.nodes.name(node)
        found += [(name, hit.node) for hit in index.related(name, 3)]
    assert len(found) > 9
    return found


@pytest.mark.parametrize(
    ("kind", "begin"), [(kind, (0, 30)[i % 2]) for i, kind in enumerate(KINDS)] + [("trees", 30)]
)
def test_lost_samples_at_ends_equal_smaller_index(
    graph: Graph, built: Built, tmp_path: Path, kind: str, begin: int
) -> None:
    """Scores, intervals and orders, of queries and of batches."""
    full = built(kind)
    files = full.stored.store.manifest.files
    removed = [name for name in files if name.endswith(f"samples-{begin:06d}")]
    lossy = copy_without(full, tmp_path / "left", *removed)
    numbers = range(SHARD, SAMPLES) if begin == 0 else range(SAMPLES - SHARD)
    expected = cocite.build(
        graph, tmp_path / "expected", numbers=numbers, **with_psimrank(KINDS[kind])
    )
    assert lossy.samples == expected.samples == 30
    for node in (expected.nodes.name(i) for i in range(0, len(expected.nodes), 7)):
        hits = expected.related(node, 50)
        found = lossy.related(node, 50)
        assert found == hits
        assert found.certain_ranks == hits.certain_ranks
    assert all_rows(lossy, tmp_path / "a", 5) == all_rows(expected, tmp_path / "b", 5)


@pytest.mark.parametrize("kind", ["both", "blend"])
def test_lost_samples_are_counted_per_part(built: Built, tmp_path: Path, kind: str) -> None:
    full = built(kind)
    prefixes = [part.prefix for part in full.stored.parts if "samples" in part.settings.to_json()]
    removed = [f"{prefix}samples-{10 * i:06d}" for i, prefix in enumerate(prefixes)]
    removed.append(f"{prefixes[0]}samples-000030")
    lossy = copy_without(full, tmp_path / "left", *removed)
    assert lossy.samples == 20
    assert [lost.file for lost in lossy.missing_samples] == sorted(
        removed, key=lambda n: prefixes.index(n[:-14])
    )
    settings = full.stored.measure.ask_settings({})
    for a, b in related_pairs(full):
        first, second = full.nodes.ids([a, b]).tolist()
        score, exact, shared, span = 0.0, 0.0, np.zeros(20), Span(0, 0, 0)
        for reader in full.scorer.readers:
            part_settings = reader.part.ask_settings(settings)
            if isinstance(reader, SampledReader):
                lost = [int(name[-6:]) for name in removed if name.startswith(reader.part.prefix)]
                rows = [i for i in range(SAMPLES) if i // SHARD * SHARD not in lost]
                weight = reader.part.weight
                values = (
                    weight
                    * reader.values(first, np.array([second], np.uint32), part_settings)[0][rows, 0]
                )
                score += values.mean()
                shared = shared + values[-20:]
                span = span.plus(reader.span(part_settings), weight)
            else:
                exact += (
                    reader.part.weight * reader.pair(first, second, part_settings).grains / 1e12
                )
        found = lossy.similarity(a, b, interval="bernstein")
        assert found.score == pytest.approx(score + exact, abs=1e-9)
        half = half_width(shared.std(ddof=1) / np.sqrt(20), 20, span.width, 0.95)
        # The lower end is that of the samples that all parts have, but at most the score.
        low = min(score, shared.mean() - half) + exact
        assert found.low == pytest.approx(max(0.0, low), abs=1e-9)
        assert found.low <= found.score <= found.high
        hits = lossy.related(a, 5)
        assert 0 <= hits.certain_ranks <= len(hits)


@pytest.mark.parametrize("kind", ["trees", "packed", "paths", "minhash"])
def test_refine_redraws_lost_samples(built: Built, tmp_path: Path, graph: Graph, kind: str) -> None:
    """Refined queries draw lost samples again; neighborhoods are exact anyway."""
    full = built(kind)
    lossy = copy_without(full, tmp_path / "left")
    lossy = cocite.open(tmp_path / "left", graph=graph)
    options: dict[str, Any] = {"refine": True, "target_error": 0.2}
    for a, b in related_pairs(full)[::2]:
        assert lossy.similarity(a, b, **options) == full.similarity(a, b, **options)


def test_lost_samples_of_refreshed_index_are_skipped(graph: Graph, tmp_path: Path) -> None:
    links = (graph.path.parent / "links.tsv").read_text()
    (tmp_path / "links").write_text(links + "n3\tfresh\nn4\tfresh\nn5\tfresh\n")
    newer = cocite.ingest(tmp_path / "links", tmp_path / "h", delimiter="tab", header="no")
    cocite.build(graph, tmp_path / "i", samples=40, shard=10, measure="psimrank")
    # Samples 40 to 51 are from the new graph.
    full = cocite.refresh(tmp_path / "i", newer, fraction=0.3, force=True)
    runs = full.stored.parts[0].runs
    name = next(name for name, run in runs.items() if 20 in run)
    lossy = copy_without(full, tmp_path / "left", name)
    removed = [number - 12 for number in runs[name]]
    remaining = np.setdiff1d(np.arange(40), removed)
    reader = full.scorer.readers[0]
    assert isinstance(reader, SampledReader)
    settings = reader.part.ask_settings(full.stored.measure.ask_settings({}))
    for hit in full.related("n7", 5):
        first, second = full.nodes.ids(["n7", hit.node]).tolist()
        values = reader.values(first, np.array([second], np.uint32), settings)[0][remaining, 0]
        if hit.node != "fresh":
            assert lossy.similarity("n7", hit.node).score == pytest.approx(values.mean(), abs=1e-9)
    for hit in full.related("fresh", 5):  # known only to the newest samples, which are present
        assert lossy.similarity("fresh", hit.node) == hit[1:]
    full.related_all(tmp_path / "all.csv")
    assert all_rows(lossy, tmp_path / "rows", 5) == [
        (node, rank, *hit[:3])
        for node in lossy.nodes
        for rank, hit in enumerate(lossy.related(node, 5), 1)
    ]
    with pytest.raises(Damaged, match="draw all samples from the newest graph"):
        cocite.refresh(tmp_path / "left", newer, force=True)
    cocite.refresh(tmp_path / "left", newer, fraction=1, force=True)
    assert cocite.open(tmp_path / "left").missing_samples == ()
    newest = [name for name, run in runs.items() if run.stop > 40]
    without_newest = copy_without(full, tmp_path / "blind", *newest)
    assert without_newest.related("fresh") == []
    with pytest.raises(Damaged, match="a node has no available samples"):
        without_newest.similarity("fresh", "n7")


@pytest.mark.parametrize(
    ("kind", "lost", "message"),
    [
        ("both", "out.samples-*", "all its samples are missing or damaged"),
        ("trees", "in.members", "in.members"),
        ("trees", "in.digests", "in.digests"),
        ("trees", "names.data", "names.data"),
        ("blend", "*in_neighbours", "in_neighbours"),  # a layout without shards
    ],
)
def test_open_rejects_indispensable_lost_files(
    built: Built, tmp_path: Path, kind: str, lost: str, message: str
) -> None:
    full = built(kind)
    removed = [path.name for path in full.stored.store.path.glob(lost)]
    with pytest.raises(Damaged, match=message):
        copy_without(full, tmp_path / "left", *removed)


def test_with_samples_takes_first_available(graph: Graph, built: Built, tmp_path: Path) -> None:
    lossy = copy_without(built("trees"), tmp_path / "left", "in.samples-000000")
    expected = cocite.build(graph, numbers=range(10, 25), measure="psimrank")
    assert lossy.with_samples(15).related("n7") == expected.related("n7")
    assert lossy.with_samples(15).samples == 15


# -- damage found by queries -------------------------------------------------------------


def copy_with_damage(index: Index, path: Path) -> None:
    """Copy an index with a shard whose positions and groups are out of range."""
    shutil.copytree(index.stored.store.path, path)
    for shard in path.glob("*samples-000010"):
        words = np.fromfile(shard, np.uint32)
        words[words != NOWHERE] |= np.uint32(0x70000000)
        words.tofile(shard)


@pytest.mark.parametrize("kind", ["trees", "both", "paths", "compact", "minhash", "blend"])
def test_damaged_shard_is_left_out_during_query(
    built: Built, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    copy_with_damage(built(kind), tmp_path / "broken")
    expected = copy_without(built(kind), tmp_path / "left")
    index = cocite.open(tmp_path / "broken", verify=False)
    assert (index.samples, index.missing_samples) == (40, ())
    with caplog.at_level(logging.WARNING):
        results = {node: index.related(node) for node in list(index.nodes)[::4]}
    assert index.samples == 30
    assert f"{tmp_path / 'broken'} has lost samples 10..19" in caplog.text
    assert {node: index.related(node) for node in results} == {
        node: expected.related(node) for node in results
    }
    reopened = cocite.open(tmp_path / "broken", verify=False)
    assert all_rows(reopened, tmp_path / "a", 5) == all_rows(expected, tmp_path / "b", 5)
    assert reopened.samples == 30


def test_batch_continues_after_damaged_shard(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.search.batch.pieces._MOST", 8)
    copy_with_damage(built("trees"), tmp_path / "broken")
    copy_without(built("trees"), tmp_path / "left").related_all(tmp_path / "b.csv", 5)

    def stop(stage: str, done: int, total: int) -> None:
        if index.missing_samples and done >= 16:
            raise KeyboardInterrupt

    index = cocite.open(tmp_path / "broken", verify=False)
    with pytest.raises(KeyboardInterrupt):
        index.related_all(tmp_path / "a.csv", 5, progress=stop, threads=1)
    progress: list[int] = []
    resumed = cocite.open(tmp_path / "broken", verify=False)
    resumed.related_all(
        tmp_path / "a.csv", 5, progress=lambda stage, done, total: progress.append(done)
    )
    assert progress[0] >= 16
    assert resumed.samples == 30
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def flip_bit(path: Path) -> None:
    """Flip the last bit of a file."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


# -- messages ----------------------------------------------------------------------------


def test_commands_report_lost_samples(
    built: Built, tmp_path: Path, shell: Shell, cli_json: CliJson
) -> None:
    full = built("trees")
    a, b = related_pairs(full)[0]
    path = tmp_path / "left"
    copy_without(full, path)
    warning = f"{path} has lost samples 10..19 (in.samples-000010); queries use the other 30"
    for command in (["related", path, a], ["similarity", path, a, b], ["why", path, a, b]):
        assert warning in shell(command).err
        assert cli_json(*command)["samples"] == 30
    printed = shell(["related-all", path, "-o", tmp_path / "all.csv", "--format", "json"])
    assert warning in printed.err
    assert json.loads(printed.out)["samples"] == 30
    printed = shell(["info", path])
    assert "available  30 samples" in printed.out
    assert "in.samples-000010, samples 10 to 19" in printed.out
    assert cli_json("info", path)["available_samples"] == 30
    intact = cli_json("info", full.stored.store.path)
    assert not {"available_samples", "missing_samples"} & intact.keys()
    printed = shell(["verify", path], 1)
    assert "1 of " in printed.err
    assert "has lost samples 10..19" in printed.err
    assert (
        "cocite index GRAPH -o PATCH --measure psimrank --sample-range 10..19; then" in printed.err
    )
    assert f"cocite merge {path} PATCH -o {path} --overwrite" in printed.err
    verified = json.loads(shell(["verify", path, "--format", "json"], 1).out)
    assert "queries use the other 30" in verified["left"]
    shutil.copytree(full.stored.store.path, tmp_path / "bit")
    flip_bit(tmp_path / "bit" / "in.samples-000030")
    assert "has lost samples 30..39" in shell(["verify", tmp_path / "bit"], 1).err


@pytest.mark.parametrize("share", ["0.5", "1"])
@pytest.mark.parametrize("flipped", [False, True], ids=["missing", "flipped"])
def test_verify_advice_repairs_refreshed_index(
    graph: Graph,
    tmp_path: Path,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    flipped: bool,
    share: str,
) -> None:
    """A share of 0.5 leaves samples of two graphs, a share of 1 those of one graph."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "an index"
    cocite.build(graph, path, samples=SAMPLES, shard=SHARD, measure="simrank", length=4)
    links = [(f"n{a}", f"n{a * 7 % 60}") for a in range(60)] + [("new", "n3"), ("n4", "new")]
    newer = cocite.ingest(links, tmp_path / "now")
    shell(["refresh", path, newer.path, "--fraction", share])
    name = sorted(file for file in path.glob("*samples-*"))[-1]
    if flipped:
        flip_bit(name)
    else:
        name.unlink()
    _, advice = re.split(r"To repair it[^:]*: ", shell(["verify", path], 1).err.strip())
    for command in advice.split("; then "):
        words = [str(newer.path) if w == "GRAPH" else w for w in shlex.split(command)]
        if words[1] == "index":  # "with the settings of the index"
            words += ["--length", "4"]
        shell(words[1:])
    shell(["verify", path])
    repaired = cocite.open(path)
    assert (repaired.samples, repaired.missing_samples) == (SAMPLES, ())
    numbers = repaired.stored.freshness.numbers
    options: dict[str, Any] = {"numbers": numbers, "measure": "simrank", "length": 4}
    assert repaired.related("n3") == cocite.build(newer, tmp_path / "b", **options).related("n3")
