"""Building the min-hash layouts: memory, scratch files and compatible options."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.engine.plan import Way
from cocite.errors import UsageError
from cocite.graph.links import in_links
from cocite.index import StoredIndex
from cocite.index.build import IndexBuild
from cocite.index.layouts.batch_maker import SampleJob
from cocite.index.layouts.contract import PartRequest
from cocite.index.layouts.minhash.build import ExternalLayer, Layer, RingPlan
from cocite.index.layouts.reader import sampled_builder, sampled_format
from cocite.index.plan import BuildOptions
from cocite.measures.xjaccard import BITS
from cocite.resources import Resources
from tests.conftest import MakeGraph

LAYOUTS = ("minhash", "sketch")
layouts = pytest.mark.parametrize("layout", LAYOUTS)
NODES = 40_000


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(3)
    near = rng.integers(0, NODES, (80_000, 1)) + rng.integers(0, 30, (80_000, 2))
    return module_graph((near % NODES).tolist())


def stream(path: Path) -> bytes:
    names = sorted(n for n in StoredIndex.open(path).store.manifest.files if "samples-" in n)
    return b"".join((path / name).read_bytes() for name in names)


def build(graph: Graph, output: Path, layout: str, **options: Any) -> bytes:
    cocite.build(graph, output, measure="xjaccard", layout=layout, samples=18, **options)
    return stream(output)


def fitted_plan(
    graph: Graph, layout: str, memory: int, blocks: int | None = None, threads: int = 2
) -> RingPlan:
    part = BuildOptions.checked("xjaccard", "in", layout).parts[0]
    plan = sampled_builder(layout).fitted(
        in_links(graph), part, Resources(threads, memory, blocks=blocks)
    )
    assert isinstance(plan, RingPlan)
    return plan


@pytest.mark.parametrize("layout", [pytest.param("minhash", marks=pytest.mark.long), "sketch"])
def test_ring_plan_memory_keeps_bytes(
    graph: Graph, tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put on disk nothing, the winners, the scan too, and the blobs too."""
    part = BuildOptions.checked("xjaccard", "in", layout).parts[0]
    words = sampled_format(layout).most_words(graph.nodes, part.settings)
    blobs = 2 * 4 * (words + graph.nodes) + (8 << 20)  # and the written winners
    links = in_links(graph).nbytes + 2 * 64 * graph.nodes
    streams = []
    for memory, way, on_disk in (
        (1 << 30, Way.MEMORY, False),
        (blobs + links, Way.MEMORY, True),
        (blobs + (4 << 20), Way.BLOCKS, True),
    ):
        plan = fitted_plan(graph, layout, memory)
        assert plan.plan is not None
        assert (plan.plan.way, plan.on_disk) == (way, on_disk)
        assert plan.memory <= memory
        streams.append(build(graph, tmp_path / str(memory), layout, memory=memory, threads=2))
    monkeypatch.setattr("cocite.index.layouts.minhash.build._LEAST_LAYER", 1)
    least = 2 * graph.nodes + (12 << 20)
    plan = fitted_plan(graph, layout, least)
    assert plan.external
    assert plan.memory <= least
    resources = Resources(2, least)
    options = BuildOptions.checked("xjaccard", "in", layout, {"samples": 18})
    with IndexBuild(graph, tmp_path / "least", options, resources) as work:
        work.run()
    streams.append(stream(tmp_path / "least"))
    assert all(each == streams[0] for each in streams)


@layouts
def test_ring_plan_needs_less_scratch_for_few_samples(
    graph: Graph, tmp_path: Path, layout: str
) -> None:
    plans, streams = [], []
    small_part = BuildOptions.checked(
        "xjaccard", "in", layout, {"samples": 12, "length": 10}
    ).parts[0]
    words = sampled_format(layout).most_words(graph.nodes, small_part.settings)
    memory = 2 * 4 * (words + graph.nodes) + (12 << 20)
    for samples in (12, 48):
        part = BuildOptions.checked(
            "xjaccard", "in", layout, {"samples": samples, "length": 10}
        ).parts[0]
        plan = sampled_builder(layout).fitted(in_links(graph), part, Resources(2, memory))
        assert isinstance(plan, RingPlan)
        assert plan.on_disk
        plans.append(plan)
    assert 16 * plans[0].winners == 12 * plans[1].winners
    assert [plan.together for plan in plans] == [12, 16]
    for number, limit in enumerate((memory, 1 << 30)):
        output = tmp_path / str(number)
        options: dict[str, Any] = {
            "layout": layout,
            "samples": 12,
            "length": 10,
            "memory": limit,
            "threads": 2,
        }
        cocite.build(graph, output, measure="xjaccard", **options)
        streams.append(stream(output))
    assert streams[0] == streams[1]


