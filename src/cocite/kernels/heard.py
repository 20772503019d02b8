"""Adding up what shards of samples told of a node: codes of whom it meets, sample by sample.

A code is what one sample says of a pair in few bits: the step at which two walks meet, or the mask
of the rings in which two nodes match. What codes are worth is looked up in a table of fixed-point
numbers, as the readers of files do, so that sums are theirs to the bit, in whatever order shards
answered.

Cost: a look into a small table for each candidate and sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import kernel

__all__ = ["add"]

_ZERO64 = np.uint64(0)


@kernel
def add(ids: Any, codes: Any, table: Any, sums: Any, used: Any, count: Any) -> Any:
    """Add up one shard: ``ids`` uint32[h], each once, ``codes`` uint8 or uint16 [h, samples].

    ``table`` uint64[codes, 2] holds the worth of each code and its square; ``sums`` uint64[nodes,
    2] receives the sums, ``used`` lists the nodes that have one, ``count`` so far. Returns the new
    count.
    """
    for i in range(ids.size):
        value, square = _ZERO64, _ZERO64
        for sample in range(codes.shape[1]):
            code = codes[i, sample]
            value += table[code, 0]
            square += table[code, 1]
        if value == _ZERO64:
            continue
        node = ids[i]
        if sums[node, 0] == _ZERO64:
            used[count] = node
            count += 1
        sums[node, 0] += value
        sums[node, 1] += square
    return count
