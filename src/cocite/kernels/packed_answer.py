"""A whole answer from packed trees: the best hits, their intervals, how many are certain.

As ``kernels/trees_answer.py``, to the bit: sums are those of ``kernels/runs_lookup.py``, without
squares, and what is told of hits is ``kernels/listing.py``. A sum is compared as it comes about and
never stored, and becomes a score only if it may be among the best k.

Cost: that of ``packed_lookup.outwards``, and a nanosecond a node of the blocks that are summed up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS, ONE, UNFINISHED
from cocite.kernels._jit import kernel
from cocite.kernels.listing import offer, sort, tell
from cocite.kernels.runs_lookup import BLOCK, SOUND, meeting_times, next_block, outwards

_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)
_SLACK = 65536.0
"""More than a sum is off by as a float."""


@kernel
def _best(scratch: Any, samples: Any, floor: Any, ids: Any, grains: Any) -> Any:
    """The best of the sums, best first, as ``settle`` and ``top`` pick them: ``ids`` uint32[k] and
    ``grains`` float64[k]. Sets all of the scratch back to 0; returns how many there are, and how
    many nodes were summed up.
    """
    changes, marks, eights = scratch
    scale = samples * ONE
    grain, size, least = scale / GRAINS, 0, (floor - 1.0) * (scale / GRAINS)
    # What is below is not worth to be looked at; never 0, which is no sum.
    low = np.uint64(max(1.0, least - _SLACK))
    nodes, total, touched = changes.size - 1, _ZERO64, 0
    blocks = (nodes + BLOCK) // BLOCK
    block = next_block(0, blocks, marks, eights)
    while block < blocks:
        marks[block] = np.uint8(0)
        touched += BLOCK
        for node in range(block * BLOCK, min((block + 1) * BLOCK, nodes)):
            total += changes[node]
            changes[node] = _ZERO64
            if total < low or np.float64(total) < least:
                continue
            score = np.rint(np.float64(total) * (GRAINS / scale))
            if score < floor:
                continue
            size = offer(grains, ids, size, np.uint32(node), score)
            if size == ids.size:
                least = (grains[0] - 1.0) * grain
                low = np.uint64(max(1.0, least - _SLACK))
        block += 1
        if total == _ZERO64:
            block = next_block(block, blocks, marks, eights)
    changes[nodes] = _ZERO64
    sort(grains, ids, size)
    return size, touched


@kernel
def answer(
    table: Any, node: Any, weights: Any, worth: Any, scratch: Any, numbers: Any, ids: Any, out: Any
) -> Any:
    """The best k of ``node``, each with score, standard error and interval.

    ``table`` is that of ``packed_lookup.spread``; ``scratch`` is uint64[nodes + 1] and the marks of
    ``packed_lookup.collect``, all zeros before and after, and how far it got. All else, and what is
    returned, is as for ``trees_answer.answer``; all nodes count as read of a sample.
    """
    changes, marks, eights, progress = scratch
    samples, nodes, begin = table.shape[0], changes.size - 1, np.int64(progress[0])
    some = min(max(1, np.int64(progress[2]) // max(1, nodes)), samples - begin)
    bad = outwards(table[begin : begin + some], node, weights, changes, marks)
    if bad != SOUND:
        return -1 - begin - bad, 0, 0
    progress[0] = np.uint64(begin + some)
    if begin + some < samples:
        return UNFINISHED, 0, 0
    grains = np.empty(ids.size)
    hits, touched = _best((changes, marks, eights), np.float64(samples), numbers[0], ids, grains)
    if hits == 0:
        return 0, 0, touched
    times = np.empty((samples, hits), np.uint8)
    bad = meeting_times(table, node, ids[:hits], times)
    if bad != SOUND:
        return -1 - bad, 0, 0
    certain = tell(times, weights, worth, numbers, grains, out)
    return hits, certain, touched
