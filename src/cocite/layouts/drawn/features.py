"""Asking features that nobody stored: the part is made when it is first needed.

One page more changes the PageRank of all, and with it what every page hands on. So the whole part
is made from the links as they are, by its builder, in a folder of temporary files that go with the
reader; answers are those of an index to the bit.

Cost: that of a build (``layouts/features/build.py``), once.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError
from cocite.graph.links import opposite
from cocite.layouts.drawn.part import UnbuiltPart
from cocite.layouts.features.build import FeaturesBuilder
from cocite.layouts.features.reader import FeatureReader
from cocite.layouts.stored import StoredPart
from cocite.measures.pagesim import MOST_STEPS, RADIUS, THRESHOLD
from cocite.store import map_array

__all__ = ["DrawnFeatureReader"]


class DrawnFeatureReader(FeatureReader):
    """In the place of the layout ``features``."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, UnbuiltPart)
        super().__init__(_Made(part))


class _Made(StoredPart):
    """A part whose arrays were made just now."""

    def __init__(self, part: UnbuiltPart) -> None:
        names = list(StoredPart.__dataclass_fields__)
        super().__init__(**{name: getattr(part, name) for name in names})
        self.__dict__["made"] = _made(part)

    def array(self, name: str) -> NDArray[Any]:
        """The array ``name``."""
        found: NDArray[Any] = self.__dict__["made"][name]
        return found


class _Builder(FeaturesBuilder):
    """Of links that no graph on disk has."""

    def __init__(self, part: UnbuiltPart) -> None:
        plan = replace(part.plan, weight=1.0)
        super().__init__(None, part.links(part.direction), plan, part.ends.means)  # type: ignore[arg-type]
        self.onward = part.links(opposite(part.direction))

    def too_many(self, source: int) -> ResourceError:
        """What to raise when the paths of a page take too many steps."""
        settings = self.plan.settings
        return ResourceError(
            f"with the draft the paths of a page take more than {settings[MOST_STEPS]:,} links, "
            f"with a radius of {settings[RADIUS]} and a threshold of {settings[THRESHOLD]:g}. Ask "
            "an index with a smaller --radius or a larger --threshold"
        )


def _made(part: UnbuiltPart) -> dict[str, NDArray[np.generic]]:
    """The arrays of a part, mapped; their files have no names any more."""
    builder = _Builder(part)
    with tempfile.TemporaryDirectory(prefix="cocite-draft-") as folder:
        entries = builder.write(Path(folder), lambda done, total: None)
        start = len(builder.plan.prefix)
        return {name[start:]: map_array(Path(folder) / name, e) for name, e in entries.items()}
