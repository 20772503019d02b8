"""The plan of one part of an index, and the interface of formats: the positions of its arrays.

Opening an index needs only this module of a layout. ``index/layouts/batch_maker.py`` has the
interface of builders, ``index/layouts/reader.py`` that of readers. A plan is checked when it is
created (``index/plan.py``), and builders and readers rely on that.

A sample is one blob of 32-bit words. The positions of its arrays follow from the number of nodes,
the settings, and one count per sample (its *members*). So a shard is a concatenation of blobs
without a table, and shards of any size contain the same bytes in the same order. Layouts without
samples are arrays, written as a whole.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.constants import Step, Words
from cocite.errors import Damaged, InputError, UsageError
from cocite.measures import HUBS, IN_SHARE, Component, Measure, PartSettings, WholeSettings
from cocite.options import DIRECTIONS, NO_LINKS
from cocite.storage import Entry, checksum, disk, map_array, staged_file

_LABEL = re.compile("[a-z0-9-]*")
_TURNS = {"in": 0, "out": 16, "both": 0, "any": 0}
_COMPONENT = 32
"""Offset of step numbers per component, which keeps the walks of components independent."""


def part_prefix(label: str, direction: str) -> str:
    """Return the prefix of a part's file names. Raises :class:`UsageError` for an invalid label or
    direction, which could lead outside the store.
    """
    if direction not in (*DIRECTIONS, NO_LINKS) or not _LABEL.fullmatch(label):
        raise UsageError(f"{label!r} and {direction!r} are no label and direction of a part")
    return f"{label}-{direction}." if label else f"{direction}."


WANTED = "wanted"
"""Name of the file with the ids of selected pages."""


@dataclass(frozen=True)
class PartRequest:
    """The selected pages whose samples an index stores.

    The file ``path``, with ``entry``, contains the graph id of each node of the index, ascending.
    Walks use the whole graph; only the data of the selected pages is stored, with new ids in the
    same order. So scores are bit-identical to those of an index of all pages. Source: Fogaras,
    Racz, *A scalable randomized method to compute link-based similarity rank on the web graph*,
    section 6 (an index "truncated to the ODP pages").
    """

    path: Path
    entry: Entry

    @classmethod
    def of(cls, folder: Path, ids: Words) -> PartRequest:
        """Describe the file of these ids in ``folder`` without writing it."""
        digest = xxhash.xxh3_128_hexdigest(np.ascontiguousarray(ids).view(np.uint8).data)
        return cls(folder / WANTED, Entry("<u4", (ids.size,), digest))

    @property
    def count(self) -> int:
        """Return the number of pages."""
        return self.entry.shape[0]

    def write(self, ids: Words) -> None:
        """Write the file if it is missing."""
        try:
            if checksum(self.path, self.entry) == self.entry.xxh3_128:
                return
        except Damaged:
            pass
        with staged_file(self.path) as file:
            disk.write(file, np.ascontiguousarray(ids).view(np.uint8).data)

    def check(self) -> None:
        """Verify the checksum of the file; raises :class:`Damaged`."""
        if checksum(self.path, self.entry) != self.entry.xxh3_128:
            raise Damaged(f"{self.path} does not match its checksum. Begin the build again")

    def ids(self) -> Words:
        """Map the ids in the graph, uint32[count]."""
        return map_array(self.path, self.entry)


@dataclass(frozen=True)
class PartPlan:
    """One part: a measure in one direction (``in``, ``out``, ``any``, or ``both`` if the measure
    uses both jointly), and its weight in the scores.

    ``label`` and ``number`` identify the component of a blend; ``fixed`` are query settings that
    users cannot choose; ``weighted`` enables link weights. Four fields are only for builds:
    ``wanted`` are the selected pages, None for all; ``texts`` are the texts to compare; ``old`` are
    rows that a local refresh keeps; ``joined`` are the parts whose rows a merge copies.
    """

    measure: Measure
    direction: str
    layout: str
    settings: PartSettings
    weight: float
    label: str = ""
    number: int = 0
    fixed: PartSettings = field(default_factory=PartSettings)
    weighted: bool = False
    wanted: PartRequest | None = None
    texts: Texts | None = None
    old: Callable[[], Any] | None = None
    joined: tuple[Any, ...] = ()

    def stored_nodes(self, nodes: int) -> int:
        """Return the number of pages to store, for a graph of this many nodes."""
        return nodes if self.wanted is None else self.wanted.count

    @property
    def prefix(self) -> str:
        """Return the prefix of its file names."""
        return part_prefix(self.label, self.direction)

    @property
    def turn(self) -> int:
        """Return the offset of step numbers for random draws."""
        return _TURNS[self.direction] + _COMPONENT * self.number

    @property
    def by_page(self) -> bool:
        """Return whether links from pages with many links have less weight."""
        return self.settings.get(HUBS, "plain") != "plain"

    def ask_settings(self, asked: WholeSettings) -> PartSettings:
        """Return the part's query settings, selected from those of the whole query."""
        return Component(self.measure, fixed=self.fixed).ask_settings(asked)

    @property
    def linearized(self) -> bool:
        """Return whether scores have a linearized form: SimRank with uniform steps."""
        return self.measure.name == "simrank" and not self.step.weighted

    @property
    def in_share(self) -> float:
        """Return the fraction of steps along the links themselves instead of ``back``."""
        return self.settings.get(IN_SHARE, 1.0)

    @property
    def step(self) -> Step:
        """Return the kind of step of the walks."""
        measure = self.measure
        step = measure.weighted_step if self.weighted or self.by_page else measure.step
        assert step is not None
        return step

    def to_json(self) -> dict[str, object]:
        """Return the plan in its manifest form."""
        value: dict[str, object] = {
            "measure": self.measure.name,
            "direction": self.direction,
            "layout": self.layout,
            "settings": self.settings.to_json(),
            "weight": self.weight,
            "weighted": self.weighted,
        }
        if self.label:
            value |= {"label": self.label, "number": self.number, "fixed": self.fixed.to_json()}
        return value


