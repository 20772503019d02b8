"""What an index of SimRank may hold beside its samples: the diagonal that refined answers need.

    in.diagonal   <f4[n, 1 + LIMITS]: D, and the limits of levels 1, 2, ...

for the part of that direction, with what its certificate says in the manifest, under the name of
the file. It depends on the graph and the decay only, not on the samples: few of those suffice
beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cocite.engine import LIMITS, Diagonal, diagonal_room, make_diagonal
from cocite.errors import UsageError
from cocite.graph.links import Links
from cocite.index.plan import BuildOptions, PartPlan
from cocite.measures import DECAY
from cocite.store import ArrayWriter, Entry, Journal

__all__ = [
    "DIAGONAL",
    "Report",
    "can_refine",
    "checked_refine",
    "diagonal_bytes",
    "read_diagonal",
    "write_diagonal",
]

DIAGONAL = "diagonal"
Report = Callable[[int, int, int], None]


def can_refine(plan: PartPlan) -> bool:
    """Whether a part has a linearised form: walks that step to each in-neighbour alike."""
    return plan.measure.name == "simrank" and not plan.step.weighted


def checked_refine(options: BuildOptions, refine: bool) -> bool:
    """Raises :class:`UsageError` where there is nothing to make ready."""
    if refine and not all(map(can_refine, options.parts)):
        raise UsageError(
            "--refine (refine=True) makes an index of simrank, without weights of links or hubs, "
            f"ready for refined answers; {options.measure.name} has nothing to make ready. Leave "
            "it out here, and ask with it"
        )
    return refine


def decay_of(plan: PartPlan) -> float:
    """The decay that a part is made ready for."""
    return plan.fixed.get(DECAY, DECAY.default)


def diagonal_bytes(nodes: int) -> int:
    """What it takes on disk, for one part."""
    return 4 * (1 + LIMITS) * nodes


def write_diagonal(
    directory: Path,
    plan: PartPlan,
    rows: Links,
    columns: Links,
    memory: int,
    threads: int,
    report: Report,
) -> tuple[dict[str, Entry], dict[str, Any]]:
    """Make and write the diagonal of a part, for its decay or the default one; goes on where an
    earlier run was interrupted.

    Returns its entry and its facts, each under the name of the file.
    """
    threads, decay = diagonal_room(rows, columns, threads, memory), decay_of(plan)
    name = plan.prefix + DIAGONAL
    with Journal(directory / (name + ".stages")) as journal:
        reached = None
        if journal.sizes:
            words, begin = rows.nodes * (1 + LIMITS), journal.begins[-1]
            table = np.fromfile(journal.path, np.float32, words, offset=begin)
            reached = len(journal.sizes), table.reshape(-1, 1 + LIMITS)
        made = make_diagonal(
            rows,
            columns,
            decay,
            threads=threads,
            progress=report,
            reached=reached,
            keep=lambda table: journal.append(table.tobytes()),
        )
    with ArrayWriter(directory / name, np.float32, (1 + LIMITS,)) as writer:
        writer.write(made.table)
    facts = {"decay": made.decay, "low": made.low, "high": made.high}
    return {name: writer.finished}, {name: facts}


def read_diagonal(table: Any, facts: dict[str, Any]) -> Diagonal:
    """The diagonal as it was written."""
    return Diagonal(float(facts["decay"]), table, float(facts["low"]), float(facts["high"]))
