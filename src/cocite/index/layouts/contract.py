"""Part plans, and the interface of file formats.

Builders (``index/layouts/batch_maker.py``) and readers (``index/layouts/reader.py``) rely on plans
that are already checked (``index/plan.py``).

A sample is one blob of 32-bit words. The node count, the settings, and one count per sample (the
*members*) determine the positions of the blob's arrays. So a shard is a concatenation of blobs
without a table, and shards of any size contain the same bytes in the same order. Layouts without
samples consist of arrays that are written as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.constants import Step, Words
from cocite.errors import Damaged, InputError, UsageError
from cocite.measures import HUBS, IN_SHARE, Component, Measure, PartSettings, WholeSettings
from cocite.options import DIRECTIONS, NO_LINKS
from cocite.storage import Entry, checksum, map_array

_LABEL = re.compile("[a-z0-9-]*")
_TURNS = {"in": 0, "out": 16, "both": 0, "any": 0}
_COMPONENT = 32
"""Step number offset per component, which keeps the components' walks independent."""


def part_prefix(label: str, direction: str) -> str:
    """Return the prefix of a part's file names. Raises :class:`UsageError` for an invalid label or
    direction, which could make file paths leave the store.
    """
    if not _LABEL.fullmatch(label):
        raise UsageError(f"part label is {label!r}; it must contain only a-z, 0-9 and hyphens")
    if direction not in (*DIRECTIONS, NO_LINKS):
        allowed = ", ".join((*DIRECTIONS, NO_LINKS))
        raise UsageError(f"direction is {direction!r}; it must be one of {allowed}")
    return f"{label}-{direction}." if label else f"{direction}."


WANTED = "wanted"
"""Name of the file with the ids of selected pages."""


@dataclass(frozen=True)
class PartRequest:
    """The selected pages whose data an index stores.

    The file ``path`` contains their node ids in the graph, ascending. Walks use the whole graph, so
    scores are bit-identical to those of an index of all pages. Source: Fogaras, Racz, *A scalable
    randomized method to compute link-based similarity rank on the web graph*, section 6 (an index
    "truncated to the ODP pages").
    """

    path: Path
    entry: Entry

    @classmethod
    def of(cls, folder: Path, ids: Words) -> PartRequest:
        """Return the request for these ids, without writing the file in ``folder``."""
        digest = xxhash.xxh3_128_hexdigest(np.ascontiguousarray(ids).view(np.uint8).data)
        return cls(folder / WANTED, Entry("<u4", (ids.size,), digest))

    @property
    def count(self) -> int:
        """Return the number of pages."""
        return self.entry.shape[0]

    def write(self, ids: Words) -> None:
        """Write the file unless an intact one exists."""
        try:
            if checksum(self.path, self.entry) == self.entry.xxh3_128:
                return
        except Damaged:
            pass
        from cocite.storage import disk, staged_file

        with staged_file(self.path) as file:
            disk.write(file, np.ascontiguousarray(ids).view(np.uint8).data)

    def check(self) -> None:
        """Verify the file's checksum; raises :class:`Damaged`."""
        if checksum(self.path, self.entry) != self.entry.xxh3_128:
            raise Damaged(f"{self.path} does not match its checksum. Restart the build")

    def ids(self) -> Words:
        """Map the pages' node ids in the graph, uint32[count]."""
        return map_array(self.path, self.entry)


@dataclass(frozen=True)
class PartPlan:
    """One part: a measure in one direction (``in``, ``out``, ``any``, or ``both`` if the measure
    uses both jointly), and the part's weight in scores.

    ``label`` and ``number`` identify a blend's component; ``fixed`` contains query settings that
    users cannot choose; ``weighted`` enables link weights. Four fields are only for builds:
    ``wanted`` contains the selected pages, or None for all; ``texts``, the texts to compare;
    ``old``, the rows that a local refresh retains; ``joined``, the parts whose rows a merge copies.
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
        """Return the number of pages to store for a graph with ``nodes`` nodes."""
        return nodes if self.wanted is None else self.wanted.count

    @property
    def prefix(self) -> str:
        """Return the prefix of the part's file names."""
        return part_prefix(self.label, self.direction)

    @property
    def turn(self) -> int:
        """Return the step number offset for random draws."""
        return _TURNS[self.direction] + _COMPONENT * self.number

    @property
    def by_page(self) -> bool:
        """Return whether links of pages with many links have less weight."""
        return self.settings.get(HUBS, "plain") != "plain"

    def ask_settings(self, asked: WholeSettings) -> PartSettings:
        """Select the part's query settings from those of the whole query."""
        return Component(self.measure, fixed=self.fixed).ask_settings(asked)

    @property
    def linearized(self) -> bool:
        """Return whether scores have a linearized form, as for SimRank with uniform steps."""
        return self.measure.name == "simrank" and not self.step.weighted

    @property
    def in_share(self) -> float:
        """Return the fraction of steps along the links; others are along ``back``."""
        return self.settings.get(IN_SHARE, 1.0)

    @property
    def step(self) -> Step:
        """Return the kind of step of the walks."""
        measure = self.measure
        step = measure.weighted_step if self.weighted or self.by_page else measure.step
        assert step is not None
        return step

    def to_json(self) -> dict[str, object]:
        """Return the plan as stored in the manifest."""
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


