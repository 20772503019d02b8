"""The two ways from inputs to the files of a stored graph, which come to the same bytes.

Texts of integers go straight (``straight.py``). All else, and what that cannot take, goes through
tables (``tables.py``): readers load them, names are numbered and links sorted there, out of core.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cocite.graph.inputs import Inputs, threads_for
from cocite.graph.loading import check_some, facts_of, load_all
from cocite.graph.readers import Found, Job, ReadOptions
from cocite.graph.readers.options import Progress
from cocite.graph.readers.reader import Reported
from cocite.graph.readers.urls import IS_WEB
from cocite.graph.storing import How, store_links
from cocite.graph.straight import Straight, store_straight
from cocite.graph.titles.titling import Titling
from cocite.means import Means
from cocite.memory import database_memory
from cocite.store import Entry, disk

if TYPE_CHECKING:
    from cocite.graph.tables import Tables

__all__ = ["Wish", "store_inputs"]

_Stored = tuple[dict[str, Any], dict[str, Entry]]


class Wish(NamedTuple):
    """What is to be stored: the inputs, how they are read, and how their links become those of the
    graph; the columns of tables of titles, and titles that are in memory; names of pages that are
    left out, None if none are given; and what is called with links that lead nowhere.
    """

    inputs: Inputs
    options: ReadOptions
    how: How
    title_columns: tuple[str, ...]
    titles: Iterable[tuple[str, str]] | None
    excluded: tuple[str, ...] | None
    report: Reported

    @property
    def only_links(self) -> bool:
        """Whether links are all that is given."""
        given = self.inputs.nodes or self.inputs.titles
        return not given and self.titles is None and self.excluded is None


def store_inputs(directory: Path, wish: Wish, means: Means, progress: Progress) -> _Stored:
    """Write the graph's files into ``directory``; returns the facts of the manifest, and them."""
    disk.make_own_folder(work := directory / "work")
    stored = _straight(directory, wish, means, progress)
    if stored is None:
        return _by_tables(directory, work, wish, means, progress)
    return _with_rows(stored.facts, stored.found, stored.found), stored.files


def _straight(directory: Path, wish: Wish, means: Means, progress: Progress) -> Straight | None:
    if not wish.only_links:
        return None
    links = wish.inputs.links
    few = means.up_to(threads_for(links, means.threads))
    return store_straight(directory, links, wish.options, wish.how, few, progress)


def _by_tables(
    directory: Path, work: Path, wish: Wish, means: Means, progress: Progress
) -> _Stored:
    from cocite.graph.tables import Tables  # DuckDB: only those who need it wait for it

    inputs, options = wish.inputs, wish.options
    titling = Titling(
        inputs.titles, wish.title_columns, options, work, options.called, wish.titles or ()
    )
    threads = threads_for(inputs.all, means.threads)
    with Tables(
        work,
        inputs.all,
        database_memory(means.memory),
        threads,
        weighted=bool(options.weight),
    ) as tables:
        titling.read(tables, progress)
        job = partial(
            Job,
            scratch=work / "input",
            progress=progress,
            titles=titling.met,
            threads=means.threads,
            report=wish.report,
        )
        of_links = load_all(tables, job, inputs.links, 2, options)
        read = of_links + load_all(tables, job, inputs.nodes, 1, options.for_nodes())
        check_some(read)
        told = _renamed(tables, options, progress)
        if wish.excluded is not None:
            tables.leave_out(list(map(options.called, wish.excluded)))
        facts, files = store_links(directory, tables, wish.how, progress)
        of_titles, titles = titling.store(directory, tables)
    return _with_rows(facts, of_links, read) | told | of_titles, files | titles


def _with_rows(facts: dict[str, Any], of_links: list[Found], read: list[Found]) -> dict[str, Any]:
    """The facts with what was read."""
    bad = sum(sum(found.bad_rows.values()) for found in read)
    dropped = facts["dropped"] | {"bad_rows": bad}
    rows = sum(found.rows for found in of_links)
    return facts | {"dropped": dropped, "rows": rows, "sources": facts_of(read)}


def _renamed(tables: Tables, options: ReadOptions, progress: Progress) -> dict[str, Any]:
    """Write URLs in one way, if that is asked for; what the manifest says of it."""
    if not options.normalise_urls:
        return {}
    progress("normalising URLs", 0, 0)
    return {"normalised_urls": tables.rename(options.called, IS_WEB)}
