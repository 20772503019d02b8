"""One way from sources to a stored graph: files, queries and links in memory take it alike.

    sources -> Batch of rows and a report -> Tables -> number -> sort -> graph files

Texts of integers that fit in memory take a faster path (``io/integers.py``), which comes to the
same bytes. All else, and what that cannot take, goes through tables (``io/tables.py``): readers
load them, names are numbered and links sorted there, out of core.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cocite.errors import ResourceError, UsageError
from cocite.graph.excluded import checked_names
from cocite.graph.name_files import NodeLabels
from cocite.graph.sides import checked_sides, refuse_undirected
from cocite.io.database import literal
from cocite.io.integers import store_integers
from cocite.io.objects import ObjectInput, sources_of
from cocite.io.pipeline import (
    Inputs,
    check_some,
    facts_of,
    load_all,
    size_of,
    split,
    threads_for,
)
from cocite.io.readers import Found, Job, ReadOptions
from cocite.io.readers.contract import IS_WEB, Progress, Reported, no_progress
from cocite.io.readers.html.reader import report_to
from cocite.io.storing import store_links
from cocite.io.titling import Titling, split_titles
from cocite.resources import OWN_MEMORY, Resources, database_memory, format_size
from cocite.storage import Entry, Manifest, Staging, Store, disk
from cocite.storage.spool import Temporary

_Stored = tuple[dict[str, Any], dict[str, Entry]]
Place = tuple[str | os.PathLike[str] | None, bool]
"""The directory to make, None for a temporary one; and whether a store there is replaced."""


class StoreRequest(NamedTuple):
    """What is to be stored: the inputs, and how they are read and stored; the columns of tables of
    titles, and titles that are in memory; names of pages that are left out, None if none are given;
    what the names were, of links in memory.
    """

    inputs: Inputs
    options: ReadOptions
    title_columns: tuple[str, ...]
    titles: Iterable[tuple[str, str]] | None
    excluded: tuple[str, ...] | None
    labels: NodeLabels | None = None

    @classmethod
    def checked(
        cls,
        inputs: tuple[Any, Any],
        options: ReadOptions,
        excluded: tuple[str, ...] | None,
        *,
        titles: Any,
        title_columns: str | Iterable[str | int],
        memory: int,
        labels: NodeLabels | None = None,
    ) -> StoreRequest:
        """See that there are readers for the ``inputs``, of links and of nodes, and for titles."""
        _check_memory(memory)
        columns = split(title_columns)
        files, pairs = split_titles(titles, columns)
        found = Inputs.checked(*inputs, files, options, memory - OWN_MEMORY)
        columns = () if pairs is not None else Titling.checked(found.titles, columns, options)
        return cls(found, options, columns, pairs, excluded, labels)

    @property
    def only_links(self) -> bool:
        """Whether links are all that is given."""
        given = self.inputs.nodes or self.inputs.titles
        return not given and self.titles is None and self.excluded is None


def _store_inputs(
    directory: Path,
    request: StoreRequest,
    resources: Resources,
    report: Reported,
    progress: Progress,
) -> _Stored:
    """Write the graph's files into ``directory``; returns the facts of the manifest, and them.
    ``report`` is called with links that lead nowhere.
    """
    disk.make_own_folder(work := directory / "work")
    links, options = request.inputs.links, request.options
    if request.only_links:
        few = resources.up_to(threads_for(links, resources.threads))
        stored = store_integers(directory, links, options, few, progress)
        if stored is not None:
            return _with_rows(stored.facts, stored.found, stored.found), stored.files
    from cocite.io.tables import Tables  # DuckDB: only those who need it wait for it

    inputs = request.inputs
    titling = Titling(
        inputs.titles, request.title_columns, options, work, options.called, request.titles or ()
    )
    threads, spare = threads_for(inputs.all, resources.threads), database_memory(resources.memory)
    with Tables(work, inputs.all, spare, threads, weighted=bool(options.weight)) as tables:
        titling.read(tables, progress)
        job = partial(
            Job,
            scratch=work / "input",
            progress=progress,
            titles=titling.met,
            threads=resources.threads,
            memory=resources.memory,
            report=report,
        )
        of_links = load_all(tables, job, links, 2, options)
        read = of_links + load_all(tables, job, inputs.nodes, 1, options.for_nodes())
        check_some(read)
        merged = tables.trim()
        more = {"merged_names": merged} if merged else {}
        if options.normalize_urls:
            progress("normalizing URLs", 0, 0)
            which = f"regexp_matches(name, {literal(IS_WEB)})"
            more["normalized_urls"] = tables.rename(options.called, which).names
        if request.excluded is not None:
            tables.leave_out(list(map(options.called, request.excluded)))
        facts, files = store_links(directory, tables, options, progress)
        of_titles, titles = titling.store(directory, tables)
    return _with_rows(facts, of_links, read) | more | of_titles, files | titles


def _with_rows(facts: dict[str, Any], of_links: list[Found], read: list[Found]) -> dict[str, Any]:
    """The facts with what was read."""
    dropped = facts["dropped"] | {"bad_rows": sum(found.bad for found in read)}
    rows = sum(found.rows for found in of_links)
    return facts | {"dropped": dropped, "rows": rows, "sources": facts_of(read)}


def store(
    request: StoreRequest,
    place: Place,
    resources: Resources,
    progress: Progress,
    report: str = "",
) -> Store:
    """Store what is asked for; ``report`` is a file for the links that lead nowhere.

    Raises what :func:`cocite.ingest` raises.
    """
    output, overwrite = place
    read = request.inputs
    home, path = place_for(output, size_of(read.links + read.nodes), resources.memory)
    with (
        Staging(path, "graph", overwrite=overwrite) as draft,
        report_to(report, overwrite) as reported,
    ):
        facts, files = _store_inputs(draft.path, request, resources, reported, progress)
        draft.publish(Manifest("graph", facts, files))
    return replace(Store.open(path, "graph"), home=home, labels=request.labels)


def store_object(
    given: ObjectInput,
    output: str | os.PathLike[str] | None = None,
    *,
    exclude: Iterable[object] | None = None,
    titles: Any = None,
    title_columns: str | Iterable[str | int] = (),
    bipartite: bool = False,
    sides: Any = None,
    memory: str | int | None = None,
    threads: int | None = None,
    resources: Resources | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
    **read: Any,
) -> Store:
    """Store links in memory. The arguments are those of :func:`cocite.ingest`; ``read`` are
    ``undirected``, ``keep_self_loops``, ``count_duplicates`` and ``skip_bad_rows``.
    """
    resources = resources or Resources.checked(threads, memory)
    two = sides if isinstance(sides, tuple) else checked_sides(bipartite, sides)
    options = ReadOptions(**read, weight="w" if given.weighted else "", sides=two)
    if two is not None and given.undirected:
        raise refuse_undirected(given.what)
    if given.weighted and options.count_duplicates:
        raise UsageError(
            f"{given.what} has weights, and count_duplicates makes some: leave one of the two out"
        )
    request = StoreRequest.checked(
        sources_of(given),
        replace(options, undirected=options.undirected or given.undirected),
        checked_names(exclude),
        titles=titles,
        title_columns=title_columns,
        memory=resources.memory,
        labels=given.labels,
    )
    return store(request, (output, overwrite), resources, progress)


def place_for(
    output: str | os.PathLike[str] | None, nbytes: int | None, memory: int
) -> tuple[Temporary | None, Path]:
    """Return where the graph goes: as named, or into a directory that goes with it."""
    if output is not None:
        return None, Path(os.fspath(output))
    home = Temporary(nbytes, memory)
    return home, home.path / "graph"


def _check_memory(memory: int) -> None:
    least = format_size(2 * OWN_MEMORY)
    if memory < 2 * OWN_MEMORY:
        found = format_size(memory)
        raise ResourceError(
            f"ingest needs at least {least}; found {found}. Give more with --memory"
        )
