"""The only table of layouts: a name, what lies where, what makes it, what answers from it.

Each is imported when it is first needed: who asks an index loads no builder.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from cocite.errors import Damaged
from cocite.layouts.format import PartFormat, SampledFormat
from cocite.layouts.reader import Reader
from cocite.layouts.stored import StoredPart

if TYPE_CHECKING:
    from cocite.layouts.blobs import SampledBuilder
    from cocite.layouts.whole import WholeBuilder

__all__ = [
    "LAYOUTS",
    "format_of",
    "is_sampled",
    "reader_of",
    "sampled_builder",
    "sampled_format",
    "whole_builder",
]


class _Row(NamedTuple):
    """Where the classes of a layout are, as ``module:class`` below this package; its readers by the
    measure that they answer for, ``*`` for all.
    """

    format: str
    builder: str
    readers: dict[str, str]


LAYOUTS = {
    "compact": _Row(
        "compact.format:CompactFormat",
        "compact.build:CompactBuilder",
        {"*": "compact.reader:CompactReader"},
    ),
    "features": _Row(
        "features.format:FeaturesFormat",
        "features.build:FeaturesBuilder",
        {"*": "features.reader:FeatureReader"},
    ),
    "links": _Row(
        "links.format:LinksFormat",
        "links.build:LinksBuilder",
        {
            "cocitation": "links.common:CommonReader",
            "companion": "links.companion:CompanionReader",
            "coupling": "links.common:CommonReader",
            "ppr": "links.push:PushReader",
            "proximity": "links.proximity:ProximityReader",
        },
    ),
    "minhash": _Row(
        "minhash.format:MinhashFormat",
        "minhash.build:MinhashBuilder",
        {"*": "minhash.reader:MinhashReader"},
    ),
    "nearest": _Row(
        "nearest.format:NearestFormat",
        "nearest.build:NearestBuilder",
        {"*": "nearest.reader:NearestReader"},
    ),
    "packed": _Row(
        "packed.format:PackedFormat",
        "packed.build:PackedBuilder",
        {"*": "packed.reader:PackedReader"},
    ),
    "paths": _Row(
        "paths.format:PathsFormat", "paths.build:PathsBuilder", {"*": "paths.reader:PathReader"}
    ),
    "sketch": _Row(
        "sketch.format:SketchFormat",
        "sketch.build:SketchBuilder",
        {"*": "sketch.reader:SketchReader"},
    ),
    "text": _Row(
        "text.format:TextFormat", "text.build:TextBuilder", {"*": "text.reader:TextReader"}
    ),
    "trees": _Row(
        "trees.format:TreesFormat", "trees.build:TreesBuilder", {"*": "trees.reader:TreeReader"}
    ),
}
_DRAWN = {
    "compact": "drawn.reader:DrawnReader",
    "features": "drawn.features:DrawnFeatureReader",
    "minhash": "drawn.rings:DrawnMinhashReader",
    "nearest": "drawn.nearest:DrawnNearestReader",
    "packed": "drawn.trees:DraftPackedReader",
    "paths": "drawn.trees:DraftTreeReader",
    "sketch": "drawn.rings:DrawnSketchReader",
    "text": "drawn.text:DrawnTextReader",
    "trees": "drawn.trees:DraftTreeReader",
}
"""What answers in the place of a layout where nothing is stored; links are read alike."""


def format_of(layout: str) -> PartFormat:
    """What lies where; raises :class:`Damaged`, as names come from manifests."""
    if layout not in LAYOUTS:
        raise Damaged(f"an index names the layout {layout!r}, which this release does not know")
    found: PartFormat = _found(LAYOUTS[layout].format)()
    return found


def is_sampled(layout: str) -> bool:
    """Whether the layout is one of samples."""
    return layout in LAYOUTS and isinstance(format_of(layout), SampledFormat)


def sampled_format(layout: str) -> SampledFormat:
    """Of a layout of samples; raises :class:`Damaged` for another."""
    found = format_of(layout)
    if not isinstance(found, SampledFormat):
        raise Damaged(f"an index names the layout {layout!r} for samples, which it does not hold")
    return found


def sampled_builder(layout: str) -> SampledBuilder:
    """What makes the samples of a layout that has them."""
    found: SampledBuilder = _found(LAYOUTS[layout].builder)()
    return found


def whole_builder(layout: str) -> type[WholeBuilder]:
    """What makes the arrays of a layout that is made in one go."""
    found: type[WholeBuilder] = _found(LAYOUTS[layout].builder)
    return found


def reader_of(part: StoredPart) -> Reader:
    """What answers for a part; raises :class:`Damaged` for a layout that its measure has not."""
    readers = LAYOUTS[part.layout].readers
    if part.drawn:
        readers = {"*": _DRAWN[part.layout]} if part.layout in _DRAWN else readers
    place = readers.get(part.measure.name) or readers.get("*")
    if place is None:
        raise Damaged(
            f"{part.store.path}: the manifest names a layout {part.layout!r} that "
            f"{part.measure.name} does not have"
        )
    found: Reader = _found(place)(part)
    return found


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"cocite.layouts.{module}"), name)
