"""Inputs of commands: a stored index or graph, or links, from which both are built and cached.

With an index, only query settings can be chosen; with a graph or links, build settings, too. Other
options are refused. Notes on standard error say how links were read, and how to correct mistakes.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cocite.cli import CACHED
from cocite.cli.console import Stages, say
from cocite.cli.flags import ASKED, ASKING, excluded_in, flag_of, is_set, takes, verifying
from cocite.cli.output import counted, or_of
from cocite.errors import Damaged, InputError, UsageError
from cocite.graph import Graph
from cocite.graph.names import SCAN_LIMIT, Resolver
from cocite.measures import DEFAULT, MEASURES, Measure, find_measure
from cocite.options.build import MeasureOptions
from cocite.options.common import QuerySource, SourceOptions
from cocite.options.ingest import ReadingOptions
from cocite.options.query import UnseenOptions
from cocite.resources import Resources, format_size
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.graph.names import Names
    from cocite.index.plan import BuildOptions
    from cocite.search import Index

_GRAPH_ONLY = "For a GRAPH or LINKS only (the settings of an INDEX are fixed)"
_READING = takes(
    ReadingOptions, "reading", section="For LINKS only, as for cocite ingest", brief=False
)
_GRAPH = takes(
    MeasureOptions,
    "_graph",
    only=("measure", "direction", "unweighted"),
    section=_GRAPH_ONLY,
    measure={"text": "The measure of similarity (see: cocite measures)."},
    direction={"text": "Which links count.", "unset": "as for cocite index"},
    unweighted={"unset": ""},
    settings={
        _GRAPH_ONLY: lambda measure: (
            () if measure.texts else (s for s in measure.build if s.name not in ASKED)
        )
    },
)
_QUERY = takes(QuerySource, "_where", settings=ASKING)


class IndexSource(NamedTuple):
    """Options that turn a path into an index, with the settings of the query."""

    where: QuerySource
    graph: MeasureOptions
    reading: ReadingOptions

    @property
    def settings(self) -> dict[str, Any]:
        """Return all settings given, for queries and for building."""
        return {**self.where.settings, **self.graph.settings}


def asks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an :class:`IndexSource`'s options to a command, which receives it as ``source``."""

    @wraps(command)
    def call(*args: Any, _where: Any, _graph: Any, reading: Any, **parameters: Any) -> Any:
        return command(*args, **parameters, source=IndexSource(_where, _graph, reading))

    found: Callable[..., Any] = _QUERY(_GRAPH(_READING(call)))
    return found


# -- paths ---------------------------------------------------------------------------------------


_TEMPORARY = "cocite.temporary"
_FLAGS = re.compile(r"--[a-z][a-z-]*")
_THEN = "cocite index DIR -o INDEX, and query INDEX"
_HINT = re.compile(r"(?<=: )--(?:header (?:yes|no)|columns SOURCE,TARGET|weight-column \S+)(?=\))")
"""Flags suggested in messages about inputs."""
_UNITS = {
    "reading": "bytes",
    "parsing": "pages",
    "writing": "links",
    "indexing": "nodes",
    "sampling": "samples",
}


def is_links(path: str) -> bool:
    """Return whether ``path`` is read as links."""
    from cocite.search.cache import is_links  # loads slowly, and not every command needs it

    return is_links(path)


def graph_url(path: str) -> str | None:
    """Return ``path`` if it is the URL of a stored graph, or None."""
    from cocite.io.remote import is_url

    return path if is_url(path) and not is_links(path) else None


def graph_of(
    path: str,
    source: SourceOptions,
    *,
    memory: int | None = None,
    threads: int | None = None,
    lasting: bool = False,
) -> str:
    """Return ``path``, or the path of a graph built from its links.

    Raises :class:`UsageError` if a ``lasting`` graph cannot be cached.
    """
    if not is_links(path):
        refuse_unused(path, source)
        return path
    made = cached(path, source, index=False, memory=memory, threads=threads)
    if lasting and click.get_current_context().meta.get(_TEMPORARY):
        name, file = _called(path)
        raise UsageError(
            f"the index needs a stored graph, but the graph of {name} cannot be cached. Store it "
            f"first: cocite ingest {file} -o DIR, then cocite index DIR"
        )
    return made


