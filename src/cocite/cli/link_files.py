"""Links or a stored graph in the place of an index: made into one, cached, said in one line.

Options that say how links are read: one list, for ``cocite ingest`` and for all commands that
take a file of links in the place of an index.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli import CACHED
from cocite.cli.console import Stages
from cocite.cli.options import flag_of, takes
from cocite.cli.output import counted, held, say
from cocite.errors import Damaged, InputError, UsageError
from cocite.graph import Graph
from cocite.measures import DEFAULT
from cocite.options.ingest import ReadingOptions
from cocite.options.source import SourceOptions
from cocite.resources import format_size
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.index.plan import BuildOptions


_SECTION = "For LINKS only, as for cocite ingest"

reading_options = takes(ReadingOptions, "reading", section=_SECTION, brief=False)
"""Gives a command that takes links ``reading``, how they are read; short help leaves it out."""

READ_AS_USUAL = ReadingOptions()


# -- links -------------------------------------------------------------------------------


_TEMPORARY = "cocite.temporary"
_OPTIONS = re.compile(r"--[a-z][a-z-]*")
_THEN = "cocite index DIR -o INDEX, and ask INDEX"
_OPTION = re.compile(
    r"(?<=: )--(?:header (?:yes|no)|columns SOURCE,TARGET|weight-column \S+)(?=\))"
)
"""What a line about an input says to type."""

_UNITS = {
    "reading": "bytes",
    "parsing": "pages",
    "writing": "links",
    "indexing": "nodes",
    "sampling": "samples",
}


def is_links(path: str) -> bool:
    """Whether ``path`` is read as links."""
    from cocite.search.cache import is_links  # commands that ask nothing do not wait for it

    return is_links(path)


def no_sides(path: str) -> str:
    """What to say where a stored graph or index is to be bipartite."""
    return (
        f"{path} is no file of links: leave --bipartite out. A stored graph has the sides that "
        "cocite ingest LINKS --bipartite -o DIR gave it, and an index those of its graph"
    )


def graph_of(
    path: str,
    source: SourceOptions,
    reading: ReadingOptions = READ_AS_USUAL,
    *,
    memory: int | None = None,
    threads: int | None = None,
    lasting: bool = False,
) -> str:
    """Return the graph that a command works on: ``path``, or what is made of it if it holds links.
    ``lasting``: what is made must stay where it is.
    """
    if not is_links(path):
        refuse_folder(path)
        refuse_options(path, source, reading)
        return path
    made = cached(path, source, reading, memory=memory, threads=threads, index=False)
    if lasting and click.get_current_context().meta.get(_TEMPORARY):
        file = "FILE" if path == "-" else shlex.quote(path)
        raise UsageError(
            f"there is no place to cache the graph of {'standard input' if path == '-' else path}, "
            f"which the index goes back to. Choose one: cocite ingest {file} -o DIR, then cocite "
            "index DIR"
        )
    return made


def refuse_options(
    path: str, source: SourceOptions, reading: ReadingOptions, *, stored: bool = False
) -> None:
    """Raise :class:`UsageError` for options of links where ``path`` is a stored graph or index;
    ``stored`` says that something is cached of it.
    """
    if source.titles:
        raise UsageError(no_titles(path))
    if source.bipartite:
        raise UsageError(no_sides(path))
    if source.no_cache and not stored:
        raise UsageError(f"{path} is stored, and nothing of it is cached: leave --no-cache out")
    for name in reading.changed():
        raise UsageError(
            f"{path} is stored, and not read again: leave {flag_of(name, ReadingOptions)} out"
        )


def graph_url(path: str) -> str | None:
    """``path`` if it is the URL of a stored graph, and not of a database of links."""
    from cocite.io.remote import is_url

    return path if is_url(path) and not is_links(path) else None


def index_of(
    path: str, source: SourceOptions, *, memory: int | None = None, threads: int | None = None
) -> str:
    """Return what a command works on that takes an index or a graph: ``path``, or the index that is
    made of it if it holds links.
    """
    if is_links(path):
        means: dict[str, Any] = {"memory": memory, "threads": threads}
        return cached(path, source, READ_AS_USUAL, index=True, **means)
    refuse_folder(path)
    refuse_options(path, source, READ_AS_USUAL)
    return path


def refuse_folder(path: str) -> None:
    """Raise :class:`UsageError` for a folder that is neither stored nor a site: it says what is in
    it, and what to name.
    """
    folder = Path(path)
    if not folder.is_dir() or (folder / "manifest.json").exists() or is_links(path):
        return
    if os.path.isdir(f"{os.path.abspath(path)}.building"):
        return  # whoever opens it says that it is not finished
    files = sorted(each.name for each in folder.iterdir() if each.is_file())
    holds = f"{counted(len(files), 'file')}, such as {files[0]}," if files else "no files"
    told = (
        f"{path} is a folder with {holds} and is no graph or index of cocite; nor does it hold "
        "HTML pages. Name such a folder, or a file of links"
    )
    if files:
        pattern = shlex.quote(str(folder / f"*{Path(files[0]).suffix}"))
        told += f"; of several files a pattern, in quotation marks: {pattern}"
    raise UsageError(told)


def no_titles(path: str) -> str:
    """What to say where titles are given for what is stored."""
    return (
        f"{path} is no file of links: leave --titles out. A stored graph has those that cocite "
        "ingest LINKS --titles FILE -o DIR gave it, and an index those of its graph"
    )


def stored_of(path: str) -> list[str]:
    """What there is to be verified: ``path``, the parts of a graph in blocks, or what is cached of
    links.

    Raises :class:`UsageError` if nothing is.
    """
    from cocite.graph.partitions import is_blocked, parts_of
    from cocite.search.cache import cached_stores

    if is_blocked(path):
        parts = [str(part) for part in parts_of(path)]
        away = [part for part in parts if not os.path.lexists(part)]
        if away:
            raise Damaged(
                f"{path} is stored in {len(parts) - 1:,} blocks, and {len(away):,} are not here, "
                f"{away[0]} for one. Copy them from where they are, or verify each that is here "
                f"by itself: cocite verify {parts[0]}"
            )
        return parts
    if not is_links(path):
        refuse_folder(path)
        return [path]
    found = [str(each) for each in cached_stores(path)]
    if not found:
        file = "FILE" if path == "-" else shlex.quote(path)
        raise UsageError(
            f"{'standard input' if path == '-' else path} is no stored graph or index, and nothing "
            f"is cached of it. If it holds links: cocite related {file} PAGE makes both of it"
        )
    return found


def cached(
    path: str,
    source: SourceOptions,
    reading: ReadingOptions,
    *,
    index: bool,
    built: BuildOptions | None = None,
    exclude: Sequence[str] = (),
    memory: int | None = None,
    threads: int | None = None,
) -> str:
    """Return the index of links or of a stored graph, or the graph of links, cached or made.

    What is temporary goes when the command has ended. ``built`` is what the index is made of,
    unless it is the default one; ``exclude`` are nodes that are left out.
    """
    from cocite.graph.graph import HUBS_LOG
    from cocite.search.cache import find_or_make

    file = "FILE" if path == "-" else shlex.quote(path)
    chosen = reading.changed() | ({"bipartite": True} if source.bipartite else {})
    try:
        with Stages(_UNITS) as stages, held(HUBS_LOG) as notes:
            found = find_or_make(
                path,
                index=index,
                options=built,
                reading=chosen | ({"exclude_nodes": list(exclude)} if exclude else {}),
                titles=source.titles,
                cache=not source.no_cache,
                threads=threads,
                memory=memory,
                progress=stages,
            )
    except InputError as error:
        named = set(_OPTIONS.findall(str(error)))
        if named - _typed_here() and "cocite ingest --" not in str(error):
            error.add_note(
                f"Such options are those of cocite ingest {file} -o DIR; then {_THEN} in the place "
                "of the file"
            )
        raise
    context = click.get_current_context()
    if found.temporary is not None:
        context.call_on_close(found.temporary.cleanup)
        context.meta[_TEMPORARY] = True
    else:
        context.meta[CACHED] = found.folder, path
    label = "standard input" if path == "-" else path
    measure = built.measure.name if built is not None else DEFAULT
    by = f"; {measure} answers" if index else ""
    links = kind_of(path) != "graph"
    if found.made and links:
        graph, two = Graph.open(found.graph), " --bipartite" if source.bipartite else ""

        def typed(option: str) -> str:
            if option.split(maxsplit=1)[0] in _typed_here():
                return option
            return f"cocite ingest {file}{two} -o DIR {option}; then {_THEN}"

        for each in graph.store.facts["sources"]:
            said_of(each, typed)
        said_of_sides(graph, typed)
        said_of_titles(graph.store.facts.get("titles"))
    for note in notes if found.made else ():
        say(note)
    what = "an index" if not links else "a graph and an index" if index else "a graph"
    if found.temporary is not None:
        why = f" ({found.why})" if found.why else ""
        say(f"{label}: made into {'an index' if index else 'a graph'} for this once{why}{by}")
    elif found.made:
        are = "are" if index and links else "is"
        size = format_size(found.nbytes)
        say(f"{label}: {what} made of it, {size}, {are} cached until it changes{by}")
    else:
        say(f"{label}: unchanged, so the cached {'index' if index else 'graph'} is used{by}")
    return str(found.index if index else found.graph)


def _typed_here() -> set[str]:
    """Return the flags that the command has."""
    parameters = click.get_current_context().command.params
    return {name for parameter in parameters for name in parameter.opts}


def said_of_titles(titles: dict[str, Any] | None) -> None:
    """Say how titles were read, and of which no use was made."""
    if titles is None:
        return
    for source in titles["sources"]:
        said_of(source)
    if titles["unknown"]:
        some = ", ".join(map(repr, titles["strangers"]))
        more = ", ..." if titles["unknown"] > len(titles["strangers"]) else ""
        names = f"{titles['unknown']:,} name{'s' * (titles['unknown'] > 1)}"
        say(f"  no node is called like {names} with a title: {some}{more}")
    if titles["others"]:
        say(f"  {titles['others']:,} more titles of nodes that have one: the first one is taken")


def said_of_sides(graph: Graph, typed: Callable[[str], str] = str) -> None:
    """Say which nodes of a bipartite graph are on which side, by an example of each, and what to
    type if it is the other way round: ``typed`` of an option of ``cocite ingest``.
    """
    sides = graph.sides
    if sides is None or not sides.left or not sides.right:
        return
    each = (
        f"{count:,} {title}, such as {graph.names.stored.name(sides.named(title).start)!r}"
        for title, count in zip(sides.titles, (sides.left, sides.right), strict=True)
    )
    line = f"  sides: {'; '.join(each)} (if it is the other way round: --columns SOURCE,TARGET)"
    say(_OPTION.sub(lambda option: typed(option[0]), line))


def said_of(source: dict[str, Any], typed: Callable[[str], str] = str) -> None:
    """Say how an input was read, what was left out of it, and what to type if that was wrong:
    ``typed`` of an option of ``cocite ingest``.
    """
    guessed = source.get("first") and not source["header"] and not source["integers"]
    titles = " (if these name the columns: --header yes)" if guessed else ""
    line = f"read {source['read_as']}{titles}"
    say(_OPTION.sub(lambda option: typed(option[0]), line))
    if source["bad_rows"]:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in source["bad_rows"].items())
        say(f"  left out bad rows: {kinds}")
        for example in source["examples"]:
            say(f"    {example}")
