"""Which way an index's answers are refined (``refine.py``)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.index import StoredIndex
from cocite.index.refined import can_refine
from cocite.index.unbuilt import UnbuiltIndex
from cocite.query.meetings import MeetingReader
from cocite.query.reader import Reader, SampledReader
from cocite.query.refine import Refiner
from cocite.query.resample import SampleRefiner, Top

__all__ = ["refiner_for"]


def refiner_for(
    stored: StoredIndex,
    graph: Graph | str | os.PathLike[str] | None,
    readers: Sequence[Reader],
    top: Top,
) -> Refiner | None:
    """What refines the answers of an index; None if no part of it is sampled.

    Raises :class:`UsageError` if its samples cannot be made again for single nodes.
    """
    if all(can_refine(part.plan) for part in stored.parts):
        if isinstance(stored, UnbuiltIndex):
            from cocite.query.nearby import NearbyRefiner

            return NearbyRefiner(stored, graph)
        from cocite.query.exactly import LinearRefiner

        return LinearRefiner(stored, graph)
    sampled = [reader for reader in readers if isinstance(reader, SampledReader)]
    if not sampled:
        return None
    for reader in sampled:
        if not isinstance(reader, MeetingReader):
            raise UsageError(
                f"{reader.part.measure.name} has no refined answers: its samples are made for all "
                "nodes at once. Build an index of more samples (--samples) instead"
            )
    return SampleRefiner(stored, graph, readers, top)
