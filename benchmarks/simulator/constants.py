"""Measured costs, and the runs that the simulator must reproduce.

``benchmarks/results/cluster.json`` has both, with the date and machine of each:

    constants    here      by ``python -m benchmarks.simulator measure GRAPH`` (``measure.py``)
                 large     by hand, on a generated web of 20 million pages and 254 million links
    runs         by ``benchmarks.cluster_build``, ``cluster_blocks`` and ``cluster_serving``

Results are stored only if other programs took less than ``QUIET`` of the processors, unless
``--keep`` is given.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.block import add_write, edit

QUIET = 0.1
FILE = Path(__file__).parents[1] / "results" / "cluster.json"


@dataclass(frozen=True)
class Constants:
    """Bytes, and seconds: of a processor, unless told.

    Large: ``link_bytes``, ``node_bytes``, ``name_bytes`` of a stored graph, a link and a node and
    its name; ``sample_bytes`` a node and sample of an index; ``large_node`` a node and sample;
    ``sweeps`` of PageRank, ``sweep_link`` a link and sweep.

    Here, of a machine with so many ``processors``, a share of which ``others`` took meanwhile:
    ``sample_node`` a node and sample, in memory on
    all of them, and ``shard_node`` where a worker of Ray does it; ``begin`` of a worker, ``beside``
    of the driver, ``ray`` of Ray itself, a node of the cluster and second.

    Blocks: ``live`` tokens at each step, a share of nodes; ``fine_token`` a live token,
    ``fine_layout`` a node and sample; ``gather`` of the driver, a node and sample; ``crossing``,
    the share of tokens that go to another block, ``record_bytes`` and ``tree_bytes`` sent a node
    and sample; ``block_link`` a link and sweep of PageRank, ``border`` values sent a node and
    sweep. Of Ray: a ``call`` and a ``parcel`` of the driver, ``call_block`` and ``parcel_block`` of
    a block;
    ``block_begin`` of a block, ``block_start`` with what its process takes to be there; the same of
    PageRank, ``rank_begin`` and ``rank_start``; ``hop`` seconds until the next block is at work.

    Questions: ``front`` of who asks, for all shards, and ``merge`` a shard; ``ask_call`` of a
    server, and ``ask_all`` of all of them together; ``ask_spread`` of the logarithm of a question's
    time; ``trip`` seconds there and back.
    """

    link_bytes: float
    node_bytes: float
    name_bytes: float
    sample_bytes: float
    large_node: float
    sweeps: int
    sweep_link: float
    processors: float
    others: float
    sample_node: float
    shard_node: float
    begin: float
    beside: float
    ray: float
    live: tuple[float, ...]
    fine_token: float
    fine_layout: float
    gather: float
    crossing: float
    record_bytes: float
    tree_bytes: float
    block_link: float
    border: float
    call: float
    parcel: float
    call_block: float
    parcel_block: float
    block_begin: float
    block_start: float
    rank_begin: float
    rank_start: float
    hop: float
    front: float
    merge: float
    ask_call: float
    ask_all: float
    ask_spread: float
    trip: float


def stored() -> dict[str, Any]:
    """Return all stored results."""
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


def keep(section: str, name: str, value: Any) -> None:
    """Keep figures, of ``constants`` or ``runs``, in the place of those of that name."""
    found = stored() if FILE.exists() else {}
    found.setdefault(section, {})[name] = value
    edit(FILE, json.dumps(found, indent=1) + "\n", write=True)


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Add ``--write`` and ``--keep``: the options of :func:`keep_quiet`."""
    add_write(parser, f"keep the figures in benchmarks/results/{FILE.name}")
    parser.add_argument(
        "--keep", action="store_true", help="with --write, keep figures of a busy machine, too"
    )


def keep_quiet(section: str, name: str, value: dict[str, Any], chosen: argparse.Namespace) -> None:
    """Keep figures of a quiet machine, or any with ``--keep``, where ``--write`` says so."""
    if not chosen.write:
        return
    if value["others"] > QUIET and not chosen.keep:
        share = f"{100 * value['others']:.0f}%"
        entries = (
            f"others took {share} of the processors: not kept ({section}, {name}). --keep does"
        )
        print(entries, file=sys.stderr, flush=True)
        return
    keep(section, name, value)


def read() -> tuple[Constants, dict[str, Any]]:
    """The constants, and the runs that were measured."""
    found = stored()
    entries = {name: each for group in found["constants"].values() for name, each in group.items()}
    named = {each.name: entries[each.name] for each in fields(Constants)}
    return Constants(**named | {"live": tuple(entries["live"])}), found.get("runs", {})
