"""Merging indexes of different samples: the bytes of one build, or an error."""

import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.errors import Damaged, OutputExists, UsageError
from cocite.index.layouts.reader import LAYOUTS, is_sampled
from cocite.index.merge import Merge
from tests.builds import files, flip, stop_at
from tests.conftest import MakeGraph, Shell, with_psimrank
from tests.sampled import KINDS as SAMPLED
from tests.sampled import near_graph

KINDS = SAMPLED | {"refined": {"measure": "simrank", "refine": True}}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return near_graph(tmp_path_factory.mktemp("graph"))


def test_merge_kinds_cover_sampled_layouts(graph: Graph, tmp_path: Path) -> None:
    indexes = [
        cocite.build(graph, tmp_path / kind, samples=1, **with_psimrank(KINDS[kind]))
        for kind in KINDS
    ]
    layouts = {part.layout for index in indexes for part in index.stored.parts}
    assert layouts >= {layout for layout in LAYOUTS if is_sampled(layout)}


@pytest.mark.parametrize("kind", KINDS)
def test_merge_equals_single_build(graph: Graph, tmp_path: Path, kind: str) -> None:
    """The pieces come in any order, from any folder, with any shards."""
    cocite.build(graph, tmp_path / "whole", samples=37, **with_psimrank(KINDS[kind]))
    (tmp_path / "elsewhere").mkdir()
    pieces = []
    for numbers, shard in ((range(20, 37), 5), (range(3), None), (range(3, 20), 8)):
        pieces.append(tmp_path / "elsewhere" / f"{numbers.start}")
        cocite.build(graph, pieces[-1], numbers=numbers, shard=shard, **with_psimrank(KINDS[kind]))
    joined = cocite.merge(pieces, tmp_path / "joined")
    assert files(tmp_path / "joined") == files(tmp_path / "whole")
    assert joined.samples == 37


@pytest.mark.long
@settings(max_examples=10)
@given(
    cuts=st.sets(st.integers(1, 29), min_size=1, max_size=5),
    first=st.integers(0, 40),
    shard=st.one_of(st.none(), st.integers(1, 9)),
    order=st.randoms(use_true_random=False),
)
def test_merge_of_any_cuts_equals_single_build(
    graph: Graph,
    tmp_path_factory: pytest.TempPathFactory,
    cuts: set[int],
    first: int,
    shard: int | None,
    order: Any,
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    bounds = [0, *sorted(cuts), 30]
    pieces = []
    for low, high in pairwise(bounds):
        pieces.append(folder / f"{low}")
        numbers = range(first + low, first + high)
        cocite.build(graph, pieces[-1], numbers=numbers, measure="simrank", length=3)
    order.shuffle(pieces)
    options: dict[str, Any] = {"measure": "simrank", "length": 3, "shard": shard}
    cocite.build(
        graph, folder / "whole", numbers=range(first, first + 30), **with_psimrank(options)
    )
    cocite.merge(pieces, folder / "joined", shard=shard)
    assert files(folder / "joined") == files(folder / "whole")


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_option_piece_answers_alone(graph: Graph, tmp_path: Path, kind: str) -> None:
    """The samples equal the last samples of a larger index."""
    late = cocite.build(
        graph, tmp_path / "late", numbers=range(18, 30), **with_psimrank(KINDS[kind])
    )
    assert late.samples == 12
    whole = cocite.build(graph, tmp_path / "whole", samples=30, **with_psimrank(KINDS[kind]))
    for part, whole_part in zip(late.stored.parts, whole.stored.parts, strict=True):
        if is_sampled(part.layout):
            assert part.array("digests").tolist() == whole_part.array("digests").tolist()[18:]
    node = late.nodes.name(7)
    hits = late.related(node, 60)
    assert hits
    for hit in hits[:3]:
        assert late.similarity(node, hit.node) == hit[1:]
        if kind != "sketch":
            why = late.why(node, hit.node)
            assert sum(r.contribution for r in why.reasons) + why.remaining == pytest.approx(
                why.score
            )
    assert cocite.build(
        graph, tmp_path / "w", numbers=range(12), **with_psimrank(KINDS[kind])
    ).related(node, 60) == whole.with_samples(12).related(node, 60)


def test_numbers_option_resumes_only_with_same_numbers(graph: Graph, tmp_path: Path) -> None:
    def build(name: str, first: int = 5, **extra: Any) -> None:
        options: dict[str, Any] = {"measure": "psimrank", "shard": 4, **extra}
        cocite.build(graph, tmp_path / name, numbers=range(first, first + 20), **options)

    with pytest.raises(KeyboardInterrupt):
        build("x", progress=stop_at(8))
    with pytest.raises(UsageError, match="first: 5, here 6"):
        build("x", 6)
    steps: list[int] = []
    build("x", progress=lambda done, total: steps.append(done))
    assert steps[0] >= 4
    build("y")
    assert files(tmp_path / "x") == files(tmp_path / "y")


# -- refusals ----------------------------------------------------------------------------


def check_refused(tmp_path: Path, match: str, *names: str) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match=match):
        cocite.merge([tmp_path / name for name in names], tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_merge_refuses_mismatched_pieces(
    graph: Graph, make_graph: MakeGraph, tmp_path: Path
) -> None:
    def build(name: str, numbers: range, source: Graph = graph, **options: Any) -> None:
        cocite.build(source, tmp_path / name, numbers=numbers, **with_psimrank(options))

    build("a", range(10))
    build("b", range(10, 20))
    build("over", range(8, 12))
    build("far", range(25, 30))
    build("other", range(10, 20), source=make_graph([(0, 1), (0, 2)]))
    cocite.build(graph, tmp_path / "exact", measure="cocitation")
    check_refused(tmp_path, "at least two indexes", "a")
    check_refused(tmp_path, r"samples 8\.\.9 are in more than one of", "a", "over")
    check_refused(tmp_path, r"samples 0\.\.9 are in more than one of", "a", "b", "a")
    check_refused(
        tmp_path, r"samples 10\.\.24 are missing from .*cocite index --sample-range", "a", "far"
    )
    check_refused(tmp_path, r"samples 20\.\.24 are missing from", "far", "b", "a")
    different: list[tuple[str, Any, Any]] = [
        ("seed", 0, 7),
        ("length", 10, 4),
        ("measure", "psimrank", "simrank"),
        ("layout", "trees", "paths"),
        ("direction", "in", "out"),
    ]
    for name, default, value in different:
        build(name, range(10, 20), **{name: value})
        check_refused(tmp_path, f"has {name} {default!r}, .* has {value!r}: only", "a", name)
    check_refused(tmp_path, "were built from different graphs", "a", "other")
    check_refused(tmp_path, "has no samples", "a", "exact")
    blend = "blend:psimrank(samples=4)+simrank(samples=4)"
    cocite.build(graph, tmp_path / "four", measure=blend)
    check_refused(
        tmp_path, "cannot be merged: its measure, .* sets the number of samples", "four", "four"
    )


def test_merge_accepts_refreshed_index_of_one_graph_only(graph: Graph, tmp_path: Path) -> None:
    cocite.build(graph, tmp_path / "a", samples=10, measure="psimrank")
    cocite.build(graph, tmp_path / "b", numbers=range(12, 15), measure="psimrank")
    cocite.build(graph, tmp_path / "c", numbers=range(10, 12), measure="psimrank")
    cocite.refresh(tmp_path / "a", graph, fraction=0.2, force=True)
    check_refused(tmp_path, "was refreshed, so its samples come from several graphs", "a", "b")
    cocite.refresh(tmp_path / "c", graph, fraction=1, force=True)  # draws 12 and 13
    cocite.build(graph, tmp_path / "d", numbers=range(14, 15), measure="psimrank")
    cocite.merge([tmp_path / "c", tmp_path / "d"], tmp_path / "out")
    cocite.build(graph, tmp_path / "e", numbers=range(12, 15), measure="psimrank")
    assert files(tmp_path / "out") == files(tmp_path / "e")


def test_merge_interrupted_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    cocite.build(graph, tmp_path / "a", samples=10, measure="psimrank")
    cocite.build(graph, tmp_path / "b", numbers=range(10, 20), measure="psimrank")
    before = sorted(tmp_path.iterdir())

    def stop(done: int, total: int) -> None:
        reports.append(done)
        if done == 15:
            raise KeyboardInterrupt

    reports: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        cocite.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c", progress=stop)
    assert reports == list(range(16))
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(OutputExists):
        cocite.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "a")


