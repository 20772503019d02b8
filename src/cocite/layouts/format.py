"""The contract of formats: which files a part of an index has, and what lies where in them.

Whoever opens an index needs no more of a layout than this; what makes one is in ``blobs.py`` and
``whole.py``, what answers from one in ``reader.py``.

Layouts of samples are a stream of samples, each one blob of 32-bit words. Where everything lies
follows from the number of nodes, the settings, and one count a sample (its *members*), so a shard,
which is nothing but its samples' blobs one behind the other, needs no table of its own: shards of
any size hold the same bytes in the same order. All others are arrays, written in one go.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.plan import PartPlan
from cocite.measures import PartSettings

__all__ = [
    "DIGESTS",
    "LINE",
    "MEMBERS",
    "SHARD",
    "PartFormat",
    "SampledFormat",
    "WholeFormat",
    "is_shard",
    "padded",
    "shard_file",
    "shard_number",
]

MEMBERS, DIGESTS, SHARD = "members", "digests", "samples-"
_NUMBER = re.compile("[0-9]{6,10}")
LINE = 16
"""Words of a cache line: blobs begin on one."""


class PartFormat(ABC):
    """How a part of an index lies on disk."""

    files: ClassVar[dict[str, str]]
    """Its files behind the part's prefix, as ``FORMAT.md`` has them; of n nodes and m links, shards
    of samples left out.
    """

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """Those of its files that a part has."""
        return cls.files


class SampledFormat(PartFormat):
    """How samples lie on disk."""

    files: ClassVar[dict[str, str]] = {MEMBERS: "<u4[N]", DIGESTS: "<u8[N]"}
    """Of N samples."""
    shard: ClassVar[str] = "<u4[words]"
    """A shard; :meth:`place` says how many words those of some members are."""
    carries = False
    """Whether samples can be carried over to another graph (``index/refresh.py``)."""
    carry_node: ClassVar[int] = 8
    """Bytes a node that it takes to carry a sample over, beside what it becomes."""
    selects = False
    """Whether samples of some pages can be stored alone (``layouts/wanted.py``)."""

    @abstractmethod
    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, parts] for the kernels, where each array of each sample begins in a shard
        and what else they need; and how many words the shard has.
        """

    @abstractmethod
    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """The words of a blob at most."""


class WholeFormat(PartFormat):
    """How the arrays of a part that is made in one go lie on disk."""


def is_shard(name: str) -> bool:
    """Whether a file of an index holds samples."""
    return SHARD in name


def shard_file(first: int) -> str:
    """The file of the shard that begins with sample ``first``, behind its part's prefix."""
    return f"{SHARD}{first:06d}"


def shard_number(name: str) -> int | None:
    """The first sample of a shard by its name, without the part's prefix; None for another file."""
    number = name.removeprefix(SHARD)
    if not _NUMBER.fullmatch(number) or name != shard_file(int(number)):
        return None
    return int(number)


def padded(words: int) -> int:
    """Words rounded up to whole cache lines."""
    return -(-words // LINE) * LINE