def index_of(path: str, source: SourceOptions, **limits: Any) -> str:
    """Return the path of an index or a graph: ``path``, or an index built from its links."""
    if is_links(path):
        return cached(path, source, index=True, **limits)
    refuse_unused(path, source)
    return path


def stored_of(path: str) -> list[str]:
    """Return the stores to verify: ``path``, its parts if partitioned, or those cached for links.

    Raises :class:`UsageError` if there are none, and :class:`Damaged` if parts are missing.
    """
    from cocite.graph.partitions import is_blocked, parts_of
    from cocite.search.cache import cached_stores

    if is_blocked(path):
        parts = [str(part) for part in parts_of(path)]
        away = [part for part in parts if not os.path.lexists(part)]
        if away:
            raise Damaged(
                f"{path} is stored in {len(parts) - 1:,} blocks, of which {len(away):,} are "
                f"missing here, such as {away[0]}. Copy the missing blocks here, or verify each "
                f"local block separately: cocite verify {parts[0]}"
            )
        return parts
    if not is_links(path):
        refuse_folder(path)
        return [path]
    found = [str(each) for each in cached_stores(path)]
    if not found:
        name, file = _called(path)
        raise UsageError(
            f"{name} is not a stored graph or index, and nothing is cached for it. If {name} "
            f"contains links, cocite related {file} PAGE builds and caches a graph and an index"
        )
    return found


def _called(path: str) -> tuple[str, str]:
    """Return an input's name for messages and for shell commands."""
    return ("standard input", "FILE") if path == "-" else (path, shlex.quote(path))


def refuse_folder(path: str) -> None:
    """Raise :class:`UsageError`, with advice, for a folder that is neither a store nor links."""
    folder = Path(path)
    if not folder.is_dir() or (folder / "manifest.json").exists() or is_links(path):
        return
    if os.path.isdir(f"{os.path.abspath(path)}.building"):
        return  # opening it reports the unfinished build
    files = sorted(each.name for each in folder.iterdir() if each.is_file())
    holds = f"{counted(len(files), 'file')}, such as {files[0]}," if files else "no files"
    message = (
        f"{path} is a folder with {holds} and is not a cocite graph or index; it has no HTML "
        "pages or notes either. Pass a folder of pages or notes, or an edge list"
    )
    if files:
        pattern = shlex.quote(str(folder / f"*{Path(files[0]).suffix}"))
        message += f"; for several files, quote a pattern: {pattern}"
    raise UsageError(message)


def refuse_unused(
    path: str, source: SourceOptions, reading: ReadingOptions | None = None, *, stored: bool = False
) -> None:
    """Raise :class:`UsageError` for options of links if ``path`` is not links.

    ``stored`` means that an index of the graph at ``path`` is cached.
    """
    refuse_folder(path)
    for given, flag, has in (
        (source.titles, "--titles FILE", "titles"),
        (source.bipartite, "--bipartite", "sides"),
    ):
        if given:
            raise UsageError(
                f"{path} is not an edge list: omit {flag.split()[0]}. To store a graph with "
                f"{has}: cocite ingest LINKS {flag} -o DIR. An index uses the {has} of its graph"
            )
    if source.no_cache and not stored:
        raise UsageError(
            f"{path} is a stored graph or index, and nothing is cached for it: omit --no-cache"
        )
    for name in reading.changed() if reading else ():
        raise UsageError(
            f"{path} is already a stored graph or index, so its links are not read again: omit "
            f"{flag_of(name, ReadingOptions)}"
        )


# -- what is made and cached ---------------------------------------------------------------------


