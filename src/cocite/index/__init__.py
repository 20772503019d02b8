"""The index on disk: built part by part, opened by mapping.

``cocite.index.build`` is imported by those who build only.
"""

from cocite.index.stored import Shard, StoredIndex, StoredPart, is_shard

__all__ = ["Shard", "StoredIndex", "StoredPart", "is_shard"]
