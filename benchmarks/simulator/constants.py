"""What things cost, measured: by whom and how is beside each figure.

``benchmarks/results/cluster.json`` holds them, and the runs that the simulator has to reproduce:
``python -m benchmarks.simulator measure`` writes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FILE", "Constants", "read"]

FILE = Path(__file__).parents[1] / "results" / "cluster.json"


@dataclass(frozen=True)
class Constants:
    """Bytes and processor seconds.

    ``link_bytes``, ``node_bytes``, ``name_bytes``: a stored graph, a link and a node and its name.
    ``walk_bytes`` a node that a walk has in memory, ``block_bytes`` a node of a block;
    ``sample_bytes`` a node and sample of an index. ``sample_node``: a sample, a node, in memory;
    ``coarse_share``: processor time of a build by shards over that of one machine. ``live``: tokens
    at each step, as a share of nodes; ``fine_token`` a live token of a build by blocks and
    ``fine_layout`` a node and sample; ``sent_bytes`` a token that goes to another machine.
    ``sweeps`` of PageRank, ``sweep_link`` a link; ``border`` values that leave a machine, a node.
    ``begin`` of a worker, ``beside`` of a driver, ``step`` of a block at a step. A question to all
    samples: ``ask_median`` and ``ask_tail`` (99th percentile), ``front`` and ``merge`` (a shard) of
    who asks, ``trip`` there and back.
    """

    link_bytes: float
    node_bytes: float
    name_bytes: float
    walk_bytes: float
    block_bytes: float
    sample_bytes: float
    sample_node: float
    coarse_share: float
    live: tuple[float, ...]
    fine_token: float
    fine_layout: float
    sent_bytes: float
    sweeps: int
    sweep_link: float
    border: float
    begin: float
    beside: float
    step: float
    ask_median: float
    ask_tail: float
    front: float
    merge: float
    trip: float


def read() -> tuple[Constants, dict[str, Any]]:
    """The constants, and the runs that were measured."""
    found = json.loads(FILE.read_text())
    constants = found["constants"]
    return Constants(**constants | {"live": tuple(constants["live"])}), found["runs"]
