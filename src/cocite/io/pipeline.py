"""Store links from files, queries or memory as a graph.

    sources -> RowBatch of rows and a report -> Tables -> number -> sort -> graph files

If integer links from text fit in memory, they take a faster path (``io/integers.py``), which writes
the same bytes. All other input goes through DuckDB (``io/tables.py``).

A reader with ``read_many`` reads all inputs of its format together, so thousands of small files
cost about as much as one large file. Ids depend on names only; reports follow the order of inputs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cocite.errors import InputError, ResourceError, UnrecognizedInput, UsageError
from cocite.graph.sides import refuse_undirected
from cocite.io.database import database_named, literal
from cocite.io.integers import store_integers
from cocite.io.objects import ObjectInput, sources_of
from cocite.io.readers import FormatReader, Found, Job, ReadOptions, Source, expand, reader_of
from cocite.io.readers.contract import IS_WEB, PagesFound, Progress, Reported, RowBatch, split
from cocite.io.readers.crawl.captures import report_to
from cocite.io.readers.sql import SqlSource
from cocite.io.readers.text import TextInput
from cocite.io.storing import store_links
from cocite.io.titling import Titling
from cocite.options.ingest import IngestOptions
from cocite.resources import (
    LEAST_INGEST,
    READERS_MEMORY,
    Resources,
    database_memory,
    format_least,
    short_of,
)
from cocite.storage import Entry, Manifest, Store, disk
from cocite.storage.spool import Temporary
from cocite.storage.staging import Staging

if TYPE_CHECKING:
    from cocite.io.tables import Tables


_EACH = 100
"""Maximum number of inputs to report separately."""
_EXAMPLES = 5
_COUNTS = ("rows", "comments", "blank_lines", "pages", "copies", "redirects", "nodes")
_THREAD_BYTES = 1 << 18
"""Input bytes, compressed or not, that justify one more DuckDB thread."""


def only_path(inputs: Any) -> str | None:
    """Return the path that is the only input, or None."""
    if isinstance(inputs, list | tuple) and len(inputs) == 1:
        inputs = inputs[0]
    path = os.fspath(inputs) if isinstance(inputs, str | os.PathLike) else None
    return path if isinstance(path, str) else None


def database_in(inputs: Any) -> str | None:
    """Return the database that is the only input, or None."""
    path = only_path(inputs)
    if path is None or os.path.isdir(path) or database_named(path) is None:
        return None
    return path


class StoreRequest(NamedTuple):
    """Checked input of a run: sources of links and of node names, titles, read options."""

    links: list[Source]
    nodes: list[Source]
    titling: Titling
    options: ReadOptions

    @classmethod
    def of(cls, links: Any, options: IngestOptions, memory: int) -> StoreRequest:
        """Check the inputs, and return the request; ``memory`` is the limit in bytes."""
        read = ReadOptions.checked(options)
        named, nodes = links, options.nodes
        if isinstance(links, ObjectInput):
            read = _of_object(links, read)
            named, nodes = sources_of(links)
        if memory < LEAST_INGEST:
            raise ResourceError(
                f"ingest needs {format_least(LEAST_INGEST)} of memory; {short_of(memory)}"
            )
        columns = split(options.title_columns)
        titling = Titling(options.titles, columns, read, memory - READERS_MEMORY)
        found = cls(_sources(named), _sources(nodes), titling, read)
        if sum(source.is_stdin for source in found.sources) > 1:
            raise UsageError(
                "standard input (-) is given twice, for links and for nodes or "
                "titles: pass one of the two as a file"
            )
        # A pipe may still be empty, so its reader is unknown.
        taken = {*_OF_SOME} if any(source.is_pipe for source in found.links) else set[str]()
        for sources, wanted in ((found.links, 2), (found.nodes, 1)):
            for source in sources:
                if not source.is_pipe:
                    reader = reader_of(source, read, wanted)
                    taken |= {*reader.takes} if wanted == 2 else set()
                    source.evict()
        for option, what in _OF_SOME.items():
            if getattr(read, option) and option not in taken:
                raise UsageError(f"{what}: omit --{option}")
        return found

    @property
    def sources(self) -> list[Source]:
        """Return the sources of links, node names and titles."""
        return self.links + self.nodes + self.titling.sources


def _of_object(given: ObjectInput, read: ReadOptions) -> ReadOptions:
    """Return read options for links in memory, whose columns are already selected."""
    if read.sides is not None and given.undirected:
        raise refuse_undirected(given.what)
    if given.weighted and read.count_duplicates:
        raise UsageError(f"{given.what} already has weights: omit count_duplicates")
    both, weight = read.undirected or given.undirected, "w" if given.weighted else None
    return replace(read, columns=(), weight_column=weight, undirected=both)


_OF_SOME = {
    "pages": "--pages (pages=...) applies only to folders of HTML pages and web archives",
    "predicate": "--predicate (predicate=...) applies only to RDF",
    "fetch": "--fetch (fetch=True) applies only to sitemaps and lists of URLs",
}
"""Options that only some readers accept."""


def _sources(named: Any) -> list[Source]:
    if isinstance(named, SqlSource):
        return [named]
    if isinstance(named, list) and named and all(isinstance(each, Source) for each in named):
        return named
    return [] if named is None else expand(named)


def size_of(sources: list[Source]) -> int | None:
    """Return an upper bound on the stored size of the inputs, in bytes; None if unknown."""
    each = [source.most_stored for source in sources]
    return None if None in each else sum(filter(None, each))


def threads_for(sources: list[Source], most: int) -> int:
    """Return the number of threads that the input can use; DuckDB would start all ``most``."""
    if any(s.path is None or s.is_pipe or s.is_directory for s in sources):
        return most
    return min(most, 1 + sum(source.nbytes for source in sources) // _THREAD_BYTES)


# -- from inputs to the files ----------------------------------------------------------


_Stored = tuple[dict[str, Any], dict[str, Entry]]


def store(
    links: Any,
    output: str | os.PathLike[str] | None,
    options: IngestOptions,
    resources: Resources,
    progress: Progress,
) -> Store:
    """Store files, a query, or links in memory. Raises like :func:`cocite.ingest`."""
    request = StoreRequest.of(links, options, resources.memory)
    home, path = place_for(output, size_of(request.links + request.nodes), resources.memory)
    with (
        Staging(path, "graph", overwrite=options.overwrite) as draft,
        report_to(os.fspath(options.report or ""), options.overwrite) as reported,
    ):
        facts, stored = _store_inputs(draft.path, request, resources, reported, progress)
        draft.publish(Manifest("graph", facts, stored))
    labels = links.labels if isinstance(links, ObjectInput) else None
    return replace(Store.open(path, "graph"), home=home, labels=labels)


def _store_inputs(
    directory: Path,
    request: StoreRequest,
    resources: Resources,
    report: Reported,
    progress: Progress,
) -> _Stored:
    """Write the graph's files into ``directory``; return (the manifest's facts, the files)."""
    disk.make_own_folder(work := directory / "work")
    links, options, titling = request.links, request.options, request.titling
    if not (request.nodes or titling.any):
        few = resources.up_to(threads_for(links, resources.threads))
        stored = store_integers(directory, links, options, few, progress)
        if stored is not None:
            facts, files, found = stored
            return _with_rows(facts, found, found), files
    from cocite.io.tables import Tables  # loads DuckDB, which is slow

    sources, spare = request.sources, database_memory(resources.memory)
    threads = threads_for(sources, resources.threads)
    with Tables(work, sources, spare, threads, weighted=bool(options.weight)) as tables:
        titling.read(tables, options.called, progress)
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
        read = of_links + load_all(tables, job, request.nodes, 1, options.for_nodes())
        check_some(read)
        merged = tables.trim()
        more = {"merged_names": merged} if merged else {}
        if options.normalize_urls:
            progress("normalizing URLs", 0, 0)
            which = f"regexp_matches(name, {literal(IS_WEB)})"
            more["normalized_urls"], _ = tables.rename(options.called, which)
        facts, files = store_links(directory, tables, options, progress)
        of_titles, titles = titling.store(directory, tables)
    return _with_rows(facts, of_links, read) | more | of_titles, files | titles


def _with_rows(facts: dict[str, Any], of_links: list[Found], read: list[Found]) -> dict[str, Any]:
    dropped = facts["dropped"] | {"bad_rows": sum(found.bad for found in read)}
    rows = sum(found.rows for found in of_links)
    return facts | {"dropped": dropped, "rows": rows, "sources": facts_of(read)}


def place_for(
    output: str | os.PathLike[str] | None, nbytes: int | None, memory: int
) -> tuple[Temporary | None, Path]:
    """Return (None, ``output``), or a new temporary directory and a path in it."""
    if output is not None:
        return None, Path(os.fspath(output))
    home = Temporary(nbytes, memory)
    return home, home.path / "graph"


# -- loading ---------------------------------------------------------------------------


def load_all(
    tables: Tables,
    to_job: Callable[..., Job],
    sources: Sequence[Source],
    wanted: int,
    options: ReadOptions,
) -> list[Found]:
    """Load ``sources`` of links (``wanted`` is 2) or node names (1). Return the reports in the same
    order; several sources may share one. ``to_job`` creates a job from its remaining fields.
    """
    found: list[Found | None] = [None] * len(sources)
    for known, places in _groups(sources, options, wanted):
        some = [sources[place] for place in places]
        with tables.reading() as database:
            job = to_job(database=database, source=some[0], wanted=wanted, options=options)
            disk.make_own_folder(job.scratch)
            reader = known or reader_of(job.source, options, wanted)
            reader.check(job)
            if wanted == 2 or reader.together:
                job = replace(job, inputs=tuple(some if reader.together else sources))
            place_of = {id(source): place for source, place in zip(some, places, strict=True)}
            for batch in _batches(reader, job, some):
                for source, one in zip(batch.sources, batch.found, strict=True):
                    _check_few_bad(source, one, options)
                    found[place_of[id(source)]] = one
                whole = all(one.integers for one in batch.found)
                tables.load(batch.rows, wanted, whole)
                if not batch.nodes:
                    continue
                if options.sides and wanted == 2:
                    raise InputError(
                        f"{batch.found[0].file} lists nodes without their sides. For a bipartite "
                        "graph, use a text file, a Parquet file, JSON lines or a query, with one "
                        "column per side"
                    )
                tables.load(batch.nodes, 1, whole)
        disk.remove_tree(job.scratch)
    return [one for one in found if one is not None]


def _batches(reader: FormatReader, job: Job, some: list[Source]) -> Iterator[RowBatch]:
    if reader.read_many is not None:
        yield from reader.read_many(job, some)
        return
    assert reader.read is not None
    rows, found, nodes = reader.read(job)
    if job.wanted == 1 and nodes:  # a format of links that lists its nodes
        rows, nodes = nodes, ""
        found.rows = job.count(f"SELECT count(*) FROM ({rows})")
    job.progress("loading " + job.source.short, 0, 0)
    yield RowBatch(rows, [job.source], [found], nodes)


def _groups(
    sources: Sequence[Source], options: ReadOptions, wanted: int
) -> list[tuple[FormatReader | None, list[int]]]:
    """Group sources to read together, as (reader, positions); a pipe's reader is None."""
    groups: dict[object, tuple[FormatReader | None, list[int]]] = {}
    for place, source in enumerate(sources):
        reader = None if source.is_pipe else reader_of(source, options, wanted)
        if reader is not None:
            source.evict()
        several = reader is not None and (reader.read_many or reader.together)
        groups.setdefault(reader if several else place, (reader, []))[1].append(place)
    return list(groups.values())