def cached(
    path: str,
    source: SourceOptions,
    reading: ReadingOptions | None = None,
    *,
    index: bool,
    built: BuildOptions | None = None,
    exclude: Sequence[str] = (),
    **limits: Any,
) -> str:
    """Return the path of an index, or of a graph of links; build it if it is not cached.

    ``index`` selects an index. ``built`` are its options, or None for the default; ``exclude`` are
    nodes to remove.
    """
    from cocite.search.cache import find_or_make

    label, file = _called(path)
    chosen = reading.changed() if reading else {}
    chosen |= {"bipartite": True} if source.bipartite else {}
    chosen |= {"exclude_nodes": list(exclude)} if exclude else {}
    chosen |= {"titles": source.titles} if source.titles else {}
    try:
        with Stages(_UNITS) as stages:
            found = find_or_make(
                path,
                index=index,
                options=built,
                reading=chosen,
                cache=not source.no_cache,
                progress=stages,
                **limits,
            )
    except InputError as error:
        named = set(_FLAGS.findall(str(error)))
        if named - _typed_here() and "cocite ingest --" not in str(error):
            error.add_note(
                f"These are options of cocite ingest {file} -o DIR; then run {_THEN} instead of "
                "the file"
            )
        raise
    context = click.get_current_context()
    if found.temporary is not None:
        context.call_on_close(found.temporary.cleanup)
        context.meta[_TEMPORARY] = True
    else:
        context.meta[CACHED] = found.folder, path
    links = kind_of(path) != "graph"
    if found.made and links:
        graph, two = Graph.open(found.graph), " --bipartite" if source.bipartite else ""

        def typed(option: str) -> str:
            if option.split(maxsplit=1)[0] in _typed_here():
                return option
            return f"cocite ingest {file}{two} -o DIR {option}; then {_THEN}"

        report_inputs(graph, typed)
    by = f"; measure: {DEFAULT if built is None else built.measure.name}" if index else ""
    one = "an index" if index else "a graph"
    if found.temporary is not None:
        why = f" ({found.why})" if found.why else ""
        say(f"{label}: built {one} for this command{why}{by}")
    elif found.made:
        both = index and links
        what = (
            f"{'a graph and an index' if both else one} built from it, {format_size(found.nbytes)}"
        )
        say(f"{label}: {what}, {'are' if both else 'is'} cached until it changes{by}")
    else:
        say(f"{label}: unchanged, so the cached {one.split()[1]} is used{by}")
    return str(found.index if index else found.graph)


def _typed_here() -> set[str]:
    parameters = click.get_current_context().command.params
    return {name for parameter in parameters for name in parameter.opts}


def report_inputs(graph: Graph, typed: Callable[[str], str] = str, links: bool = True) -> None:
    """Print how the input files (links if ``links`` is true, and titles) were read, what was
    skipped, and example nodes of each side.

    ``typed`` maps an option of ``cocite ingest`` to the text to type for this command, to correct a
    wrong guess.
    """

    def hint(line: str) -> None:
        say(_HINT.sub(lambda option: typed(option[0]), line))

    titles = graph.store.facts.get("titles")
    for source in graph.store.facts["sources"] if links else ():
        _report_input(source, hint)
    sides = graph.sides
    if links and sides is not None and sides.left and sides.right:
        each = (
            f"{count:,} {title}, such as {graph.names.stored.name(sides.named(title).start)!r}"
            for title, count in zip(sides.titles, (sides.left, sides.right), strict=True)
        )
        other = "if they are swapped: --columns SOURCE,TARGET"
        hint(f"  sides: {'; '.join(each)} ({other})")
    if titles is None:
        return
    for source in titles["sources"]:
        _report_input(source, say)
    if titles["unknown"]:
        some = ", ".join(map(repr, titles["strangers"]))
        more = ", ..." if titles["unknown"] > len(titles["strangers"]) else ""
        names = counted(titles["unknown"], "name")
        say(f"  skipped titles of {names} without a node: {some}{more}")
    if titles["others"]:
        say(f"  skipped {titles['others']:,} extra titles: each node keeps its first title")


def _report_input(source: dict[str, Any], hint: Callable[[str], None]) -> None:
    guessed = source.get("first") and not source["header"] and not source["integers"]
    titles = " (if these name the columns: --header yes)" if guessed else ""
    hint(f"read {source['read_as']}{titles}")
    if source["bad_rows"]:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in source["bad_rows"].items())
        say(f"  skipped bad rows: {kinds}")
        for example in source["examples"]:
            say(f"    {example}")


# -- what answers --------------------------------------------------------------------------------


