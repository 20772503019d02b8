"""The index on disk: built in shards of samples, opened by mapping.

``cocite.index.build`` is imported by those who build only.
"""

from cocite.index.stored import Shard, StoredIndex

__all__ = ["Shard", "StoredIndex"]
