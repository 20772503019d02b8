"""What a reader of links must be able to do: load an input of its kind (``recognise.py``).

A reader turns one input into a *relation*, a query that DuckDB can run, with the columns

    a, b    source and destination of a link, or a alone for an input that names nodes
    w       the weight as DOUBLE, if weights are asked for

where every name is clean: not empty, in UTF-8, without control characters, at most 65,535 bytes;
integers (UBIGINT) if all names are canonical integers below 2**64, else text. Rows that are not
clean are refused or, where they are to be skipped, counted by their kind. A format that has no
faster way hands its rows to ``clean_rows`` (``rows.py``), which does all of that.

A format that says which nodes there are gives them by a second relation, so that those without
links are nodes, too. Tables that a reader needs on the way it makes in the schema ``reading`` of
the database: all that is in there is dropped when the input is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from cocite.graph.readers.options import Progress, ReadOptions
from cocite.graph.readers.sources import Source
from cocite.graph.readers.title_file import TitleFile

if TYPE_CHECKING:
    import duckdb

__all__ = ["Found", "Job", "LinkReader", "Read", "ReadMany", "ReadsMany", "Reported", "no_report"]

Reported = Callable[[str, str, str, str], None]
"""Called with (page, what is wrong, what was written there, where that leads)."""


def no_report(page: str, what: str, written: str, url: str) -> None:
    """For those who do not want to know."""


@dataclass(frozen=True)
class Job:
    """One input to read: ``wanted`` is 2 for links and 1 for names of nodes.

    ``scratch`` is a directory for files that the relation needs; ``database`` is the one that will
    run it. It may read those files and the inputs, and nothing else. ``inputs`` are all that are
    read for links, of those that belong together. ``titles`` takes the titles of pages, from a
    reader that meets some: ``job.titles.add(name, title)``; ``threads`` are those a reader may use,
    and ``report`` takes links that lead nowhere.
    """

    source: Source
    wanted: int
    options: ReadOptions
    scratch: Path
    database: duckdb.DuckDBPyConnection
    progress: Progress
    inputs: tuple[Source, ...] = ()
    titles: TitleFile = field(default_factory=TitleFile)
    threads: int = 1
    report: Reported = no_report


class Found(Protocol):
    """How an input was read and what was in it: a dataclass, which goes into the manifest."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def file(self) -> str:
        """What messages call the input."""

    @property
    def rows(self) -> int:
        """Rows that the relation has."""

    @property
    def bad_rows(self) -> dict[str, int]:
        """Rows left out, by what is wrong with them."""

    @property
    def examples(self) -> list[str]:
        """The first of them."""

    @property
    def integers(self) -> bool:
        """Whether all names are integers."""

    def describe(self) -> str:
        """One line for people, which begins with ``file``."""


class Read(NamedTuple):
    """What a reader makes of an input: the relation ``rows``, of links or of names, what was found,
    and the relation of the ``nodes`` (column a) of an input of links that says which there are.
    """

    rows: str
    found: Found
    nodes: str = ""


class ReadMany(NamedTuple):
    """What a reader makes of several inputs: one relation of all of their rows, which they are, and
    what was found in each.
    """

    rows: str
    sources: list[Source]
    found: list[Found]


class LinkReader(Protocol):
    """A kind of input. ``title`` is its name in messages, ``described`` in help. One that has a
    true ``together`` reads all inputs of its kind in one go: they are the ``inputs`` of its job.
    One that ``restricts`` takes the pages that are listed only, and one that ``fetches`` may do so.
    """

    title: str
    described: str
    streams: bool
    """Whether it reads a pipe, which can be read once and from the front only."""

    def read(self, job: Job) -> Read:
        """The relations, and what was found.

        Raises :class:`~cocite.errors.MalformedRow` at the first bad row unless they are to be
        skipped, :class:`~cocite.errors.InputError` for an input that cannot be read at all, and
        :class:`~cocite.errors.UsageError` for options that do not go with it.
        """


class ReadsMany(LinkReader, Protocol):
    """A reader that takes many files at once, so that each by itself costs little."""

    def read_many(self, job: Job, sources: Sequence[Source]) -> Iterator[ReadMany]:
        """What is found in ``sources``, some of them at a time: what was given before is loaded
        when the next is asked for. ``job.source`` is the first of them. Raises as ``read`` does, of
        the file that is at fault.
        """
