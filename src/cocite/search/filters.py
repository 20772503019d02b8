"""Which nodes may be hits: by their scores and names, those of a list, those of other sites.

In a bipartite graph, only nodes of the side of the query node. Filters apply to everything that a
query touched, before the best are picked, so k hits are the best k that pass. A *site* is what
stands between ``scheme://`` and the next slash of a name that is a URL, whichever the scheme; names
that are no URLs have none.

Cost: a binary search for a prefix, and a sorted membership test of the nodes touched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS
from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.index.layouts.reader import QueryScratch
from cocite.options.query import FilterOptions

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Filter:
    """``only`` and ``never`` are ascending ids, or None for no such condition; ``within`` is the
    range of the ids that may be hits, None for all: the side of a bipartite graph. Whatever
    passes has a score above 0, and of ``min_score`` or more.
    """

    only: tuple[Ids, ...] = ()
    never: tuple[Ids, ...] = ()
    within: range | None = None
    min_score: float = 0.0

    @classmethod
    def checked(
        cls,
        names: Names,
        nodes: Sequence[int],
        options: FilterOptions,
    ) -> Filter:
        """The filter of a question about ``nodes``; raises :class:`UnknownNode`. Of several, none
        may be a hit.
        """
        only: list[Ids] = []
        never: list[Ids] = []
        prefix, exclude_prefix = options.prefix, options.exclude_prefix
        among = options.only
        if prefix is not None:
            only.append(names.with_prefix(prefix))
        if among is not None:
            if isinstance(among, str):
                raise UsageError("only is one text; give a list of names")
            only.append(np.unique(names.ids(list(among))))
        if exclude_prefix is not None:
            never.append(names.with_prefix(exclude_prefix))
        if options.exclude_same_site:
            sites = (site_of(names.stored.name(node)) for node in nodes)
            never += [ids for site in sites for ids in pages_of(names, site)]
        if len(nodes) > 1:
            never.append(np.unique(np.array(nodes, np.uint32)))
        within = None
        if names.sides is not None and nodes:
            names.sides.check_alike(nodes, names.names(np.array(nodes, np.uint32)))
            within = names.sides.side_of(nodes[0])
        return cls(tuple(only), tuple(never), within, options.min_score)

    def on_side_of(self, names: Names, node: int) -> Filter:
        """The same of the side of a node alone, if there are two."""
        return self if names.sides is None else replace(self, within=names.sides.side_of(node))

    @property
    def empty(self) -> bool:
        """Whether all nodes pass that score :attr:`floor` or more."""
        return not self.only and not self.never and self.within is None

    @property
    def floor(self) -> float:
        """The least score of a hit, in grains."""
        return max(1.0, float(np.rint(self.min_score * GRAINS)))

    def of_any_score(self) -> Filter:
        """The same for scores that are estimates: better ones follow, see :meth:`passing`."""
        return replace(self, min_score=0.0)

    def passing(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of some scores a hit may have."""
        found: NDArray[np.bool_] = scores >= max(self.min_score, 1e-12)
        return found

    def best(self, scratch: QueryScratch, k: int) -> tuple[Ids, NDArray[np.float64]]:
        """The best ``k`` of the nodes touched that pass; the scratch is zero again.

        Returns uint32[h] and float64[h, 2], grains and variances: by grains descending, then by id
        ascending.
        """
        from cocite.kernels import totals

        self._apply(scratch)
        floor, most = self.floor, min(k, scratch.have)
        ids, best = np.empty(most, np.uint32), np.empty((most, 2))
        found = int(totals.top(scratch.totals, scratch.touched, scratch.have, floor, ids, best))
        return ids[:found], best[:found]

    def _apply(self, scratch: QueryScratch) -> None:
        """Forget the nodes touched that do not pass."""
        if self.empty:
            return
        touched = scratch.touched[: scratch.have]
        keep = np.ones(touched.size, bool)
        if self.within is not None:
            keep = (touched >= self.within.start) & (touched < self.within.stop)
        for ids in self.only:
            keep &= _among(touched, ids)
        for ids in self.never:
            keep &= ~_among(touched, ids)
        scratch.totals[touched[~keep]] = 0
        kept = touched[keep]
        scratch.touched[: kept.size] = kept
        scratch.have = kept.size


def _among(nodes: Ids, ids: Ids) -> NDArray[np.bool_]:
    """Which of ``nodes`` are in the ascending ``ids``."""
    if ids.size == 0:
        return np.zeros(nodes.size, bool)
    places = np.minimum(np.searchsorted(ids, nodes), ids.size - 1)
    found: NDArray[np.bool_] = ids[places] == nodes
    return found


def site_of(name: str) -> tuple[str, str]:
    """The scheme of an URL, with ``://``, and its host; raises :class:`UsageError`."""
    match = _URL.match(name)
    if match is None:
        raise UsageError(f"{name!r} is no URL: it has no site that could be left out")
    return name[: match.start(1)], match[1]


def pages_of(names: Names, site: tuple[str, str]) -> list[Ids]:
    """The ids of the pages of a site, by scheme and by what follows the host."""
    scheme, host = site
    schemes = {scheme, "http://", "https://"}
    found = [names.with_prefix(f"{s}{host}{end}") for s in sorted(schemes) for end in "/?#"]
    bare = (names.find(scheme + host) for scheme in sorted(schemes))
    found.append(np.array(sorted(i for i in bare if i is not None), np.uint32))
    return found
