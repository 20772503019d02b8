"""The index on disk: built part by part, opened by mapping.

Only builds import ``cocite.index.build``.
"""

from cocite.index.layouts.contract import is_shard
from cocite.index.layouts.part import Shard, StoredPart
from cocite.index.stored import StoredIndex

__all__ = ["Shard", "StoredIndex", "StoredPart", "is_shard"]
