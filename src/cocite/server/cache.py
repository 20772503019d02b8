"""The cache of answers: equal queries get equal bytes.

The key of an answer has all that determines it: the query, the encoding, the generation of the
index and the number of samples. So answers are never stale. Answers of up to 64 kB each, from all
samples, without posted links or remote shards, are cached, up to 32 MB in each process; the least
recently used are evicted. A cached answer needs no thread, no measure and no encoding.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

MOST_BYTES = 32 << 20
"""Maximum bytes of all cached answers of a process."""
_LARGEST = 64 << 10
_BESIDE = 400
"""Approximate bytes of an answer besides its body and its query."""


class AnswerKey(NamedTuple):
    """Identifies an answer."""

    operation: str
    name: str
    generation: str
    samples: int | None
    query: bytes
    coding: str | None


Packed = tuple[bytes, str | None, bool]
"""A body, its encoding, and whether it is a list with a next page."""


class AnswerCache:
    """The cached answers of a process; for its event loop only."""

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
        """Store an answer, unless it is large."""
        size = _size(key, answer)
        if size > min(_LARGEST, self.most) or key in self._answers:
            return
        self._answers[key] = answer
        self.size += size
        while self.size > self.most:
            self.size -= _size(*self._answers.popitem(last=False))


def _size(key: AnswerKey, answer: Packed) -> int:
    return len(answer[0]) + len(key.query) + _BESIDE
