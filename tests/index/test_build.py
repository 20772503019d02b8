"""Builds: the same bytes after any interruption, and refusals."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Busy, NotAStore, OutputExists, ResourceError, UsageError
from cocite.index import StoredIndex
from cocite.index.build import IndexBuild
from cocite.index.layouts.trees.format import tree_words as blob_words
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from cocite.storage import disk
from tests.builds import stop_at
from tests.conftest import MakeGraph, with_psimrank
from tests.storage.enemy import Killed, KilledAt

OPTIONS = BuildOptions.checked("psimrank", settings={"samples": 20, "length": 6, "seed": 5})


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(3)
    return module_graph([(f"p{a}", f"p{b}") for a, b in rng.integers(0, 300, (1500, 2)).tolist()])


def build(graph: Graph, output: Path, measure: str = "psimrank", **options: Any) -> cocite.Index:
    return cocite.build(graph, output, measure=measure, samples=20, length=6, seed=5, **options)


def stream(path: Path) -> bytes:
    """Return the samples' bytes in order, regardless of shard boundaries."""
    names = sorted(n for n in StoredIndex.open(path).store.manifest.files if "samples-" in n)
    return b"".join((path / name).read_bytes() for name in names)


def other_files(path: Path) -> dict[str, bytes]:
    """Return the manifest's files without samples."""
    return {
        name: (path / name).read_bytes()
        for name in StoredIndex.open(path).store.manifest.files
        if "samples-" not in name
    }


def test_build_seed_and_measure_change_samples(graph: Graph, tmp_path: Path) -> None:
    build(graph, tmp_path / "a")
    build(graph, tmp_path / "b", "simrank")
    cocite.build(graph, tmp_path / "c", samples=20, length=6, seed=6, measure="psimrank")
    assert len({stream(tmp_path / name) for name in "abc"}) == 3


