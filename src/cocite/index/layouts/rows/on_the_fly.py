"""How layouts of rows answer queries for an unseen page.

An added page changes the weights of its neighbors and every node's PageRank. So the ``nearest`` and
``features`` layouts are built once, in temporary files, and scores are bit-identical to the scores
from a rebuilt index. An unseen page has no text, so its row of words is empty.

In ``rows``, the rows of the unseen page, and of 32 nodes within two links, are computed on the
extended links, as in a rebuilt index. Linked nodes are chosen first, then nodes with the fewest
links. Every other row is kept as stored. If the page's row contains the row's node, the row also
gets an entry for the page, with the same code. So scores differ from those of a rebuilt index only
by the page's effect on stored rows. Scores between other nodes do not change.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, Floats, Ids
from cocite.errors import ResourceError
from cocite.index.layouts.batch_maker import WholeBuilder
from cocite.index.layouts.links.build import degrees_of
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Estimate, Graphs, QueryScratch, Reader, Reasons
from cocite.index.layouts.rows.fusion import RowsBuilder, encode
from cocite.index.layouts.rows.fusion_reader import Row, RowsReader, shared_nodes
from cocite.index.layouts.rows.neighbors import NearestBuilder
from cocite.index.layouts.rows.pagesim import FeaturesBuilder
from cocite.index.layouts.rows.reader import FeatureReader, NearestReader, WordsReader, own_reasons
from cocite.measures import PartSettings
from cocite.measures.fusion import SIZE, row_sizes
from cocite.measures.pagesim import MOST_STEPS, RADIUS, THRESHOLD
from cocite.options import opposite
from cocite.storage import map_array


def no_graph() -> Any:
    """Return a stand-in for a stored graph with links in memory and temporary scratch files."""
    return SimpleNamespace(path=Path(tempfile.gettempdir()))


class _FeatureBuilder(FeaturesBuilder):
    """Builds features of a graph with an unseen page."""

    def too_many(self, source: int) -> ResourceError:
        """Return the error for a page with too many paths."""
        settings = self.plan.settings
        return ResourceError(
            f"with the draft, a page's paths read more than {settings[MOST_STEPS]:,} links, with a "
            f"radius of {settings[RADIUS]} and a threshold of {settings[THRESHOLD]:g}. Use an "
            "index with a smaller --radius (radius=...) or a larger --threshold (threshold=...)"
        )


def _mapped_arrays(builder: WholeBuilder) -> dict[str, NDArray[np.generic]]:
    """Build a part; return its arrays, mapped from deleted files."""
    with tempfile.TemporaryDirectory(prefix="cocite-draft-") as folder:
        entries = builder.write(Path(folder), lambda done, total: None)
        start = len(builder.plan.prefix)
        return {name[start:]: map_array(Path(folder) / name, e) for name, e in entries.items()}


B = TypeVar("B", bound=WholeBuilder)


def _builder(kind: type[B], part: DraftPart, way: str) -> B:
    plan = replace(part.plan, weight=1.0)
    return kind(no_graph(), part.links(way), plan, part.ends.means)


class OnTheFlyNeighborReader(NearestReader):
    """Replaces the reader of ``nearest`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        builder = _builder(NearestBuilder, part, "in")
        builder.ins, builder.outs = builder.links, part.links("out")
        super().__init__(replace(part, made=_mapped_arrays(builder)))


class OnTheFlyPageSimReader(FeatureReader):
    """Replaces the reader of ``features`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        builder = _builder(_FeatureBuilder, part, part.direction)
        builder.onward = part.links(opposite(part.direction))
        super().__init__(replace(part, made=_mapped_arrays(builder)))


