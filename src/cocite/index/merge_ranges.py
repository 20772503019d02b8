"""Merging indexes of ranges of nodes into that of the whole graph, byte-identical to one build.

A row depends only on the graph and the settings (``measures/fusion.py``, ``measures/snn.py``), so
indexes of the ranges of one graph are pieces of one index. A merge copies rows and makes the data
that follows from them; names come from the graph.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cocite.errors import UsageError
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.index.build import IndexBuild
from cocite.index.layouts.contract import PartPlan
from cocite.index.merge import Merge, check_same
from cocite.index.parts import PartBuild
from cocite.index.refresh import ROWS, graph_before, same_options
from cocite.index.stored import StoredIndex
from cocite.resources import Resources

_JOINED = ROWS, "nearest"
_MORE = "A merge of ranges takes names from the graph: put it back where the first index expects it"


def open_merge(
    indexes: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    means: Resources,
    *,
    verify: bool = True,
    **how: Any,
) -> Merge | RangeMerge:
    """Return a merge of indexes with different samples or nodes; ``how`` is ``overwrite`` and
    ``elsewhere``. Raises :class:`UsageError` if the indexes do not fit together.
    """
    if not isinstance(indexes, str | os.PathLike) and len(indexes) > 1:
        opened = [StoredIndex.open(path, verify=verify) for path in indexes]
        if all(index.kept and index.samples is None for index in opened):
            return RangeMerge(opened, output, means, verify=verify, **how)
    return Merge(indexes, output, shard=means.shard, verify=verify, **how)


class RangeMerge(IndexBuild):
    """One merge: ``with RangeMerge(indexes, output, means) as merge: merge.run(progress)``."""

    def __init__(
        self,
        indexes: Sequence[StoredIndex],
        output: str | os.PathLike[str],
        means: Resources,
        *,
        verify: bool,
        **how: Any,
    ) -> None:
        """Check the ``indexes``, and find their graph."""
        for index in indexes:
            _check_alone(index)
            check_same(indexes[0], index, pieces=True)
        self._indexes = sorted(indexes, key=lambda index: _range(index).start)
        _check_whole(self._indexes)
        graph = graph_before(indexes[0], verify, _MORE)
        super().__init__(graph, output, same_options(indexes[0]), means, **how)

    @property
    def paths(self) -> list[Path]:
        """Return the indexes to merge."""
        return [index.store.path for index in self._indexes]

    @property
    def contents(self) -> str:
        """Return the merged nodes in words."""
        return f"{self.nodes:,} nodes"

    def _part(self, plan: PartPlan) -> PartBuild:
        parts = [part for index in self._indexes for part in index.parts]
        joined = tuple(part for part in parts if part.prefix == plan.prefix)
        return super()._part(replace(plan, joined=joined))

    def _links(self, plan: PartPlan) -> Links:
        return links_of(self.graph, "in", weighted=False)  # for their number alone


def _range(index: StoredIndex) -> range:
    """Return the consecutive ids of the nodes of an index in its graph."""
    assert index.wanted is not None
    return range(int(index.wanted[0]), int(index.wanted[0]) + index.nodes)


def _check_alone(index: StoredIndex) -> None:
    """Raise :class:`UsageError` for an index that is no piece of another."""
    path = index.store.path
    if index.local is not None or any(part.layout not in _JOINED for part in index.parts):
        raise UsageError(
            f"{path} is no index of a range of nodes by fusion, ppr-pmi or snn, as it was built: "
            "there is nothing to join"
        )
    assert index.wanted is not None
    if int(index.wanted[-1]) != _range(index)[-1]:
        raise UsageError(
            f"{path} keeps pages that do not follow each other: only indexes of ranges are joined. "
            "Build them with cocite index --only-range"
        )


def _check_whole(indexes: Sequence[StoredIndex]) -> None:
    """Raise :class:`UsageError` unless each node of the graph is in one index."""
    named = " and ".join(str(index.store.path) for index in indexes)
    ends = [range(0), *map(_range, indexes), range(indexes[0].graph_nodes, 2**32)]
    for before, after in pairwise(ends):
        if after.start > before.stop:
            raise UsageError(
                f"nodes {before.stop:,} to {after.start - 1:,} of the graph are in none of "
                f"{named}: build their index with cocite index --only-range, and join that, too"
            )
        if after.start < before.stop:
            last = min(before.stop, after.stop) - 1
            raise UsageError(
                f"nodes {after.start:,} to {last:,} of the graph are in more than one of {named}: "
                "each must be in one"
            )
