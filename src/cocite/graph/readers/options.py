"""How input is to be read: the options that all readers share, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cocite.errors import SKIP_ADVICE, UsageError
from cocite.graph.readers.urls import normaliser

__all__ = [
    "DELIMITERS",
    "PageOptions",
    "Progress",
    "ReadOptions",
    "bad_row_advice",
    "no_progress",
]

DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}

Progress = Callable[[str, int, int], None]
"""Called with (stage, done, total); total is 0 where it is not known."""


def no_progress(stage: str, done: int, total: int) -> None:
    """The callback of those who do not want to know."""


@dataclass(frozen=True)
class PageOptions:
    """How HTML pages are read. ``links``: all, or main, without navigation; ``tags``: which count,
    of a, area and frame; ``site``: the URL at which a folder is published, "" if that is to be
    found out; ``canonical``: whether a page that says it is a copy of another one is that one;
    ``external``: whether pages that are not in the folder are nodes, too; ``listed``: the file, a
    sitemap or a list of URLs, that names the pages to take, "" for all; ``fetch``: whether the
    pages of such a file are fetched, with a ``delay`` in seconds between two requests to a host.
    """

    links: str = "all"
    tags: tuple[str, ...] = ("a", "area", "frame")
    site: str = ""
    canonical: bool = True
    external: bool = False
    listed: str = ""
    fetch: bool = False
    delay: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.delay <= 3600:
            raise UsageError(f"delay is {self.delay}; it is 0 to 3600 seconds")
        if self.links not in ("all", "main"):
            raise UsageError(f"links is {self.links!r}; it is one of all, main")
        strange = [tag for tag in self.tags if tag not in ("a", "area", "frame")]
        if strange or not self.tags:
            found = repr(strange[0]) if strange else "empty"
            raise UsageError(f"link_tags is {found}; it is some of a, area, frame")
        if self.site and not self.site.startswith(("http://", "https://")):
            raise UsageError(
                f"site is {self.site!r}; it is the URL of the folder, such as "
                "https://www.example.org/docs/"
            )


@dataclass(frozen=True)
class ReadOptions:
    """``delimiter``: auto or a key of DELIMITERS; ``header``: auto, yes or no; ``columns``: the
    two columns that hold source and target, as names or numbers from 1; ``weight``: the column of
    the links' weights, "" for none; ``comment``: the character that begins a comment line, "" for
    none; ``skip_bad_rows``: whether to leave bad rows out, if they are at most half of an input, or
    ``"all"``, however many they are; ``format``: auto, or what the reader is called
    (``recognise.py``); ``undirected``: whether every link is stored both ways afterwards, so that
    a link without direction need not be given both ways; ``pages``: how HTML is read;
    ``sheet``: that of a spreadsheet, "" for the only one with rows; ``sides``: what the two kinds
    of nodes of a bipartite table are called.
    """

    delimiter: str = "auto"
    header: str = "auto"
    columns: tuple[str, ...] = ()
    comment: str = "#"
    skip_bad_rows: bool | str = False
    weight: str = ""
    format: str = "auto"
    undirected: bool = False
    pages: PageOptions = PageOptions()
    namespaces: tuple[int, ...] = (0,)
    normalise_urls: bool = False
    sheet: str = ""
    sides: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.delimiter not in ("auto", *DELIMITERS):
            raise UsageError(
                f"delimiter {self.delimiter!r} is not known; it is one of auto, "
                + ", ".join(DELIMITERS)
            )
        if self.header not in ("auto", "yes", "no"):
            raise UsageError(f"header is {self.header!r}; it is one of auto, yes, no")
        if self.skip_bad_rows not in (False, True, "all"):
            raise UsageError(f"skip_bad_rows is {self.skip_bad_rows!r}; it is True, False or 'all'")
        if len(self.comment) > 1 or not self.comment.isascii():
            raise UsageError(f"comment is {self.comment!r}; it is one ASCII character, or empty")
        if self.header == "no" and not all(map(str.isdecimal, self.columns_named)):
            raise UsageError(
                f"columns {','.join(self.columns_named)} are titles, but header is no; "
                "number them from 1"
            )
        if not self.namespaces or min(self.namespaces) < 0:
            raise UsageError("namespaces are numbers from 0 on, such as 0,14: at least one")
        if len(set(self.columns_named)) != len(self.columns_named):
            raise UsageError(f"columns {','.join(self.columns_named)} names one column twice")

    @property
    def called(self) -> Callable[[str], str]:
        """What a node of this name is called."""
        return normaliser() if self.normalise_urls else str

    @property
    def columns_named(self) -> tuple[str, ...]:
        """All columns that are asked for by title or number."""
        return (*self.columns, self.weight) if self.weight else self.columns

    def for_nodes(self) -> ReadOptions:
        """The same for a file of nodes, whose first column is the name."""
        return ReadOptions(self.delimiter, "auto", (), self.comment, self.skip_bad_rows)


def bad_row_advice(bad: int, rows: int) -> str:
    """What to do about the first bad row, where ``bad`` of ``rows`` were found so far: leaving them
    out is advised only where they are few.
    """
    if bad * 2 <= rows and bad <= 1 + rows // 10:
        return SKIP_ADVICE
    return (
        f"So are {bad:,} of the first {rows:,} rows: this may be no list of links, or one that is "
        "to be read in another way. See --delimiter, --columns and --header in cocite ingest --help"
        if bad > 1
        else "A list of links has a row a link: the source, then the target. See cocite ingest "
        "--help"
    )
