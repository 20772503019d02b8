"""The answer cache of a process.

A key contains everything that determines an answer: the query, the encoding, the index's generation
and the number of samples. Cached answers are therefore never stale. The cache keeps answers of up
to 64 kB that use all samples, without posted links or remote shards. Beyond 32 MB in total, the
least recently used are evicted.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

MOST_BYTES = 32 << 20
"""Maximum bytes of cached answers in a process."""
_LARGEST = 64 << 10
_BESIDE = 400
"""Approximate overhead of an entry in bytes, besides body and query."""


class AnswerKey(NamedTuple):
    """The key of an answer."""

    operation: str
    name: str
    generation: str
    samples: int | None
    query: bytes
    coding: str | None


Packed = tuple[bytes, str | None, bool]
"""A body, its encoding, and whether it is a list with a next page."""


class AnswerCache:
    """The cached answers of a process. Only the event loop may use it."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most, self.size = most, 0
        self._answers: OrderedDict[AnswerKey, Packed] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: AnswerKey) -> Packed | None:
        """Return a cached answer, or None."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def add(self, key: AnswerKey, answer: Packed) -> None:
        """Store an answer, unless it is too large."""
        size = _size(key, answer)
        if size > min(_LARGEST, self.most) or key in self._answers:
            return
        self._answers[key] = answer
        self.size += size
        while self.size > self.most:
            self.size -= _size(*self._answers.popitem(last=False))


def _size(key: AnswerKey, answer: Packed) -> int:
    return len(answer[0]) + len(key.query) + _BESIDE
