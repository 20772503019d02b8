"""Which reader answers for a part of an index: by its layout, and sometimes by its measure."""

from __future__ import annotations

from importlib import import_module

from cocite.errors import Damaged
from cocite.layouts.reader import Reader
from cocite.layouts.stored import StoredPart

__all__ = ["reader_of"]

_READERS = {
    ("compact", "*"): ("cocite.layouts.compact.reader", "CompactReader"),
    ("drawn", "*"): ("cocite.layouts.drawn.reader", "DrawnReader"),
    ("features", "*"): ("cocite.layouts.features.reader", "FeatureReader"),
    ("minhash", "*"): ("cocite.layouts.minhash.reader", "MinhashReader"),
    ("nearest", "*"): ("cocite.layouts.nearest.reader", "NearestReader"),
    ("paths", "*"): ("cocite.layouts.paths.reader", "PathReader"),
    ("sketch", "*"): ("cocite.layouts.sketch.reader", "SketchReader"),
    ("trees", "*"): ("cocite.layouts.trees.reader", "TreeReader"),
    ("links", "cocitation"): ("cocite.layouts.links.common", "CommonReader"),
    ("links", "coupling"): ("cocite.layouts.links.common", "CommonReader"),
    ("links", "ppr"): ("cocite.layouts.links.push", "PushReader"),
}
"""(layout, measure or ``*`` for all of them) -> where the reader is, imported when first asked."""


def reader_of(part: StoredPart) -> Reader:
    """What answers for a part; raises :class:`Damaged` for a layout that its measure has not."""
    kinds = (part.layout, part.measure.name), (part.layout, "*")
    kind = next((kind for kind in kinds if kind in _READERS), None)
    if kind is None:
        raise Damaged(
            f"{part.store.path}: the manifest names a layout {part.layout!r} that "
            f"{part.measure.name} does not have"
        )
    module, name = _READERS[kind]
    found: Reader = getattr(import_module(module), name)(part)
    return found
