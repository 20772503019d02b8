"""Indexes on disk: building, opening, refreshing, merging, and verifying.

Only builds import ``cocite.index.build``.
"""

from cocite.index.layouts.contract import is_shard
from cocite.index.layouts.part import Shard, StoredPart
from cocite.index.stored import StoredIndex

__all__ = ["Shard", "StoredIndex", "StoredPart", "is_shard"]