@dataclass(frozen=True, kw_only=True)
class PartFormat:
    """The files of a part: ``files`` maps file names (without prefix) to array declarations, as in
    ``storage/FORMAT.md``, for n nodes and m links. Shards are excluded. ``selects`` says whether
    the layout can store only selected pages (``index/plan.py``).
    """

    files: Mapping[str, str]
    selects: bool = False


SAMPLES_FILES = {MEMBERS: "<u4[N]", DIGESTS: "<u8[N]"}
SHARD_FORM = "<u4[words]"
"""Declaration of a shard; :meth:`SampledFormat.place` returns the word count."""
Samples = Iterable[tuple[Words, int]]
"""(Words, member count) of each sample."""


@dataclass(frozen=True, kw_only=True)
class SampledFormat(PartFormat):
    """The files of a part with N samples, in addition to :data:`SHARD_FORM`.

    ``size(nodes, members, settings)`` is the size of a blob in 32-bit words. ``row(base, nodes,
    members, settings)`` are the values, such as array offsets, that kernels need for a sample whose
    blob begins at word ``base``. ``carries`` says whether samples can be converted to another graph
    (``index/refresh.py``), which needs ``carry_node`` bytes of memory per node in addition to the
    result. ``finish(path, nodes, samples, memory)`` writes data derived from all samples,
    ``node_bytes`` bytes per node per sample, to files with the path prefix ``path``; it returns
    their entries by name.
    """

    files: Mapping[str, str] = field(default_factory=SAMPLES_FILES.copy)
    size: Callable[[int, int, PartSettings], int]
    row: Callable[[int, int, int, PartSettings], tuple[int, ...]]
    most_members: Callable[[int, PartSettings], int] = lambda nodes, settings: nodes
    carries: Callable[[PartSettings], bool] = lambda settings: False
    carry_node: int = 8
    node_bytes: int = 0
    finish: Callable[[Path, int, Samples, int], dict[str, Entry]] = lambda *arguments: {}

    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """Return a shard's kernel rows, uint64[samples, values], and its size in words."""
        base, rows = 0, []
        for count in members:
            rows.append(self.row(base, nodes, count, settings))
            base += self.size(nodes, count, settings)
        return np.array(rows, np.uint64), base

    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """Return the maximum size of a blob in words."""
        return self.size(nodes, self.most_members(nodes, settings), settings)


@dataclass(frozen=True, kw_only=True)
class WholeFormat(PartFormat):
    """The files of a part without samples.

    ``has(plan, name)`` says whether a part has a file. ``sizes(plan, nodes, graph nodes)`` are the
    sizes that occur in ``files``, in addition to n and m.
    """

    has: Callable[[PartPlan, str], bool] = lambda plan, name: True
    sizes: Callable[[PartPlan, int, int], dict[str, int]] = lambda *arguments: {}

    def files_of(self, plan: PartPlan) -> dict[str, str]:
        """Return the declarations for a part with this plan."""
        return {name: form for name, form in self.files.items() if self.has(plan, name)}


def is_shard(name: str) -> bool:
    """Return whether a file of an index contains samples."""
    return SHARD in name


def shard_file(first: int) -> str:
    """Return the name, without prefix, of the shard that begins with sample ``first``."""
    return f"{SHARD}{first:06d}"


def shard_number(name: str) -> int | None:
    """Return the first sample number in a shard's name (without prefix); None for other names."""
    number = name.removeprefix(SHARD)
    if not _NUMBER.fullmatch(number) or name != shard_file(int(number)):
        return None
    return int(number)


def padded(words: int) -> int:
    """Round ``words`` up to whole cache lines."""
    return -(-words // LINE) * LINE


# -- texts -------------------------------------------------------------------------------


class TextFiles:
    """Texts in a folder, an archive, or a table (``io/readers/tables.py``)."""

    def __init__(self, path: Path) -> None:
        """Raise :class:`InputError` if the path does not exist."""
        if not path.exists():
            raise InputError(
                f"{path} does not exist; texts must be a folder, a tar archive or a table"
            )
        self.path = path
        self.counted: Any = None
        """Word counts, None until a build has counted them."""

    @property
    def digest(self) -> str:
        """Return a checksum of the files' names, sizes, and modification times."""
        files = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        found = xxhash.xxh3_128(str(self.path.resolve()).encode(errors="surrogateescape"))
        for file in files:
            facts = file.stat()
            line = f"{file.name}\n{facts.st_size}\n{facts.st_mtime_ns}\n"
            found.update(line.encode(errors="surrogateescape"))
        return found.hexdigest()


@dataclass(frozen=True)
class OldTexts:
    """The texts in an index that is refreshed. ``arrays(prefix, name)`` returns a part's array;
    ``ids`` returns uint32[old nodes], each old page's new id, or NOWHERE if the page was removed.
    """

    arrays: Callable[[str, str], NDArray[Any]]
    ids: Callable[[], Words]


Texts = TextFiles | OldTexts
