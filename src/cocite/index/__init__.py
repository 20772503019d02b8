"""The index on disk: built part by part, opened by mapping.

``cocite.index.build`` is imported by those who build only.
"""

from cocite.index.stored import StoredIndex
from cocite.layouts.format import is_shard
from cocite.layouts.stored import Shard, StoredPart

__all__ = ["Shard", "StoredIndex", "StoredPart", "is_shard"]
