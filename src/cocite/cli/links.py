"""A file of links in the place of an index: made into one, kept beside it, said in one line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli import KEPT
from cocite.cli.progress import Stages
from cocite.cli.text import counted, held, say
from cocite.errors import Damaged, InputError, UsageError
from cocite.graph import Graph
from cocite.graph.sides import DEFAULT_SIDES
from cocite.measures import DEFAULT
from cocite.memory import format_size

if TYPE_CHECKING:
    from cocite.index.plan import BuildOptions

__all__ = [
    "bipartite_option",
    "cache_option",
    "dialect_of",
    "dialect_options",
    "graph_of",
    "index_of",
    "made_of",
    "no_sides",
    "no_titles",
    "refuse_folder",
    "said_of",
    "said_of_sides",
    "said_of_titles",
    "side_option",
    "stored_of",
    "titles_option",
]

_TEMPORARY = "cocite.temporary"
_OPTIONS = re.compile(r"--[a-z][a-z-]*")
_THEN = "cocite index DIR -o INDEX, and ask INDEX"
_OPTION = re.compile(r"(?<=: )--(?:header (?:yes|no)|columns SOURCE,TARGET)(?=\))")
"""What a line about an input says to type."""

cache_option = click.option(
    "--no-cache",
    is_flag=True,
    help="Keep nothing of a file of LINKS. Otherwise what is made of it is kept in a folder beside "
    "it, LINKS.cocite, and asked again while the file is unchanged.",
)


_UNITS = {
    "reading": "bytes",
    "parsing": "pages",
    "writing": "links",
    "indexing": "nodes",
    "sampling": "samples",
}


titles_option = click.option(
    "--titles",
    multiple=True,
    metavar="FILE|DATABASE#TABLE",
    help="Show titles beside the names of a file of LINKS: a table of names and titles, a file or "
    "one of a database, such as 'sqlite:///site.db#pages'. It is kept with what is made of the "
    "links. Repeatable.",
)


bipartite_option = click.option(
    "--bipartite",
    is_flag=True,
    help="The two columns of LINKS are two kinds of nodes, user and item, with names of their own; "
    "only nodes of one kind are compared. An item is asked for by its name, a user as user:NAME.",
)


DIALECT = ("delimiter", "header", "columns")
"""The options of :func:`dialect_options`."""


def dialect_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add those that say how a file of links is read, where it is not found out rightly. Help shows
    the first, which tells of the others.
    """
    kinds = click.Choice(["tab", "comma", "semicolon", "pipe", "space"], case_sensitive=False)
    asked = click.Choice(["yes", "no"], case_sensitive=False)
    for option in (
        click.option("--delimiter", type=kinds, hidden=True, help="Between columns, in a text."),
        click.option("--header", type=asked, hidden=True, help="Whether the first row is titles."),
        click.option(
            "--columns",
            metavar="SOURCE,TARGET",
            help="The two columns of LINKS, by their names or by numbers from 1. --header yes|no "
            "and --delimiter NAME are as for cocite ingest, too.",
        ),
    ):
        command = option(command)
    return command


def dialect_of(options: dict[str, Any]) -> dict[str, str]:
    """What is said of how a file of links is read."""
    return {name: options[name] for name in DIALECT if options.get(name) is not None}


def side_option(help: str) -> Callable[..., Any]:
    """``--side``, a side of what is bipartite by its title; ``help`` tells what of it."""
    return click.option("--side", metavar="NAME", help=help)


def no_sides(path: str) -> str:
    """What to say where a stored graph or index is to be bipartite."""
    return (
        f"{path} is no file of links: leave --bipartite out. A stored graph has the sides that "
        "cocite ingest LINKS --bipartite -o DIR gave it, and an index those of its graph"
    )


def graph_of(path: str, *, no_cache: bool = False, lasting: bool = False, **means: Any) -> str:
    """The graph that a verb works on: ``path``, or what is made of it if it is a file of links, by
    ``means``, the ``memory`` and the ``threads``. ``lasting``: what is made must stay where it is.
    """
    from cocite.query.kept import is_links

    if not is_links(path):
        refuse_folder(path)
        if means.get("titles"):
            raise UsageError(no_titles(path))
        if means.get("bipartite"):
            raise UsageError(no_sides(path))
        if no_cache:
            raise UsageError(f"{path} is no file of links: leave --no-cache out")
        return path
    made = made_of(path, {"no_cache": no_cache, **means}, index=False)
    if lasting and click.get_current_context().meta.get(_TEMPORARY):
        file = "FILE" if path == "-" else shlex.quote(path)
        raise UsageError(
            f"there is no place to keep the graph of {'standard input' if path == '-' else path}, "
            f"which the index goes back to. Choose one: cocite ingest {file} -o DIR, then cocite "
            "index DIR"
        )
    return made


def graph_url(path: str) -> str | None:
    """``path`` if it is the URL of a stored graph, and not of a database of links."""
    from cocite.copies import is_url
    from cocite.query.kept import is_links

    return path if is_url(path) and not is_links(path) else None