@pytest.mark.parametrize("rows", [8, 100, 5000])
@pytest.mark.parametrize("bits", [0, 3])
@pytest.mark.parametrize("selected", [False, True])
def test_external_layer_matches_layer(tmp_path: Path, rows: int, bits: int, selected: bool) -> None:
    """The winners are many nodes, few, or mostly one; of all nodes or a selection."""
    rng, nodes = np.random.default_rng(7), 1500
    (part,) = BuildOptions.checked("xjaccard", "in", None, {"bits": bits, "length": 4}).parts
    if selected:
        ids = np.sort(rng.choice(nodes, 700, replace=False)).astype(np.uint32)
        request = PartRequest.of(tmp_path, ids)
        request.write(ids)
        part = replace(part, wanted=request)
    rings = [rng.integers(0, limit, nodes).astype(np.uint32) for limit in (nodes, 60, 3)]
    rings.append(np.where(rng.random(nodes) < 0.9, 17, np.arange(nodes)).astype(np.uint32))
    layer, external = Layer(part, nodes), ExternalLayer(part, nodes, rows, tmp_path)
    for order in (rings, rings[::-1]):
        expected, actual = layer(2, order), external(2, order)
        assert (actual.digest, actual.members) == (expected.digest, expected.members)


def test_minhash_maker_ignores_sample_order(graph: Graph) -> None:
    part = BuildOptions.checked("xjaccard", "in", None, {"samples": 40}).parts[0]
    layout, links = sampled_builder("minhash"), in_links(graph)
    plan = fitted_plan(graph, "minhash", 1 << 30)
    (maker,) = layout.makers(links, SampleJob(part, range(40), graph.path), plan)
    digests = [maker(sample).digest for sample in range(34)]
    for sample in (33, 5, 6, 3, 31, 16, 17, 0):
        assert maker(sample).digest == digests[sample]


@pytest.mark.parametrize(
    ("layout", "given", "expected"),
    [
        (None, {}, ("minhash", 0)),
        ("minhash", {"bits": 0}, ("minhash", 0)),
        (None, {"bits": 3}, ("sketch", 3)),
        ("sketch", {}, ("sketch", 8)),
        ("sketch", {"bits": 16}, ("sketch", 16)),
    ],
)
def test_xjaccard_bits_select_layout(
    layout: str | None, given: dict[str, object], expected: tuple[str, int]
) -> None:
    (part,) = BuildOptions.checked("xjaccard", "in", layout, given).parts
    assert (part.layout, part.settings[BITS]) == expected


@pytest.mark.parametrize(
    ("layout", "given", "message"),
    [
        ("minhash", {"bits": 4}, "bits is 4, but layout minhash stores whole min-hashes; omit one"),
        (
            "sketch",
            {"bits": 0},
            "bits is 0, but layout sketch stores 1 to 16 bits of each min-hash",
        ),
        (None, {"bits": 17}, "bits is 17; it must be a whole number from 0 to 16"),
        ("trees", {}, "layout is 'trees'; for xjaccard it must be minhash or sketch"),
    ],
)
def test_xjaccard_refuses_contradictory_bits_and_layout(
    layout: str | None, given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        BuildOptions.checked("xjaccard", "in", layout, given)


def test_sketch_size_follows_bits(graph: Graph, tmp_path: Path) -> None:
    """A sketch takes bits / 8 bytes per node, ring and sample, in whole blocks of 512 nodes."""
    for bits in (1, 3):
        index = cocite.build(graph, tmp_path / f"{bits}", measure="xjaccard", samples=2, bits=bits)
        blocks = -(-graph.nodes // 512)
        assert len(stream(tmp_path / f"{bits}")) == 2 * blocks * 512 * 4 * bits // 8
        assert index.settings["bits"] == bits