def _check_few_bad(source: Source, found: Found, options: ReadOptions) -> None:
    bad = found.bad
    if bad > found.rows and options.bad_rows != "all":
        raise InputError(
            f"{source.label} has {bad:,} bad rows and {found.rows:,} good ones: it may not be an "
            f"edge list, or may need other options. The first bad row is {found.examples[0]}. To "
            "skip all bad rows: --bad-rows all (bad_rows='all')"
        )


def check_some(read: Sequence[Found]) -> None:
    """Raise :class:`UnrecognizedInput`, with a summary of the inputs, if none has any rows."""
    if any(found.rows for found in read):
        return
    clauses = []
    for found in read[:3]:
        if isinstance(found, PagesFound):
            clauses.append(found.describe().replace(": ", " has ", 1))
            continue
        kinds = [(found.bad, "bad row")]
        if isinstance(found, TextInput):
            kinds += [(found.comments, "comment line"), (found.header, "header row")]
        rest = " and ".join(f"{n:,} {what}{'s' * (n > 1)}" for n, what in kinds if n)
        clauses.append(f"{found.file} {'has only ' + rest if rest else 'is empty'}")
    more = f" (and {len(read) - 3:,} more)" if len(read) > 3 else ""
    raise UnrecognizedInput(
        f"there are no links: {', '.join(clauses)}{more}. Pass files with one link per row"
    )


