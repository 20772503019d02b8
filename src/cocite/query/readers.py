"""Which reader answers for a part of an index: by its layout, and sometimes by its measure."""

from __future__ import annotations

from importlib import import_module

from cocite.errors import Damaged
from cocite.index import StoredPart
from cocite.query.reader import Reader

__all__ = ["reader_of"]

_READERS = {
    ("compact", "*"): ("cocite.query.compact", "CompactReader"),
    ("drawn", "*"): ("cocite.query.drawn", "DrawnReader"),
    ("features", "*"): ("cocite.query.features", "FeatureReader"),
    ("minhash", "*"): ("cocite.query.minhash", "MinhashReader"),
    ("nearest", "*"): ("cocite.query.nearest", "NearestReader"),
    ("paths", "*"): ("cocite.query.paths", "PathReader"),
    ("sketch", "*"): ("cocite.query.sketch", "SketchReader"),
    ("trees", "*"): ("cocite.query.trees", "TreeReader"),
    ("links", "cocitation"): ("cocite.query.common", "CommonReader"),
    ("links", "coupling"): ("cocite.query.common", "CommonReader"),
    ("links", "ppr"): ("cocite.query.push", "PushReader"),
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