def opened(
    path: str, source: IndexSource, named: Sequence[str] = (), **limits: Any
) -> tuple[Index, dict[str, Any]]:
    """Return the index of a path, and the settings of the query.

    ``named`` are the query nodes, to detect a path given after them.
    """
    from cocite.search import open_index

    links, kind, where = is_links(path), kind_of(path), source.where
    if named and kind is None and not links:
        swapped = kind_of(named[-1]) or ("edge list" if is_links(named[-1]) else None)
        if swapped is not None and named[-1] != "-":
            raise UsageError(f"{named[-1]} must come first: pass the {swapped}, then the nodes")
    stored = not links and kind == "graph"
    if not links:
        refuse_unused(path, where, source.reading, stored=stored)
    if (links or stored) and where.graphs:
        what = "is an edge list" if links else "is a graph itself"
        raise UsageError(f"{path} {what}: omit --graph")
    exclude = _left_out(path, where.exclude_nodes, links, named)
    if not links and not stored:
        for name in source.graph.changed():
            raise UsageError(
                f"--{name} is fixed when an index is built, and {path} is already an index. "
                "Query its graph instead, or build another index"
            )
        graphs = list(where.graphs)
        return open_index(path, graph=graphs, verify=verifying(), **limits), source.settings
    once = Resources.checked(**limits)  # detected once, for build and query
    own: dict[str, Any] = {"threads": once.threads, "memory": once.total}
    built, asked = _built_for(path, source)
    found = cached(path, where, source.reading, index=True, built=built, exclude=exclude, **own)
    return open_index(found, graph=path if stored else None, **own), asked


def _built_for(path: str, source: IndexSource) -> tuple[BuildOptions | None, dict[str, Any]]:
    """Return the build options (None: the default) and the query settings."""
    from cocite.index.plan import BuildOptions

    chosen, measure = source.graph, find_measure(source.graph.measure or DEFAULT)
    if measure.texts:
        raise UsageError(
            f"{measure.name} needs an index with texts: cocite index {shlex.quote(path)} "
            f"--measure {measure.name} --texts FOLDER -o INDEX; then query INDEX"
        )
    for name in source.settings:
        takers = [
            each.name
            for each in MEASURES.values()
            if any(setting.name == name for setting in (*each.build, *each.ask))
        ]
        if measure.name not in takers:
            raise UsageError(
                f"the measure {measure.name} has no {flag_of(name)}. Omit {flag_of(name)}, or "
                f"choose a measure that has it: --measure {or_of(takers)}"
            )
    names = {setting.name for setting in measure.ask}
    asked = {name: value for name, value in source.settings.items() if name in names}
    built = {name: value for name, value in source.settings.items() if name not in names}
    plain = chosen.direction is None and not chosen.unweighted and not built
    if measure.name == DEFAULT and plain:
        return None, asked
    made = (measure.name, chosen.direction, None, built)
    return BuildOptions.checked(*made, unweighted=chosen.unweighted), asked


def _left_out(path: str, file: Path | None, links: bool, named: Sequence[str]) -> list[str]:
    """Return the nodes to exclude; raises :class:`UsageError` if one is a query node."""
    if file is None:
        return []
    if not links:
        graph = path if kind_of(path) == "graph" else "GRAPH"
        raise UsageError(
            f"{path} is not an edge list. Remove the nodes from the graph, and query the new "
            f"graph: cocite ingest {graph} -o DIR --exclude-nodes {file}"
        )
    exclude = excluded_in(file, ()) or []
    for name in {*named} & {*exclude}:
        raise UsageError(f"{name!r} is a query node, but {file} excludes it")
    return exclude


def query_nodes(
    index: Index, nodes: Sequence[str], unseen: UnseenOptions
) -> tuple[Index, Sequence[str]]:
    """Return the index, including the draft if one is given, and the query nodes."""
    if unseen.draft is None:
        for name in unseen.changed():
            raise UsageError(
                f"{flag_of(name, UnseenOptions)} needs a draft: add --draft, or omit "
                f"{flag_of(name, UnseenOptions)}"
            )
        if not nodes:
            raise UsageError("no node is given: pass a node, or a draft with --draft")
        return index, nodes
    if nodes:
        raise UsageError(
            f"a query takes either nodes, such as {nodes[0]!r}, or a draft: omit one of the two"
        )
    from cocite.io.readers.html.site import is_note_name
    from cocite.search.unseen import DRAFT, UnseenNode

    draft = str(unseen.draft)
    with click.open_file(draft, "rb") as file:
        content = file.read()
    if unseen.draft_format == "note" or (unseen.draft_format == "auto" and is_note_name(draft)):
        read = UnseenNode.of_note(content, index.nodes, unseen.draft_name or DRAFT)
    else:
        read = UnseenNode.read(content, "standard input" if draft == "-" else draft)
    found = index.with_unseen(read, name=unseen.draft_name, skip_unknown=unseen.skip_unknown)
    return found, [found.nodes.name(len(found.nodes) - 1)]