def index_of(path: str, *, no_cache: bool = False, **means: Any) -> str:
    """What a verb works on that takes an index or a graph: ``path``, or the index that is made of
    it if it is a file of links.
    """
    from cocite.query.kept import is_links

    if is_links(path):
        return made_of(path, {"no_cache": no_cache, **means}, index=True)
    refuse_folder(path)
    if means.get("bipartite"):
        raise UsageError(no_sides(path))
    if no_cache:
        raise UsageError(f"{path} is no file of links: leave --no-cache out")
    return path


def refuse_folder(path: str) -> None:
    """Raise :class:`UsageError` for a folder that is neither stored nor a site: it says what is in
    it, and what to name.
    """
    from cocite.query.kept import is_links
    from cocite.query.made_of import mark_of

    folder = Path(path)
    if not folder.is_dir() or (folder / "manifest.json").exists() or is_links(path):
        return
    if os.path.isdir(f"{os.path.abspath(path)}.building"):
        return  # whoever opens it says that it is not finished
    mark = mark_of(folder)
    if mark is not None:
        kept = shlex.quote(str(folder / "index"))
        raise UsageError(
            f"{path} holds what is made of {mark.get('file', 'a file of links')}: ask that, or the "
            f"index in it, {kept}"
        )
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
    """What there is to be verified: ``path``, the parts of a graph in blocks, or what is kept of a
    file of links.

    Raises :class:`UsageError` if nothing is.
    """
    from cocite.graph.in_blocks import is_blocked, parts_of
    from cocite.query.kept import is_links, kept_of

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
    ways = (None, DEFAULT_SIDES)
    kept = [] if path == "-" else [str(each) for two in ways for each in kept_of(path, two)]
    if not kept:
        file = "FILE" if path == "-" else shlex.quote(path)
        raise UsageError(
            f"{'standard input' if path == '-' else path} is no stored graph or index, and nothing "
            f"is kept of it. If it holds links: cocite related {file} PAGE makes both of it"
        )
    return kept


def made_of(
    links: str,
    options: dict[str, Any],
    *,
    index: bool,
    made: BuildOptions | None = None,
    measure: str = "",
) -> str:
    """The index of a file of links, or its graph, found or made; what is temporary goes when the
    verb has ended. ``options`` has ``no_cache``, and ``memory``, ``threads``, ``exclude``,
    ``titles`` and ``bipartite`` where the verb takes them. ``made`` is what the index is
    made of, unless it is the default one; ``measure`` is what answers, for a graph that is asked.
    """
    from cocite.graph.hubs import HUBS_LOG
    from cocite.query.kept import keep

    file = "FILE" if links == "-" else shlex.quote(links)
    try:
        with Stages(_UNITS) as stages, held(HUBS_LOG) as notes:
            kept = keep(
                links,
                index=index,
                options=made,
                exclude=options.get("exclude") or (),
                titles=options.get("titles") or (),
                sides=DEFAULT_SIDES if options.get("bipartite") else None,
                dialect=dialect_of(options),
                cache=not options["no_cache"],
                threads=options.get("threads"),
                memory=options.get("memory"),
                progress=stages,
            )
    except InputError as error:
        named = set(_OPTIONS.findall(str(error)))
        if named - _typed_here(options) and "cocite ingest --" not in str(error):
            error.add_note(
                f"Such options are those of cocite ingest {file} -o DIR; then {_THEN} in the place "
                "of the file"
            )
        raise
    context = click.get_current_context()
    if kept.temporary is not None:
        context.call_on_close(kept.temporary.cleanup)
        context.meta[_TEMPORARY] = True
    else:
        context.meta[KEPT] = kept.folder
    label = "standard input" if links == "-" else links
    why = f" ({kept.why})" if kept.why else ""
    if index:
        measure = made.measure.name if made is not None else DEFAULT
    by = f"; {measure} answers" if measure else ""
    if kept.made:
        graph, two = Graph.open(kept.graph), " --bipartite" if options.get("bipartite") else ""

        def typed(option: str) -> str:
            if option.split(maxsplit=1)[0] in _typed_here(options):
                return option
            return f"cocite ingest {file}{two} -o DIR {option}; then {_THEN}"

        for source in graph.store.facts["sources"]:
            said_of(source, typed)
        said_of_sides(graph, typed)
        said_of_titles(graph.store.facts.get("titles"))
        for note in notes:
            say(note)
    if kept.temporary is not None:
        say(f"{label}: made into {'an index' if index else 'a graph'} for this once{why}{by}")
    elif kept.made:
        what = "a graph and an index" if index else "a graph"
        size, are = format_size(kept.nbytes), "are" if index else "is"
        say(
            f"{label}: {what} made of it, {size}, {are} kept in {kept.folder} and asked while it "
            f"is unchanged{why}{by}"
        )
    else:
        say(f"{label}: unchanged, so {kept.folder} is asked{by}")
    return str(kept.index if index else kept.graph)


def _typed_here(options: dict[str, Any]) -> set[str]:
    """The options of ``cocite ingest`` that the verb has, too."""
    return {f"--{name}" for name in DIALECT if name in options}


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
