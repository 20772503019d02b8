"""One index, to the byte, whatever the threads, blocks, shards and scratch files of its build.

Each kind is built in a few ways, those in ``THOROUGH`` in many, and compared with a build on one
thread. The kinds with weights combine every two of measure, direction, treatment of hubs and use of
weights.
"""

from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph, Index
from tests.index.test_external import tangled
from tests.marks import choose
from tests.measures.test_weights import tangled as by_weight
from tests.stored import store

SAMPLES = 20
"""A group of 16 that walk together in blocks, and four more."""
PLAIN: dict[str, dict[str, Any]] = {
    "simrank": {"measure": "simrank"},
    "simrank-idf": {"measure": "simrank", "hubs": "idf"},
    "psimrank": {"measure": "psimrank", "direction": "both"},
    "psimrank-idf": {"measure": "psimrank", "hubs": "idf"},
    "prank": {"measure": "prank", "in_share": 0.4},
    "blend": {"measure": "blend:psimrank+cocitation"},
    "simrank-paths": {"measure": "simrank", "layout": "paths", "direction": "both"},
    "psimrank-paths": {"measure": "psimrank", "layout": "paths", "direction": "both"},
    "compact": {"measure": "compact-simrank", "layout": "compact", "direction": "both"},
    "compact-paths": {"measure": "compact-simrank", "layout": "paths", "direction": "both"},
    "minhash": {"measure": "xjaccard", "direction": "both"},
    "sketch": {"measure": "xjaccard", "layout": "sketch", "direction": "both"},
}
BY_WEIGHT: dict[str, dict[str, Any]] = {
    "weighted-1": {"measure": "simrank", "direction": "in", "hubs": "plain"},
    "weighted-2": {"measure": "simrank", "direction": "out", "hubs": "idf", "unweighted": True},
    "weighted-3": {"measure": "simrank", "direction": "in", "hubs": "rare", "unweighted": True},
    "weighted-4": {"measure": "psimrank", "direction": "out", "hubs": "plain", "unweighted": True},
    "weighted-5": {"measure": "psimrank", "direction": "in", "hubs": "idf"},
    "weighted-6": {"measure": "psimrank", "direction": "out", "hubs": "rare"},
    "weighted-paths-1": {"measure": "simrank", "layout": "paths", "hubs": "rare"},
    "weighted-paths-2": {"measure": "psimrank", "layout": "paths", "direction": "out"},
}
KINDS = PLAIN | BY_WEIGHT
THOROUGH = ("psimrank", "compact", "minhash")
WAYS: list[dict[str, Any]] = [
    {"threads": 5},
    {"blocks": 1},
    {"blocks": 64},
    *({"shard": shard, "threads": 2} for shard in (1, 19, 1000)),
    {"external": True, "blocks": 64},
]
FEW: list[dict[str, Any]] = [
    {"blocks": 7},
    {"blocks": 2, "threads": 2, "shard": 3},
    {"external": True, "blocks": 7, "threads": 1},
]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Graph]:
    """Graphs with weights over several orders of magnitude, and without; both have hubs."""
    folder = tmp_path_factory.mktemp("same")

    def make(edges: Any, nodes: Any, **options: Any) -> Graph:
        rows = [list(map(str, edge)) for edge in edges]
        return store(folder / f"{len(rows[0])}", rows, list(map(str, nodes)), **options)

    return {True: by_weight(make), False: tangled(make)}


def build(graphs: dict[bool, Graph], kind: str, output: Path, **way: Any) -> Index:
    return cocite.build(
        graphs[kind in BY_WEIGHT], output, samples=SAMPLES, length=6, seed=5, **KINDS[kind], **way
    )


def content(index: Index) -> dict[str, bytes]:
    """Return all files, with samples joined, regardless of shard boundaries."""
    joined: dict[str, bytes] = {}
    for name in sorted(index.stored.store.manifest.files):
        stem = name.partition("samples-")[0]
        joined[stem] = joined.get(stem, b"") + (index.stored.store.path / name).read_bytes()
    return joined


@pytest.mark.long
@pytest.mark.parametrize("kind", choose(KINDS, "prank", "sketch", "weighted-2", "weighted-paths-1"))
def test_build_threads_blocks_and_shards_keep_bytes(
    graphs: dict[bool, Graph], tmp_path: Path, kind: str
) -> None:
    whole = build(graphs, kind, tmp_path / "whole", threads=1)
    expected, manifest = content(whole), (tmp_path / "whole" / "manifest.json").read_bytes()
    external = whole.stored.parts[0].layout in ("trees", "paths", "compact")
    ways = FEW + WAYS if kind in THOROUGH else FEW
    for number, way in enumerate(way for way in ways if external or "external" not in way):
        index = build(graphs, kind, tmp_path / f"{number}", **way)
        assert content(index) == expected, way
        assert index.stored.digest == whole.stored.digest, way
        if "shard" in way:
            shards = {name[-6:] for name in index.stored.store.manifest.files if "samples-" in name}
            assert len(shards) == -(-SAMPLES // way["shard"])
        else:
            assert (tmp_path / f"{number}" / "manifest.json").read_bytes() == manifest, way