def narrowing(measure: Measure, settings: Mapping[str, object]) -> str:
    """Return an option that narrows intervals of a measure without samples, or ""."""
    for setting in measure.ask:
        value = settings.get(setting.name)
        if setting.narrower and isinstance(value, int | float):
            more = value * setting.narrower
            return f"{flag_of(setting.name)} {more if setting.narrower > 1 else f'{more:g}'}"
    return ""


@contextmanager
def preparing(index: Index, refine: bool) -> Iterator[None]:
    """Show the preparation of refined answers; if unsupported, say what narrows intervals."""
    if refine and index.refiner is None:
        option = "--refine" if is_set("refine") else "--target-error"
        measure = index.stored.measure
        why = f"the scores of {measure.name} are computed, not estimated"
        for setting in measure.ask:
            if setting.narrower:
                change = "larger" if setting.narrower > 1 else "smaller"
                why = f"{measure.name} has no samples; a {change} {flag_of(setting.name)} narrows "
                why += "its intervals"
        say(f"{option} has no effect: {why}")
    if not refine or index.refiner is None:
        yield
        return
    with Stages({"refining": "nodes"}) as stages:
        show_refining(index, stages)
        yield


def show_refining(index: Index, stages: Stages) -> None:
    """Include the preparation of refined answers in the progress."""
    if index.refiner is not None:
        index.refiner.report = lambda sweep, done, total: stages(
            f"refining {sweep + 1}", done, total
        )


# -- names as they are typed -------------------------------------------------------------


_INDEXES = ("index.html", "index.htm", "index.xhtml", "index.xht", "index.shtml")


def as_stored(index: Index, path: str, nodes: Sequence[str], side: str | None = None) -> list[str]:
    """Return the names of ``nodes`` as stored in the index of ``path``, on one ``side`` if given.

    Unambiguous titles and other spellings are accepted. So are paths in a folder of HTML pages, as
    a shell completes them (``site/guide/install.html``), and names as in wiki links in a folder of
    notes. Raises :class:`UsageError` for a side if the graph is not bipartite.
    """
    if side is not None:
        sides = index.nodes.sides
        if sides is None:
            raise UsageError(f"{index.stored.store.path} is not bipartite: omit --side")
        nodes = [sides.name(side, node) for node in nodes]
    elif os.path.isdir(path) and kind_of(path) is None:
        nodes = [node if node in index.nodes else _page(index.nodes, path, node) for node in nodes]
    resolver, found = Resolver(index.nodes), []
    for typed in nodes:
        node = resolver.find(typed)
        found.append(typed if node is None else index.nodes.stored.name(node))
        if found[-1] != typed:
            say(f"{typed!r} matches {found[-1]!r}")
    return found


def _page(names: Names, folder: str, typed: str) -> str:
    """Return the page, or a folder's index page, at a relative path; otherwise the typed text."""
    root = Path(os.path.realpath(folder))
    for base in (Path(), root):
        real = Path(os.path.realpath(base / typed))
        if not real.is_relative_to(root) or not real.exists():
            continue
        path = real.relative_to(root)
        files = (path.as_posix(), *((path / name).as_posix() for name in _INDEXES))
        for name in (*files, os.path.splitext(files[0])[0]):
            if name in names:
                return name
    from cocite.io.readers.formats import folder_format

    if folder_format(root) == "notes" and len(names) <= SCAN_LIMIT:
        from cocite.io.readers.notes import note, vault

        where, name = vault.Vault(list(names.stored)).find(note.WIKI, typed, "")
        return name if where == vault.NOTE and name else typed
    return typed
