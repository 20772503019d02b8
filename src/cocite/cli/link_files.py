"""Links or a stored graph in the place of an index: made into one, cached, said in one line.

Options that say how links are read: one list, for ``cocite ingest`` and for all commands that
take a file of links in the place of an index.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cocite.cli import CACHED
from cocite.cli.console import Stages
from cocite.cli.help import Sectioned
from cocite.cli.output import counted, held, say
from cocite.errors import Damaged, InputError, UsageError
from cocite.graph import Graph
from cocite.measures import DEFAULT
from cocite.resources import format_size
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.index.plan import BuildOptions


Command = Callable[..., Any]
_ONCE = ("fetch", "delay", "report")
"""Of ``cocite ingest`` alone: pages that are fetched change without a trace."""
_SECTION = "For LINKS only, as for cocite ingest"


class _Option(NamedTuple):
    names: tuple[str, ...]
    more: dict[str, Any]

    @property
    def name(self) -> str:
        """By which a command gets it."""
        return self.names[-1].removeprefix("--").replace("-", "_")


def _option(*names: str, **more: Any) -> _Option:
    return _Option(names, more)


_READING_OPTIONS = (
    _option(
        "--from",
        "format",
        type=str.lower,
        default="auto",
        show_default=True,
        metavar="NAME",
        help="What LINKS are, by a name: --help-all lists them.",
    ),
    _option(
        "--sheet",
        default="",
        metavar="NAME",
        help="The sheet of a spreadsheet that holds the links.  [default: the only one with rows]",
    ),
    _option(
        "--delimiter",
        type=click.Choice(
            ["auto", "tab", "comma", "semicolon", "pipe", "space"], case_sensitive=False
        ),
        default="auto",
        show_default=True,
        help="Between columns, in a text.",
    ),
    _option(
        "--header",
        type=click.Choice(["auto", "yes", "no"], case_sensitive=False),
        default="auto",
        show_default=True,
        help="Whether the first row names the columns.",
    ),
    _option(
        "--columns",
        metavar="SOURCE,TARGET",
        help="The columns of source and target, by their names or by numbers from 1.  [default: "
        "those whose names say so, such as source and target, or from and to; else 1,2]",
    ),
    _option(
        "--weight-column",
        metavar="TITLE|NUMBER",
        help="The column of the links' weights. Weights of duplicate links are added up.  "
        "[default: none]",
    ),
    _option(
        "--count-duplicates",
        is_flag=True,
        help="Give every link as its weight how often it is there.  [default: links have no "
        "weights]",
    ),
    _option(
        "--comment",
        default="#",
        show_default=True,
        metavar="CHAR",
        help="The character that begins a comment line; empty if there are no comments.",
    ),
    _option("--undirected", is_flag=True, help="Store every link in both directions."),
    _option(
        "--sides",
        metavar="SOURCE,TARGET",
        help="What the two kinds of a --bipartite table are called.  [default: user,item]",
    ),
    _option("--keep-self-loops", is_flag=True, help="Keep links from a node to itself."),
    _option(
        "--skip-bad-rows",
        is_flag=True,
        help="Leave malformed rows out and count them, instead of stopping at the first. Stops if "
        "they are more than half of a file.",
    ),
    _option("--skip-all-bad-rows", is_flag=True, help="The same, however many they are."),
    _option(
        "--links",
        type=click.Choice(["all", "main"], case_sensitive=False),
        default="all",
        show_default=True,
        help="Of HTML pages: all links, or main, without the navigation that stands on every page.",
    ),
    _option(
        "--link-tags",
        default="a,area,frame",
        show_default=True,
        metavar="TAG,...",
        help="What counts as a link, in HTML.",
    ),
    _option(
        "--site",
        metavar="URL",
        help="Where a folder of HTML pages is published, so that links by that URL lead into it.  "
        "[default: what its canonical links agree on]",
    ),
    _option(
        "--ignore-canonical",
        is_flag=True,
        help="Keep copies of a page apart, though they say what page they are copies of.",
    ),
    _option(
        "--keep-external",
        is_flag=True,
        help="Keep the pages outside a folder that it links to, by their URLs.",
    ),
    _option(
        "--namespaces",
        default="0",
        show_default=True,
        metavar="NUMBER,...",
        help="Namespaces of a wiki whose pages are nodes: of a dump of MediaWiki, such as 0,14 for "
        "articles and categories.",
    ),
    _option(
        "--pages",
        metavar="FILE",
        help="Take only the pages that this sitemap or list of URLs names: of a folder of HTML "
        "pages or a web archive.",
    ),
    _option(
        "--fetch",
        is_flag=True,
        help="Fetch the pages that a sitemap or a list of URLs names: those that robots.txt "
        "allows, one at a time of each host.",
    ),
    _option(
        "--delay",
        type=float,
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="Seconds between two requests to a host.",
    ),
    _option(
        "--normalize-urls",
        is_flag=True,
        help="Write names that are URLs in one way, so that those of one page are one node: host, "
        "port, dots, escapes, no fragment, no parameters of trackers.",
    ),
    _option(
        "--report",
        metavar="FILE",
        help="List the links of HTML pages that lead nowhere (.tsv or .csv).",
    ),
)


def reading_options(command: Command) -> Command:
    """Add them to ``cocite ingest``."""
    for option in reversed(_READING_OPTIONS):
        command = click.option(*option.names, **option.more)(command)
    return command


def source_options(command: Command) -> Command:
    """Add them to a command that asks links; short help leaves them out."""
    for option in reversed(_READING_OPTIONS):
        if option.name not in _ONCE:
            more = option.more | {"cls": Sectioned, "section": _SECTION, "brief": False}
            command = click.option(*option.names, **more)(command)
    return command


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """What was said of how links are read, as :func:`~cocite.ingest` takes it."""
    found = {}
    for option in _READING_OPTIONS:
        usual = option.more.get("default", False if option.more.get("is_flag") else None)
        value = options.get(option.name, usual)
        if option.name not in _ONCE and value is not None and value != usual:
            found[option.name] = value
    if found.pop("skip_all_bad_rows", False):
        found["skip_bad_rows"] = "all"
    if options.get("bipartite"):
        found["bipartite"] = True
    return found


# -- links -------------------------------------------------------------------------------


_TEMPORARY = "cocite.temporary"
_OPTIONS = re.compile(r"--[a-z][a-z-]*")
_THEN = "cocite index DIR -o INDEX, and ask INDEX"
_OPTION = re.compile(
    r"(?<=: )--(?:header (?:yes|no)|columns SOURCE,TARGET|weight-column \S+)(?=\))"
)
"""What a line about an input says to type."""

cache_option = click.option(
    "--no-cache",
    is_flag=True,
    help="Cache nothing. Otherwise the index of LINKS or of a GRAPH is cached, and used again "
    "until they change (cocite info --cache).",
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
    "one of a database, such as 'sqlite:///site.db#pages'. They are cached with the links. "
    "Repeatable.",
)


bipartite_option = click.option(
    "--bipartite",
    is_flag=True,
    help="The two columns of LINKS are two kinds of nodes, user and item, with names of their own; "
    "only nodes of one kind are compared. An item is asked for by its name, a user as user:NAME.",
)


def is_links(path: str) -> bool:
    """Whether ``path`` is read as links."""
    from cocite.search.cache import is_links  # commands that ask nothing do not wait for it

    return is_links(path)


def side_option(help: str) -> Callable[..., Any]:
    """``--side``, a side of what is bipartite by its title; ``help`` tells what of it."""
    return click.option("--side", metavar="NAME", help=help)


def no_sides(path: str) -> str:
    """What to say where a stored graph or index is to be bipartite."""
    return (
        f"{path} is no file of links: leave --bipartite out. A stored graph has the sides that "
        "cocite ingest LINKS --bipartite -o DIR gave it, and an index those of its graph"
    )


def graph_of(path: str, *, no_cache: bool = False, lasting: bool = False, **options: Any) -> str:
    """The graph that a verb works on: ``path``, or what is made of it if it holds links.
    ``lasting``: what is made must stay where it is.
    """
    options |= {"no_cache": no_cache}
    if not is_links(path):
        refuse_folder(path)
        refuse_options(path, options)
        return path
    made = cache_key_of(path, options, index=False)
    if lasting and click.get_current_context().meta.get(_TEMPORARY):
        file = "FILE" if path == "-" else shlex.quote(path)
        raise UsageError(
            f"there is no place to cache the graph of {'standard input' if path == '-' else path}, "
            f"which the index goes back to. Choose one: cocite ingest {file} -o DIR, then cocite "
            "index DIR"
        )
    return made


def refuse_options(path: str, options: dict[str, Any], cached: bool = False) -> None:
    """Raise :class:`UsageError` for options of links where ``path`` is a stored graph or index;
    ``cached`` says whether something is cached of it.
    """
    if options.get("titles"):
        raise UsageError(no_titles(path))
    if options.get("bipartite"):
        raise UsageError(no_sides(path))
    if options.get("no_cache") and not cached:
        raise UsageError(f"{path} is stored, and nothing of it is cached: leave --no-cache out")
    if reading := reading_of(options):
        name = next(iter(reading)).replace("_", "-").replace("format", "from")
        raise UsageError(f"{path} is stored, and not read again: leave --{name} out")


def graph_url(path: str) -> str | None:
    """``path`` if it is the URL of a stored graph, and not of a database of links."""
    from cocite.io.remote import is_url

    return path if is_url(path) and not is_links(path) else None


def index_of(path: str, *, no_cache: bool = False, **options: Any) -> str:
    """What a verb works on that takes an index or a graph: ``path``, or the index that is made of
    it if it holds links.
    """
    options |= {"no_cache": no_cache}
    if is_links(path):
        return cache_key_of(path, options, index=True)
    refuse_folder(path)
    refuse_options(path, options)
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


def cache_key_of(
    source: str,
    options: dict[str, Any],
    *,
    index: bool,
    made: BuildOptions | None = None,
) -> str:
    """The index of links or of a stored graph, or the graph of links, found in the cache or made;
    what is temporary goes when the verb has ended. ``options`` are those of the verb; ``made`` is
    what the index is made of, unless it is the default one.
    """
    from cocite.graph.graph import HUBS_LOG
    from cocite.search.cache import find_or_make

    file = "FILE" if source == "-" else shlex.quote(source)
    exclude = options.get("exclude")
    try:
        with Stages(_UNITS) as stages, held(HUBS_LOG) as notes:
            found = find_or_make(
                source,
                index=index,
                options=made,
                reading=reading_of(options) | ({"exclude": exclude} if exclude else {}),
                titles=options.get("titles") or (),
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
    if found.temporary is not None:
        context.call_on_close(found.temporary.cleanup)
        context.meta[_TEMPORARY] = True
    else:
        context.meta[CACHED] = found.folder, source
    label = "standard input" if source == "-" else source
    measure = made.measure.name if made is not None else DEFAULT
    by = f"; {measure} answers" if index else ""
    links = kind_of(source) != "graph"
    if found.made and links:
        graph, two = Graph.open(found.graph), " --bipartite" if options.get("bipartite") else ""

        def typed(option: str) -> str:
            if option.split(maxsplit=1)[0] in _typed_here(options):
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


def _typed_here(options: dict[str, Any]) -> set[str]:
    """The options of ``cocite ingest`` that the verb has, too."""
    return {f"--{name.replace('_', '-')}" for name in options}


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