def facts_of(read: Sequence[Found]) -> list[dict[str, Any]]:
    """Return the manifest's entries for the inputs: one per input or, if there are more than a
    hundred, one per format, with the number of files as ``files``, to keep the manifest small.
    """
    if len(read) <= _EACH:
        return [_report(found, found.to_json()) for found in read]
    groups: dict[tuple[object, ...], list[Found]] = {}
    for found in read:
        groups.setdefault((type(found), found.format), []).append(found)
    return list(map(_merged, groups.values()))


def _merged(group: list[Found]) -> dict[str, Any]:
    """Return one entry for inputs of the same format, with summed counts."""
    first, values = group[0], [found.to_json() for found in group]
    entry = _report(first, dict(values[0]))
    for name, value in values[0].items():
        if isinstance(value, dict):
            entry[name] = dict(sum((Counter(one[name]) for one in values), Counter()))
        elif name in _COUNTS:
            entry[name] = sum(one[name] for one in values)
    files = sum(getattr(found, "files", 1) for found in group)
    examples = [f"{Path(found.file).name}: {one}" for found in group for one in found.examples]
    entry |= {"files": files, "examples": examples[:_EXAMPLES]}
    entry["integers"] = all(found.integers for found in group)
    if files > 1:
        entry["read_as"] = f"{files:,} files, the first as {entry['read_as']}"
    return entry


def _report(found: Found, value: dict[str, Any]) -> dict[str, Any]:
    """Return an input's entry, with only the base name of its path."""
    value |= {"file": Path(found.file).name or found.file, "read_as": found.describe()}
    value["read_as"] = value["read_as"].replace(found.file, value["file"], 1)
    return value