def test_merge_refuses_damaged_sample(graph: Graph, tmp_path: Path) -> None:
    cocite.build(graph, tmp_path / "a", samples=20, measure="psimrank")
    cocite.build(graph, tmp_path / "b", numbers=range(20, 30), measure="psimrank")
    shard = tmp_path / "a" / "in.samples-000016"
    flip(shard, -5)  # padding, which no query reads
    with pytest.raises(Damaged, match=r"in\.samples-000016 is damaged"):
        cocite.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c").exists()
    assert not (tmp_path / "c.building").exists()


# -- lost shards -------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["removed", "cut", "changed"])
@pytest.mark.parametrize("kind", ["trees", "blend"])
def test_merge_restores_lost_shard(graph: Graph, tmp_path: Path, damage: str, kind: str) -> None:
    cocite.build(graph, tmp_path / "whole", samples=40, shard=16, **with_psimrank(KINDS[kind]))
    shutil.copytree(tmp_path / "whole", tmp_path / "x")
    (first, *_) = sorted((tmp_path / "x").glob("*samples-000016"))
    if damage == "removed":
        first.unlink()
    else:
        content = bytearray(first.read_bytes())
        content[17] ^= 4
        first.write_bytes(content[: None if damage == "changed" else -64])
    cocite.build(graph, tmp_path / "patch", numbers=range(16, 32), **with_psimrank(KINDS[kind]))
    with Merge([tmp_path / "x", tmp_path / "patch"], tmp_path / "x", overwrite=True) as work:
        work.run()
    cocite.build(graph, tmp_path / "again", samples=40, **with_psimrank(KINDS[kind]))
    assert files(tmp_path / "x") == files(tmp_path / "again")
    assert cocite.open(tmp_path / "x").missing_samples == ()


def test_merge_command_joins_sample_ranges(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    paths = [str(tmp_path / name) for name in "abc"]
    index_command = ["index", str(graph.path), "--measure", "psimrank", "-o"]
    shell([*index_command, paths[0], "--sample-range", "0..9"])
    for command in ([*index_command, paths[1], "--sample-range", "10..14"], ["info", paths[1]]):
        assert re.search(r"^numbers +10 to 14$", shell(command).out, re.M)
    result = shell(["merge", *paths[:2], "-o", paths[2]])
    assert "samples 0 to 14, from 2 indexes" in result.err
    assert "15, numbers 0 to 14" in result.out
    for wrong in ("9..3", "a", "-3", "1..2..3", "1.5"):
        shell([*index_command, paths[2] + "x", f"--sample-range={wrong}"], 2)
    assert "at least two indexes" in shell(["merge", paths[0], "-o", paths[2] + "x"], 2).err
