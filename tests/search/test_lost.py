"""Indexes that have lost samples: the others answer, say so, and their intervals are wider."""

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
from cocite.cli.main import main
from cocite.constants import NOWHERE
from cocite.errors import Damaged
from cocite.index.layouts.reader import SampledReader, Span
from cocite.search.intervals import half_width
from tests.batches import all_rows
from tests.conftest import by_walks
from tests.sampled import KINDS, Built, built_once, near_graph

SAMPLES, SHARD = 40, 10
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return near_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def built(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("indexes")
    return built_once(graph, folder, KINDS, samples=SAMPLES, shard=SHARD)


def without(index: Index, path: Path, *lost: str) -> Index:
    """A copy without some shards; by default those with samples 10 to 19."""
    shutil.copytree(index.stored.store.path, path)
    for name in lost or [file.name for file in path.glob("*samples-000010")]:
        (path / name).unlink()
    return cocite.open(path)


def pairs(index: Index) -> list[tuple[str, str]]:
    """Some that are related."""
    found = []
    for node in range(0, len(index.nodes), 9):
        name = index.nodes.name(node)
        found += [(name, hit.node) for hit in index.related(name, 3)]
    assert len(found) > 9
    return found


@kinds
@pytest.mark.parametrize("begin", [0, 30])
def test_ends_left(graph: Graph, built: Built, tmp_path: Path, kind: str, begin: int) -> None:
    """Scores, intervals and orders, of questions and of batches."""
    whole = built(kind)
    files = whole.stored.store.manifest.files
    gone = [name for name in files if name.endswith(f"samples-{begin:06d}")]
    left = without(whole, tmp_path / "left", *gone)
    numbers = range(SHARD, SAMPLES) if begin == 0 else range(SAMPLES - SHARD)
    expected = cocite.build(graph, tmp_path / "expected", numbers=numbers, **by_walks(KINDS[kind]))
    assert left.samples == expected.samples == 30
    for node in (expected.nodes.name(i) for i in range(0, len(expected.nodes), 7)):
        hits = expected.related(node, 50)
        found = left.related(node, 50)
        assert found == hits
        assert found.certain_ranks == hits.certain_ranks
    for index, name in ((left, "a.csv"), (expected, "b.csv")):
        index.related_all(tmp_path / name, 5)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("kind", ["both", "blend"])
def test_parts_lose_samples_by_themselves(built: Built, tmp_path: Path, kind: str) -> None:
    whole = built(kind)
    prefixes = [part.prefix for part in whole.stored.parts if "samples" in part.settings.to_json()]
    gone = [f"{prefix}samples-{10 * i:06d}" for i, prefix in enumerate(prefixes)]
    gone.append(f"{prefixes[0]}samples-000030")
    left = without(whole, tmp_path / "left", *gone)
    assert left.samples == 20
    assert [lost.file for lost in left.missing_samples] == sorted(
        gone, key=lambda n: prefixes.index(n[:-14])
    )
    asked = whole.stored.measure.ask_settings({})
    for a, b in pairs(whole):
        one, other = whole.nodes.ids([a, b]).tolist()
        score, exact, shared, span = 0.0, 0.0, np.zeros(20), Span(0, 0, 0)
        for reader in whole.scorer.readers:
            own = reader.part.ask_settings(asked)
            if isinstance(reader, SampledReader):
                lost = [int(name[-6:]) for name in gone if name.startswith(reader.part.prefix)]
                rows = [i for i in range(SAMPLES) if i // SHARD * SHARD not in lost]
                weight = reader.part.weight
                values = weight * reader.values(one, np.array([other], np.uint32), own)[0][rows, 0]
                score += values.mean()
                shared = shared + values[-20:]
                span = span.plus(reader.span(own), weight)
            else:
                exact += reader.part.weight * reader.pair(one, other, own).grains / 1e12
        found = left.similarity(a, b, interval="bernstein")
        assert found.score == pytest.approx(score + exact, abs=1e-9)
        half = half_width(shared.std(ddof=1) / np.sqrt(20), 20, span.width, 0.95)
        low = min(score, shared.mean() - half) + exact  # what all parts say together, and the score
        assert found.low == pytest.approx(max(0.0, low), abs=1e-9)
        assert found.low <= found.score <= found.high
        hits = left.related(a, 5)
        assert 0 <= hits.certain_ranks <= len(hits)


@pytest.mark.parametrize("kind", ["trees", "packed", "paths", "minhash"])
def test_refined_answers_stay_whole(built: Built, tmp_path: Path, graph: Graph, kind: str) -> None:
    """Lost samples are drawn again for the nodes; neighborhoods are exact anyway."""
    whole = built(kind)
    left = without(whole, tmp_path / "left")
    left = cocite.open(tmp_path / "left", graph=graph)
    options: dict[str, Any] = {"refine": True, "target_error": 0.2}
    for a, b in pairs(whole)[::2]:
        assert left.similarity(a, b, **options) == whole.similarity(a, b, **options)


def test_refreshed_index_uses_samples_that_know_both(graph: Graph, tmp_path: Path) -> None:
    links = (graph.path.parent / "links.tsv").read_text()
    (tmp_path / "links").write_text(links + "n3\tfresh\nn4\tfresh\nn5\tfresh\n")
    newer = cocite.ingest(tmp_path / "links", tmp_path / "h", delimiter="tab", header="no")
    cocite.build(graph, tmp_path / "i", samples=40, shard=10, measure="psimrank")
    # Samples 40 to 51 are of the new graph.
    whole = cocite.refresh(tmp_path / "i", newer, fraction=0.3, force=True)
    runs = whole.stored.parts[0].runs
    name = next(name for name, run in runs.items() if 20 in run)
    left = without(whole, tmp_path / "left", name)
    gone = [number - 12 for number in runs[name]]
    keep = np.setdiff1d(np.arange(40), gone)
    reader = whole.scorer.readers[0]
    assert isinstance(reader, SampledReader)
    asked = reader.part.ask_settings(whole.stored.measure.ask_settings({}))
    for hit in whole.related("n7", 5):
        one, other = whole.nodes.ids(["n7", hit.node]).tolist()
        values = reader.values(one, np.array([other], np.uint32), asked)[0][keep, 0]
        if hit.node != "fresh":
            assert left.similarity("n7", hit.node).score == pytest.approx(values.mean(), abs=1e-9)
    for hit in whole.related("fresh", 5):  # known to the newest ones alone, which are there
        assert left.similarity("fresh", hit.node) == hit[1:]
    whole.related_all(tmp_path / "all.csv")
    assert all_rows(left, tmp_path / "rows", 5) == [
        (node, rank, *hit[:3])
        for node in left.nodes
        for rank, hit in enumerate(left.related(node, 5), 1)
    ]
    with pytest.raises(Damaged, match="draw all samples from the newest graph"):
        cocite.refresh(tmp_path / "left", newer, force=True)
    cocite.refresh(tmp_path / "left", newer, fraction=1, force=True)
    assert cocite.open(tmp_path / "left").missing_samples == ()
    newest = [name for name, run in runs.items() if run.stop > 40]
    blind = without(whole, tmp_path / "blind", *newest)
    assert blind.related("fresh") == []
    with pytest.raises(Damaged, match="a node has no available samples"):
        blind.similarity("fresh", "n7")


@pytest.mark.parametrize(
    ("kind", "lost", "message"),
    [
        ("both", "out.samples-*", "all its samples are missing or damaged"),
        ("trees", "in.members", "in.members"),
        ("trees", "in.digests", "in.digests"),
        ("trees", "names.data", "names.data"),
        ("blend", "*in_neighbours", "in_neighbours"),  # of a layout made in one go
    ],
)
def test_what_cannot_be_spared(
    built: Built, tmp_path: Path, kind: str, lost: str, message: str
) -> None:
    whole = built(kind)
    gone = [path.name for path in whole.stored.store.path.glob(lost)]
    with pytest.raises(Damaged, match=message):
        without(whole, tmp_path / "left", *gone)


def test_first_samples_are_those_left(graph: Graph, built: Built, tmp_path: Path) -> None:
    left = without(built("trees"), tmp_path / "left", "in.samples-000000")
    some = cocite.build(graph, numbers=range(10, 25), measure="psimrank")
    assert left.with_samples(15).related("n7") == some.related("n7")
    assert left.with_samples(15).samples == 15


# -- what is found on the way ------------------------------------------------------------


def broken(index: Index, path: Path) -> None:
    """A copy with a shard of the right size in which positions and groups point outside."""
    shutil.copytree(index.stored.store.path, path)
    for shard in path.glob("*samples-000010"):
        words = np.fromfile(shard, np.uint32)
        words[words != NOWHERE] |= np.uint32(0x70000000)
        words.tofile(shard)


@pytest.mark.parametrize("kind", ["trees", "both", "paths", "compact", "minhash", "blend"])
def test_a_shard_found_to_be_damaged_is_left_out(
    built: Built, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken(built(kind), tmp_path / "broken")
    expected = without(built(kind), tmp_path / "left")
    index = cocite.open(tmp_path / "broken", verify=False)
    assert (index.samples, index.missing_samples) == (40, ())
    with caplog.at_level(logging.WARNING):
        found = {node: index.related(node) for node in index.nodes}
    assert index.samples == 30
    assert f"{tmp_path / 'broken'} has lost samples 10..19" in caplog.text
    assert {node: index.related(node) for node in found} == {
        node: expected.related(node) for node in found
    }
    fresh = cocite.open(tmp_path / "broken", verify=False)
    fresh.related_all(tmp_path / "a.csv", 5)
    assert fresh.samples == 30
    expected.related_all(tmp_path / "b.csv", 5)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_batch_goes_on(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cocite.search.batch.pieces._MOST", 8)
    broken(built("trees"), tmp_path / "broken")
    without(built("trees"), tmp_path / "left").related_all(tmp_path / "b.csv", 5)

    def stop(stage: str, done: int, total: int) -> None:
        if index.missing_samples and done >= 16:
            raise KeyboardInterrupt

    index = cocite.open(tmp_path / "broken", verify=False)
    with pytest.raises(KeyboardInterrupt):
        index.related_all(tmp_path / "a.csv", 5, progress=stop, threads=1)
    seen: list[int] = []
    again = cocite.open(tmp_path / "broken", verify=False)
    again.related_all(tmp_path / "a.csv", 5, progress=lambda stage, done, total: seen.append(done))
    assert seen[0] >= 16
    assert again.samples == 30
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def flip(path: Path) -> None:
    """Change the last bit of a file."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


# -- what is said of it ------------------------------------------------------------------


def test_shell_says(built: Built, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = built("trees")
    a, b = pairs(whole)[0]
    path = str(tmp_path / "left")
    without(whole, tmp_path / "left")
    capsys.readouterr()
    said = f"{path} has lost samples 10..19 with in.samples-000010; queries use the other 30"
    for verb in (["related", path, a], ["similarity", path, a, b], ["why", path, a, b]):
        assert main(verb) == 0
        assert said in capsys.readouterr().err
        assert main([*verb, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["samples"] == 30
    output = str(tmp_path / "all.csv")
    assert main(["related-all", path, "-o", output, "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert said in printed.err
    assert json.loads(printed.out)["samples"] == 30
    assert main(["info", path]) == 0
    printed = capsys.readouterr()
    assert "available  30 samples" in printed.out
    assert "in.samples-000010, samples 10 to 19" in printed.out
    assert main(["info", path, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["available_samples"] == 30
    assert main(["info", str(whole.stored.store.path), "--format", "json"]) == 0
    assert not {"available_samples", "missing_samples"} & json.loads(capsys.readouterr().out).keys()
    assert main(["verify", path]) == 1
    printed = capsys.readouterr()
    assert "1 of " in printed.err
    assert "has lost samples 10..19" in printed.err
    assert (
        "cocite index GRAPH -o PATCH --measure psimrank --sample-range 10..19; then" in printed.err
    )
    assert f"cocite merge {path} PATCH -o {path} --overwrite" in printed.err
    assert main(["verify", path, "--format", "json"]) == 1
    assert "queries use the other 30" in json.loads(capsys.readouterr().out)["left"]
    shutil.copytree(whole.stored.store.path, tmp_path / "bit")
    flip(tmp_path / "bit" / "in.samples-000030")
    assert main(["verify", str(tmp_path / "bit")]) == 1
    assert "has lost samples 30..39" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["0.5", "1"])
@pytest.mark.parametrize("flipped", [False, True], ids=["missing", "flipped"])
def test_the_advice_on_a_refreshed_index_is_followed_word_by_word(
    graph: Graph,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flipped: bool,
    share: str,
) -> None:
    """With half of the samples drawn anew they are of two graphs; with all of them of one."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "an index"
    cocite.build(graph, path, samples=SAMPLES, shard=SHARD, measure="simrank", length=4)
    links = [(f"n{a}", f"n{a * 7 % 60}") for a in range(60)] + [("new", "n3"), ("n4", "new")]
    now = cocite.ingest(links, tmp_path / "now")
    assert main(["refresh", str(path), str(now.path), "--fraction", share]) == 0
    name = sorted(file for file in path.glob("*samples-*"))[-1]
    if flipped:
        flip(name)
    else:
        name.unlink()
    capsys.readouterr()
    assert main(["verify", str(path)]) == 1
    said = capsys.readouterr().err
    _, advice = re.split(r"To repair it[^:]*: ", said.strip())
    for command in advice.split("; then "):
        words = [str(now.path) if w == "GRAPH" else w for w in shlex.split(command)]
        if words[1] == "index":  # "with the settings of the index"
            words += ["--length", "4"]
        assert main(words[1:]) == 0, (command, capsys.readouterr().err)
    assert main(["verify", str(path)]) == 0
    whole = cocite.open(path)
    assert (whole.samples, whole.missing_samples) == (SAMPLES, ())
    numbers = whole.stored.freshness.numbers
    options: dict[str, Any] = {"numbers": numbers, "measure": "simrank", "length": 4}
    assert whole.related("n3") == cocite.build(now, tmp_path / "b", **options).related("n3")
