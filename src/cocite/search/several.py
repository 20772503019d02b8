"""Several nodes, each asked for itself, on all cores.

An answer is that of a single question, to the bit: questions share no state but what is read, and
kernels release the interpreter's lock. The first is answered before the others begin, as what all
need is made with it. If a question finds a shard of samples to be damaged, all are asked again
without it, so that all answers are of the same samples.

Memory: what a question takes, times the threads; and the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from cocite.cluster import in_order
from cocite.errors import UsageError
from cocite.resources import checked_threads
from cocite.search.hits import HitLists, Hits
from cocite.search.stages import Opened


def related_many(
    index: Opened,
    nodes: Iterable[object],
    ask: Callable[[Any, Any], Hits],
    threads: int | None = None,
) -> HitLists:
    """What :meth:`Index.related_many` gives; ``ask(index, node)`` is a single question."""
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        raise UsageError(f"nodes is {nodes!r}; give a list of names")
    asked = list(nodes)
    count = index.means.threads if threads is None else checked_threads(threads)
    for node in asked:
        index._ids_of(node)  # whoever is unknown is, before anything is computed
    while True:
        now = index.now
        question = partial(ask, now)
        found = [question(node) for node in asked[:1]]
        rest = asked[1:]
        found += in_order([question] * max(1, min(count, len(rest))), rest)
        if now.now is now:
            return HitLists(asked, found)
