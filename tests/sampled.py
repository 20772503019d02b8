"""Indexes of one small graph in every layout of samples, built once per module."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from cocite import Graph, Index
from tests.conftest import with_psimrank

KINDS: dict[str, dict[str, Any]] = {
    "trees": {},
    "both": {"measure": "simrank", "direction": "both"},
    "paths": {"layout": "paths"},
    "packed": {"layout": "packed"},
    "compact": {"measure": "compact-simrank"},
    "minhash": {"measure": "xjaccard", "length": 3},
    "sketch": {"measure": "xjaccard", "bits": 3},
    "blend": {"measure": "blend:0.5*psimrank(direction=both)+0.3*simrank(length=4)+0.2*cocitation"},
}
Built = Callable[[str], Index]


def near_graph(folder: Path) -> Graph:
    """60 nodes that link to nodes with nearby ids."""
    rng = np.random.default_rng(4)
    near = rng.integers(0, 60, (400, 1)) // 10 * 10 + rng.integers(0, 14, (400, 2))
    (folder / "links.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in near.tolist()))
    return cocite.ingest(folder / "links.tsv", folder / "g", delimiter="tab", header="no")


def built_once(
    graph: Graph, folder: Path, kinds: Mapping[str, Mapping[str, Any]], **options: Any
) -> Built:
    """A function that returns the index of a kind, built at the first call."""
    found: dict[str, Index] = {}

    def get(kind: str) -> Index:
        if kind not in found:
            chosen = with_psimrank({**options, **kinds[kind]})
            found[kind] = cocite.build(graph, folder / kind, **chosen)
        return found[kind]

    return get