class OnTheFlyWordsReader(WordsReader):
    """Replaces the reader of ``text`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        offsets = part.built.array("texts.offsets")
        made = {"texts.offsets": np.append(offsets, offsets[-1:])}  # one more, empty row
        super().__init__(replace(part, made=made))


# -- the ``rows`` layout -----------------------------------------------------------------


_CHANGED = 32
"""Number of nearby nodes whose rows are recomputed."""


class UnseenRowsReader(Reader):
    """Replaces the reader of ``rows`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._draft, self._node, self._stored = part, part.nodes - 1, RowsReader(part.built)

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself."""
        if self._node not in (first, second):
            return self._stored.pair(first, second, settings)
        other = second if first == self._node else first
        return Estimate(GRAINS if other == self._node else float(self._scores[other]), 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the scores of all other nodes; the unseen node's scores are cached."""
        if node == self._node:
            others, grains = np.flatnonzero(self._scores), self._scores
        else:
            others, grains = np.array([self._node]), np.zeros(self._node + 1)
            grains[self._node] = self._scores[node]
            self._stored.gather(node, settings, scratch)
        scratch.scores[others, 0] = grains[others]
        scratch.used[: others.size] = others
        self.settle_exact(scratch, others.size)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the nodes shared by both rows in any family."""
        if self._node not in (first, second):
            return self._stored.reasons(first, second, settings, graphs)
        nodes, shares = shared_nodes(self._stored.weights, self._row, first, second)
        return own_reasons(self.part, self.part.nodes, (first, second), nodes, shares)

    def _row(self, family: int, node: int) -> Row:
        """Return a node's recomputed row, or its stored row with the unseen node added."""
        made = self._new_rows[family]
        if node in made:
            return made[node]
        ids, codes = self._stored.row(family, node)
        own_ids, own_codes = made[self._node]
        held = own_codes[own_ids == node]
        return np.append(ids, np.full(held.size, self._node, np.uint32)), np.append(codes, held)

    @cached_property
    def _scores(self) -> Floats:
        """Return float64[nodes + 1]: the unseen node's scores in grains; its own score is 0."""
        total = np.zeros(self._node + 1)
        for number, weight in enumerate(self._stored.weights):
            made = self._new_rows[number]
            ids, codes = made[self._node]
            common, sums = np.zeros(self._node + 1), np.append(self._stored.norms(number), 0.0)
            for node, code in zip(ids.tolist(), codes.tolist(), strict=True):
                if node == self._node:
                    common[ids] += np.minimum(codes, code) ** 2
                else:
                    holders, held = self._stored.column(number, node)
                    common[holders] += np.minimum(held, code) ** 2
            sums[ids] += codes**2
            for node, (others, values) in made.items():
                _, here, there = np.intersect1d(ids, others, return_indices=True)
                common[node] = (np.minimum(codes[here], values[there]) ** 2).sum()
                sums[node] = (values**2).sum()
            found = np.flatnonzero(common)
            union = (codes**2).sum() + sums[found] - common[found]
            total[found] += weight * (common[found] / union)
        total[self._node] = 0.0
        return np.rint(total * GRAINS)

    # -- rows ----------------------------------------------------------------------------

    @cached_property
    def _new_rows(self) -> list[dict[int, Row]]:
        """Return the rows of the unseen node and of nearby nodes, for each family."""
        pages, found = np.append(self._linked, np.uint32(self._node)), []
        for family in _RowsMaker(self._draft).families:
            make = family.makers()[0]
            made = [encode(make(range(page, page + 1)), family.scale) for page in pages.tolist()]
            rows = [(ids, codes.astype(np.float64)) for _, ids, codes, _ in made]
            found.append(dict(zip(pages.tolist(), rows, strict=True)))
        return found

    @property
    def _linked(self) -> Ids:
        """Return up to 32 nodes within two links of the unseen node, preferring near nodes, then
        nodes with few links.
        """
        page, links = self._draft.ends.page, self._draft.ends.links("any", self.part.weighted)
        nodes = np.union1d(page.out, page.into).astype(np.uint32)
        chosen = nodes[:0]
        for _ in range(2):
            sizes = links.offsets[nodes + np.int64(1)] - links.offsets[nodes]
            order = np.argsort(sizes, kind="stable")
            chosen = np.append(chosen, nodes[order])[:_CHANGED]
            rows = [links.neighbors[links.offsets[v] : links.offsets[v + 1]] for v in chosen]
            known = np.append(chosen, np.uint32(self._node))
            nodes = np.setdiff1d(np.concatenate([nodes[:0], *rows]), known)
        return np.sort(chosen)


class _RowsMaker(RowsBuilder):
    """Makes rows from the links with an unseen page, on the scales of the stored rows."""

    fit, streaming = MemoryPlan(0, 1, ()), False

    def __init__(self, part: DraftPart) -> None:
        links = part.ends.links("any", part.weighted)
        super().__init__(no_graph(), links, part.plan, part.ends.means)
        self._walked, self._part = (links, degrees_of(links)), part
        self._sizes = row_sizes(part.plan.settings[SIZE], part.nodes - 1)
        self._odd = float(part.built.array("odd")[0])
        self._scales = part.built.array("scales").tolist()

    @property
    def _nearest(self) -> NearestBuilder:
        found = super()._nearest
        found.ins, found.outs = (self._part.ends.links(way, False) for way in ("in", "out"))
        found.fit, found.streaming, found.lean = self.fit, False, False
        return found