MEMBERS, DIGESTS, SHARD = "members", "digests", "samples-"
_NUMBER = re.compile("[0-9]{6,10}")
LINE = 16
"""Words per cache line; blobs are aligned to cache lines."""


class PartFormat(ABC):
    """Files of a part of an index."""

    files: ClassVar[dict[str, str]]
    """Files without the part's prefix, as in ``storage/FORMAT.md``, for n nodes and m links;
    excludes shards.
    """
    selects = False
    """Whether the layout can store only selected pages (``index/plan.py``)."""

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """Return the files of a part with this plan."""
        return cls.files


class SampledFormat(PartFormat):
    """Files of samples."""

    files: ClassVar[dict[str, str]] = {MEMBERS: "<u4[N]", DIGESTS: "<u8[N]"}
    """Files for N samples."""
    shard: ClassVar[str] = "<u4[words]"
    """Declaration of a shard; :meth:`place` returns its number of words."""
    node_bytes: ClassVar[int] = 0
    """Bytes per node and sample, in addition to shards."""
    carry_node: ClassVar[int] = 8
    """Bytes of memory per node to convert a sample, in addition to the result."""

    def carries(self, settings: PartSettings) -> bool:
        """Return whether samples can be converted to another graph (``index/refresh.py``)."""
        return False

    @abstractmethod
    def words(self, nodes: int, members: int, settings: PartSettings) -> int:
        """Return the number of 32-bit words of a blob."""

    @abstractmethod
    def row(self, base: int, nodes: int, members: int, settings: PartSettings) -> tuple[int, ...]:
        """Return the values that kernels need for a sample whose blob begins at word ``base``, such
        as the offsets of its arrays.
        """

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """Return the kernel rows of the samples in a shard, uint64[samples, values], and its size
        in words.
        """
        base, rows = 0, []
        for count in members:
            rows.append(self.row(base, nodes, count, settings))
            base += self.words(nodes, count, settings)
        return np.array(rows, np.uint64), base

    def finish(
        self, path: Path, nodes: int, samples: Iterable[tuple[Words, int]], memory: int
    ) -> dict[str, Entry]:
        """Write data derived from all ``samples`` (words, member count) to files whose names begin
        with ``path``; return their entries by name.
        """
        return {}

    @abstractmethod
    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the maximum size of a blob in words."""


class WholeFormat(PartFormat):
    """Files of a part without samples."""

    spreads: ClassVar[bool] = False
    """Whether cluster nodes can make chunks of the part."""

    @classmethod
    def sizes_of(cls, plan: PartPlan, nodes: int, graph_nodes: int) -> dict[str, int]:
        """Return the sizes used in :attr:`files`, other than n and m."""
        return {}


def is_shard(name: str) -> bool:
    """Return whether a file of an index contains samples."""
    return SHARD in name


def shard_file(first: int) -> str:
    """Return the name, without prefix, of the shard whose first sample is ``first``."""
    return f"{SHARD}{first:06d}"


def shard_number(name: str) -> int | None:
    """Return the number of a shard's first sample, from its name without prefix; None for other
    files.
    """
    number = name.removeprefix(SHARD)
    if not _NUMBER.fullmatch(number) or name != shard_file(int(number)):
        return None
    return int(number)


def padded(words: int) -> int:
    """Return words rounded up to whole cache lines."""
    return -(-words // LINE) * LINE


# -- texts -------------------------------------------------------------------------------


class TextFiles:
    """Texts in a folder, an archive or a table (``io/readers/tables.py``)."""

    def __init__(self, path: Path) -> None:
        """Raise :class:`InputError` if the path does not exist."""
        if not path.exists():
            raise InputError(
                f"{path} does not exist; texts must be a folder, a tar archive or a table"
            )
        self.path = path
        self.counted: Any = None
        """Counts of the words, set by the first build that counts them."""

    @property
    def digest(self) -> str:
        """Return a checksum of the names, sizes and times of the files."""
        files = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        found = xxhash.xxh3_128(str(self.path.resolve()).encode(errors="surrogateescape"))
        for file in files:
            facts = file.stat()
            told = f"{file.name}\n{facts.st_size}\n{facts.st_mtime_ns}\n"
            found.update(told.encode(errors="surrogateescape"))
        return found.hexdigest()


@dataclass(frozen=True)
class OldTexts:
    """Texts of an existing index, for its refresh. ``arrays`` returns an array by (part prefix,
    name); ``ids`` returns the new id of each old page, uint32[old nodes], NOWHERE if removed.
    """

    arrays: Callable[[str, str], NDArray[Any]]
    ids: Callable[[], Words]


Texts = TextFiles | OldTexts
