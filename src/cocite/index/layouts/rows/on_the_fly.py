"""Queries with an unseen page in the layouts ``nearest``, ``features`` and ``text``.

An added page changes the weights of its neighbors and every node's PageRank. So the whole part is
built once, in temporary files, at the cost of a build. Scores equal those of a rebuilt index, to
the bit. An unseen page has no text, so its row of words is empty.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.graph.blocks import Links
from cocite.index.layouts.batch_maker import WholeBuilder
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.rows.neighbors import NearestBuilder
from cocite.index.layouts.rows.pagesim import FeaturesBuilder
from cocite.index.layouts.rows.reader import FeatureReader, NearestReader, WordsReader
from cocite.measures.pagesim import MOST_STEPS, RADIUS, THRESHOLD
from cocite.options import opposite
from cocite.storage import map_array
from cocite.storage.spool import Scratch


class OnTheFlyNeighborReader(NearestReader):
    """Replaces the reader of ``nearest`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(_PartInMemory(part, _mapped_arrays(_ListBuilder(part))))


class OnTheFlyPageSimReader(FeatureReader):
    """Replaces the reader of ``features`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(_PartInMemory(part, _mapped_arrays(_FeatureBuilder(part))))


class _PartInMemory(StoredPart):
    """A part whose arrays in ``made`` replace stored arrays."""

    def __init__(self, part: DraftPart, made: dict[str, NDArray[Any]]) -> None:
        names = list(StoredPart.__dataclass_fields__)
        super().__init__(**{name: getattr(part, name) for name in names})
        self.__dict__["made"], self.__dict__["built"] = made, part.built

    def array(self, name: str) -> NDArray[Any]:
        """Return the array ``name``."""
        made: dict[str, NDArray[Any]] = self.__dict__["made"]
        found: NDArray[Any] = made[name] if name in made else self.__dict__["built"].array(name)
        return found


class _ListBuilder(NearestBuilder):
    """Builds lists from links in memory."""

    def __init__(self, part: DraftPart) -> None:
        plan = replace(part.plan, weight=1.0)
        super().__init__(None, part.links("in"), plan, part.ends.means)  # type: ignore[arg-type]
        self.outs = part.links("out")

    @property
    def ins(self) -> Links:
        """Return the in-links."""
        return self.links

    def _scratch(self, on_disk: bool) -> Scratch:
        return Scratch(Path(tempfile.gettempdir()) if on_disk else None)


class _FeatureBuilder(FeaturesBuilder):
    """Builds features from links in memory."""

    def __init__(self, part: DraftPart) -> None:
        plan = replace(part.plan, weight=1.0)
        super().__init__(None, part.links(part.direction), plan, part.ends.means)  # type: ignore[arg-type]
        self.onward = part.links(opposite(part.direction))

    def too_many(self, source: int) -> ResourceError:
        """Return the error for a page with too many paths."""
        settings = self.plan.settings
        return ResourceError(
            f"with the draft, a page's paths read more than {settings[MOST_STEPS]:,} links, with a "
            f"radius of {settings[RADIUS]} and a threshold of {settings[THRESHOLD]:g}. Use an "
            "index with a smaller --radius or a larger --threshold"
        )


def _mapped_arrays(builder: WholeBuilder) -> dict[str, NDArray[np.generic]]:
    """Build a part; return its arrays, mapped from deleted files."""
    with tempfile.TemporaryDirectory(prefix="cocite-draft-") as folder:
        entries = builder.write(Path(folder), lambda done, total: None)
        start = len(builder.plan.prefix)
        return {name[start:]: map_array(Path(folder) / name, e) for name, e in entries.items()}


class OnTheFlyWordsReader(WordsReader):
    """Replaces the reader of ``text`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        offsets = part.built.array("texts.offsets")
        made = {"texts.offsets": np.append(offsets, offsets[-1:])}  # one more, empty row
        super().__init__(_PartInMemory(part, made))
