"""Which way an index's answers are refined (``refiner.py``)."""

from __future__ import annotations

from collections.abc import Sequence

from cocite.errors import UsageError
from cocite.index import StoredIndex
from cocite.index.unbuilt import UnbuiltIndex
from cocite.layouts.reader import Reader, SampledReader
from cocite.layouts.rings.matches import MatchReader
from cocite.layouts.walks.meetings import MeetingReader
from cocite.means import Means
from cocite.query.refine.candidates import Top
from cocite.query.refine.refiner import Refiner
from cocite.query.source import Given

__all__ = ["refiner_for"]


def refiner_for(
    stored: StoredIndex,
    graph: Given,
    means: Means,
    readers: Sequence[Reader],
    top: Top,
) -> Refiner | None:
    """What refines the answers of an index; None if no part of it is sampled.

    Raises :class:`UsageError` if parts would be refined in different ways.
    """
    if all(part.plan.linearised for part in stored.parts):
        if isinstance(stored, UnbuiltIndex):
            from cocite.query.refine.nearby import NearbyRefiner

            return NearbyRefiner(stored, graph, means)
        if stored.wanted is not None:
            from cocite.query.refine.selected import SelectedRefiner

            return SelectedRefiner(stored, graph, means)
        from cocite.query.refine.certain import LinearRefiner

        return LinearRefiner(stored, graph, means)
    sampled = [reader for reader in readers if isinstance(reader, SampledReader)]
    if not sampled:
        return None
    if all(isinstance(reader, MeetingReader) for reader in sampled):
        from cocite.query.refine.samples import SampleRefiner

        return SampleRefiner(stored, graph, means, readers, top)
    if all(isinstance(reader, MatchReader) for reader in sampled):
        from cocite.query.refine.rings import NeighbourhoodRefiner

        return NeighbourhoodRefiner(stored, graph, means, readers, top)
    raise UsageError(
        f"{stored.measure.name} has no refined answers: measures of walks and xjaccard are refined "
        "in different ways. Build an index of more samples (--samples) instead"
    )