@pytest.mark.parametrize("call", ["write", "sync_file", "sync_directory", "rename", "rename_new"])
def test_build_killed_at_any_call_resumes_to_same_bytes(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    build(graph, tmp_path / "whole", shard=6)
    real = getattr(disk, call)
    kills = least = 0
    for nth in range(1, 200, 2):
        killed_call = KilledAt(real, nth)
        output = tmp_path / f"{call}{nth}"
        monkeypatch.setattr(disk, call, killed_call)
        try:
            build(graph, output, shard=6)
        except Killed:
            kills += 1
            monkeypatch.setattr(disk, call, real)
            if output.exists():  # killed after the rename that published it
                assert StoredIndex.open(output).parts[0].samples == 20
            else:
                with pytest.raises(NotAStore):
                    StoredIndex.open(output)
                done: list[int] = []
                build(graph, output, shard=6, progress=lambda d, _, done=done: done.append(d))
                least = max(least, done[0])  # an interruption this late must keep as much
                assert done[0] >= least
        assert stream(output) == stream(tmp_path / "whole")
        assert other_files(output) == other_files(tmp_path / "whole")
        if killed_call.calls < nth:
            break
    assert kills >= 1
    assert least >= 18 or call == "rename_new"


def test_index_build_resumes_missing_samples_only(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(graph, tmp_path / "x", shard=4, progress=stop_at(13))
    with IndexBuild(graph, tmp_path / "x", OPTIONS, Resources.checked(shard=4)) as work:
        assert work.estimate().done == 12
        assert "continues after 12 samples" in str(work.estimate())
        assert work.run().units == 8


def test_build_refuses_resume_with_other_settings(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(graph, tmp_path / "x", shard=4, progress=stop_at(9))
    before = sorted(f.name for f in (tmp_path / "x.building").iterdir())
    other = cocite.generate_web(tmp_path / "other", nodes=60, links=200)
    settings = {"length": 6, "seed": 5, "samples": 20, "measure": "psimrank", "shard": 4}
    changed = settings | {"samples": 30, "direction": "out", "shard": 7}
    cases: list[tuple[Graph, dict[str, Any], str]] = [
        (
            graph,
            settings | {"measure": "simrank"},
            r"measure: psimrank, here simrank\. .*--no-resume",
        ),
        (graph, settings | {"shard": 5}, r"settings: shard: 4, here 5\. Repeat those settings"),
        (graph, changed, "direction: in, here out; samples: 20, here 30; shard: 4, here"),
        (graph, {}, "measure: psimrank, here fusion; direction: in, "),
        (other, settings, r"other settings: graph: different\. Repeat"),
    ]
    for source, options, message in cases:
        with pytest.raises(UsageError, match=message):
            cocite.build(source, tmp_path / "x", **options)
    assert sorted(f.name for f in (tmp_path / "x.building").iterdir()) == before
    build(graph, tmp_path / "x", "simrank", shard=4, restart=True)
    build(graph, tmp_path / "y", "simrank", shard=4)
    assert stream(tmp_path / "x") == stream(tmp_path / "y")


def test_build_remakes_truncated_shard(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(graph, tmp_path / "x", shard=4, progress=stop_at(9))
    shard = tmp_path / "x.building" / "in.samples-000004"
    os.truncate(shard, shard.stat().st_size - 64)
    build(graph, tmp_path / "x", shard=4)
    build(graph, tmp_path / "y", shard=4)
    assert stream(tmp_path / "x") == stream(tmp_path / "y")


def test_build_refuses_second_builder(graph: Graph, tmp_path: Path) -> None:
    with (
        IndexBuild(graph, tmp_path / "x", OPTIONS, Resources.checked()),
        pytest.raises(Busy, match="another process"),
    ):
        build(graph, tmp_path / "x")


def test_build_keeps_existing_output_without_overwrite(graph: Graph, tmp_path: Path) -> None:
    build(graph, tmp_path / "x")
    with pytest.raises(OutputExists, match="--overwrite"):
        build(graph, tmp_path / "x", "simrank")
    opened = cocite.open(tmp_path / "x")
    before = opened.related("p1")
    build(graph, tmp_path / "x", "simrank", overwrite=True)
    assert opened.related("p1") == before  # an open index stays readable
    assert cocite.open(tmp_path / "x").measure == "simrank"
    assert not (tmp_path / "x.building").exists()


@pytest.mark.parametrize(
    "kind",
    [
        ("psimrank", "trees"),
        ("simrank", "paths"),
        ("compact-simrank", "compact"),
        ("xjaccard", "minhash"),
        ("xjaccard", "sketch"),
        ("fusion", "rows"),
        ("ppr-pmi", "rows"),
    ],
    ids="-".join,
)
def test_index_build_estimate_predicts_size(
    graph: Graph, tmp_path: Path, kind: tuple[str, str]
) -> None:
    """The estimate extrapolates from one sample per thread, or from the rows of some nodes, which
    can be seven times as long as others.
    """
    settings = {} if kind[1] == "rows" else {"samples": 20, "length": 6, "seed": 5}
    direction = "any" if kind[0] == "ppr-pmi" else "in"
    options = BuildOptions.checked(kind[0], direction, kind[1], settings)
    with IndexBuild(graph, tmp_path / "x", options, Resources.checked(threads=2)) as work:
        estimate = work.estimate()
        report = work.run()
    assert abs(estimate.bytes / report.bytes - 1) < 0.05
    sizes = {file.name: file.stat().st_size for file in (tmp_path / "x").iterdir()}
    assert report.bytes == sum(sizes.values()) - sizes["manifest.json"]


def test_tree_words_bound_sample_size() -> None:
    assert 4 * (10**6 + blob_words(10**6)) < 8.51 * 10**6


def test_build_memory_error_names_required_size(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(
        ResourceError,
        match=r"needs 4\.2 MB of memory, even in blocks and with .* on disk; the limit is 5 kB",
    ):
        build(graph, tmp_path / "x", memory="5kB")
    assert not list(tmp_path.glob("x*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples is 0; it must be a whole number from 1 to 65535"),
        ({"length": 16}, "length is 16; it must be a whole number from 1 to 15"),
        ({"seed": -1}, "seed is -1"),
        ({"measure": "simrnk"}, "no measure is called 'simrnk'. Did you mean simrank"),
        ({"shard": 0}, "shard is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"memory": "much"}, "'much' is not a size"),
        ({"numbers": range(0)}, "it must be a range of sample numbers"),
        ({"numbers": range(0, 10, 2)}, "it must be a range of sample numbers"),
        ({"numbers": [1, 2]}, "it must be a range of sample numbers"),
        ({"numbers": range(5, 9), "samples": 5}, "samples is 5: omit samples"),
        ({"numbers": range(4), "measure": "cocitation"}, "cocitation has no samples"),
        (
            {"numbers": range(4), "measure": "blend:psimrank(samples=7)+simrank"},
            "all must have the same number",
        ),
        ({"numbers": range(2**32 - 9, 2**32 - 1)}, "it must be a range of sample numbers"),
        ({"numbers": range(70_000)}, "samples is 70000"),
        ({"only_nodes": ["nobody"]}, "no page of .* is selected"),
        ({"only_nodes": "page two"}, "only_nodes is a single string"),
        ({"only_prefix": ""}, "it must be a non-empty prefix"),
        ({"only_prefix": ["x"], "layout": "paths"}, "choose --layout trees"),
        ({"only_prefix": ["x"], "measure": "compact-simrank"}, "choose --layout trees"),
        ({"only_prefix": "x", "measure": "cocitation"}, "an index of cocitation needs links"),
        ({"only_prefix": "x", "measure": "blend:psimrank+ppr"}, "an index of ppr needs links"),
        ({"only_prefix": "x", "measure": "simrank", "refine": True}, "Omit --refine"),
        ({"only_range": "0/3"}, "only_range is '0/3'; it must be I/COUNT, such as 2/8"),
        ({"only_range": "4/3"}, "only_range is '4/3'"),
        ({"only_range": "2"}, "only_range is '2'"),
        ({"only_range": "1/2", "only_prefix": "http"}, "omit --only-nodes .* and --only-prefix"),
        ({"only_range": "1/9999", "measure": "fusion"}, "too few for 9,999 ranges"),
        ({"only_range": "1/2", "measure": "pagesim"}, "an index of pagesim needs links"),
    ],
)
def test_build_refuses_invalid_options_before_writing(
    graph: Graph, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cocite.build(graph, tmp_path / "x", **with_psimrank(options))
    assert not list(tmp_path.glob("x*"))


def test_build_refuses_empty_graph(empty_graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no nodes"):
        cocite.build(empty_graph, tmp_path / "x", measure="psimrank")


def test_index_manifest_omits_absolute_paths(graph: Graph, tmp_path: Path) -> None:
    build(graph, tmp_path / "x")
    text = (tmp_path / "x" / "manifest.json").read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)["facts"]["graph"]["digest"] == graph.digest
