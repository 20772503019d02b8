"""The index on disk: built part by part, opened by mapping.

``cocite.index.build`` is imported by those who build only.
"""

from cocite.index.blobs import is_shard
from cocite.index.stored import Shard, StoredIndex, StoredPart

__all__ = ["Shard", "StoredIndex", "StoredPart", "is_shard"]
