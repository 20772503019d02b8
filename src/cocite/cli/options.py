"""Options that several verbs share, so that they read the same everywhere.

Graphs that are stored in blocks, on the command line: where the blocks live.

Options of the verbs that list hits: which nodes may be hits, and what comes first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cocite.cli.output import GRAPH_OUTPUTS, OUTPUTS, output_called
from cocite.errors import InputError, UsageError
from cocite.measures.tfidf import SHARE
from cocite.resources import parse_size

if TYPE_CHECKING:
    from cocite.graph.partitions import BlockedGraph
    from cocite.index.plan import Keep


Decorator = Callable[[Any], Any]


_SAFE = "cocite.safe_csv"


def _safely(context: click.Context, parameter: click.Parameter, chosen: bool) -> None:
    context.meta[_SAFE] = chosen


def safe_csv() -> bool:
    """Whether the verb writes CSV and TSV for spreadsheets (``--safe-csv``)."""
    return bool(click.get_current_context().meta.get(_SAFE, False))


# Eager, as --format asks for it; so it is told by --help-all where --help has a line an option.
_safe_option: Decorator = click.option(
    "--safe-csv",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_safely,
    help="In CSV and TSV put an apostrophe before names, titles and other texts that a spreadsheet "
    "would take for formulas: those that begin with =, +, -, @, a tab or the end of a line.",
)


def _formats(names: Sequence[str], more: str = "") -> Decorator:
    option = click.option(
        "--format",
        "show",
        type=click.Choice(names, case_sensitive=False),
        default=next(iter(OUTPUTS)),
        show_default=True,
        callback=lambda context, parameter, name: output_called(name, safe=safe_csv()),
        help=f"How to print the answer: a table for people, the others for programs{more}.",
    )
    return lambda command: option(_safe_option(command))


format_option: Decorator = _formats(list(OUTPUTS))
"""Gives the verb ``show``, the function that prints its reply."""

graph_format_option: Decorator = _formats(
    [*OUTPUTS, *GRAPH_OUTPUTS],
    "; or as a graph, of the nodes that are listed and who of them is near to whom, for Gephi, "
    "NetworkX or Graphviz",
)
"""The same for a verb whose reply has a graph."""


def overwrite_option(kind: str) -> Decorator:
    """Add ``--overwrite`` to a verb that makes a store of that kind."""
    return click.option(
        "--overwrite",
        is_flag=True,
        help=f"Replace the {kind} that is there, if nothing else is in it. It stays until the new "
        "one is complete.",
    )


_UNVERIFIED = "cocite.unverified"


def _without_verifying(context: click.Context, parameter: click.Parameter, chosen: bool) -> None:
    context.meta[_UNVERIFIED] = chosen


no_verify_option: Decorator = click.option(
    "--no-verify",
    is_flag=True,
    expose_value=False,
    callback=_without_verifying,
    help="Do not compare the files that are read with their checksums. Otherwise a file that was "
    "damaged since it was written is an error that names it, and not a wrong result.",
)


def verifying() -> bool:
    """Whether the verb compares what it reads with its checksums: it has no ``--no-verify``, or it
    was not given.
    """
    return not click.get_current_context().meta.get(_UNVERIFIED, False)


threads_option: Decorator = click.option(
    "--threads", type=click.IntRange(1), help="How many cores to use.  [default: all]"
)


def _size(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_size(value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from error


memory_option: Decorator = click.option(
    "--memory",
    metavar="SIZE",
    callback=_size,
    help="How much memory the data may take, such as 600MB or 4GiB; Python takes about 170 MB more."
    "  [default: half of what is available]",
)


def resource_options(command: Any) -> Any:
    """Add ``--memory`` and ``--threads``, of which a verb makes its :class:`Means`."""
    return memory_option(threads_option(command))


def cluster_option(what: str) -> Decorator:
    """Add ``--cluster``; ``what`` the nodes do, as a sentence."""
    return click.option(
        "--cluster",
        metavar="ADDRESS|local:N",
        help=f"{what} ADDRESS is HOST:PORT of its head node, or auto: the one of this machine "
        "(cocite cluster up); local:N starts N nodes here for the time of the command. --threads "
        "and --memory are then those of a piece of work on a node.  [default: this machine alone]",
    )


def via_option(command: Any) -> Any:
    """Add ``--staging-url``, by which shards come from nodes that do not see the output."""
    return click.option(
        "--staging-url",
        "via",
        metavar="URL",
        help="With --cluster: the folder (s3://..., gs://..., file://...) by which samples come "
        "from nodes that do not see the output.  [default: nodes see GRAPH and output by the same "
        "paths]",
    )(command)


_KEEP: tuple[Decorator, ...] = (
    click.option(
        "--keep",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Keep the pages in this file only: names, one a line. Walks go over the whole "
        "graph; scores among these pages are what they would be, and other pages cannot be asked. "
        "The index is smaller in proportion.  [default: all]",
    ),
    click.option(
        "--keep-prefix",
        metavar="TEXT",
        multiple=True,
        help="Keep only the pages whose names begin like this, and those of --keep. It can be "
        "given several times.",
    ),
)


def keep_options(command: Any) -> Any:
    """Add ``--keep`` and ``--keep-prefix``, of which a verb makes its :class:`Keep`."""
    for option in reversed(_KEEP):
        command = option(command)
    return command


def exclude_option(help_text: str, *, dash: bool) -> Decorator:
    """Add ``--exclude-nodes``, the pages that are left out of a graph that is made; ``dash`` is for
    verbs that have standard input to themselves.
    """
    return click.option(
        "--exclude-nodes",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, allow_dash=dash),
        help=help_text,
    )


def excluded_in(file: str | None, links: Iterable[str]) -> list[str] | None:
    """The names in the file of ``--exclude-nodes``, ``-`` being standard input, unless it is that
    of ``links``; None if no file is given. Raises :class:`UsageError` and :class:`InputError`.
    """
    if file != "-":
        return None if file is None else names_in(Path(file))
    if "-" in links:
        raise UsageError("standard input (-) is named twice, for links and for nodes to leave out")
    return _names(sys.stdin.buffer.read(), "standard input")


_TEXTS = click.option(
    "--texts",
    metavar="FOLDER|FILE",
    type=click.Path(exists=True, path_type=Path),
    help="Compare the texts of the pages, too: a folder or a tar archive with a file a page, "
    "called as the page is, with or without an ending; or a table of names and texts. Pages with "
    "the same words in their texts are similar then, too.  [default: links alone]",
)
_TEXTS_SHARE = click.option(
    "--texts-share",
    type=float,
    metavar="SHARE",
    help="How much texts count in a score; links are the rest. A --measure that names text says so "
    f"itself.  [default: {SHARE:g}]",
)


def texts_options(command: Any) -> Any:
    """Add ``--texts`` and ``--texts-share``."""
    return _TEXTS(_TEXTS_SHARE(command))


def filter_of(file: Path | None, prefixes: Sequence[str]) -> Keep | None:
    """Which pages are kept; None for all."""
    from cocite.index.plan import Keep

    return Keep.checked(None if file is None else names_in(file), prefixes or None)


def names_in(path: Path) -> list[str]:
    """The names in a file, one a line, empty lines left out; raises :class:`InputError`."""
    return _names(path.read_bytes(), str(path))


def _names(content: bytes, label: str) -> list[str]:
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{label} is not text in UTF-8 (byte {error.start:,}); it is to hold names, one a line"
        ) from error
    return [name for name in (line.removesuffix("\r") for line in lines) if name]


def is_set(parameter: str) -> bool:
    """Whether a parameter of this verb was given, and not left to its default."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is not ParameterSource.DEFAULT


# -- apart -------------------------------------------------------------------------------


@contextmanager
def partition_option(
    graph: str, address: str | None, memory: int | None, *, cut: bool = False
) -> Iterator[tuple[BlockedGraph, int]]:
    """The graph in blocks, which will live on the cluster at the ``address``, and how many bytes a
    block may take there: as given, or what the nodes have. Raises :class:`UsageError` if there is
    no address, or something is said of how the graph is to be ``cut``.
    """
    from cocite.graph.partitions import BlockedGraph

    if address is None:
        raise UsageError(
            f"{graph} is stored in blocks: say where they are to live, --cluster local:2 for two "
            "nodes of this machine, or the address of a cluster; or take the graph it was cut from"
        )
    if cut:
        raise UsageError(
            f"{graph} is stored in blocks: leave --blocks, --out-of-core and --staging-url out"
        )
    from cocite.cluster.ray import Cluster
    from cocite.cluster.workers import hiring

    with Cluster.connect(address) as cluster:
        found = BlockedGraph.open(graph, verify=verifying(), crew=hiring(cluster))
        yield found, cluster.memory_each(memory, 1)


# -- filters -----------------------------------------------------------------------------


Command = Callable[..., Any]

_FILTERS = (
    click.option(
        "--min-score",
        type=float,
        default=0.0,
        show_default=True,
        help="Leave out hits with a lower score.",
    ),
    click.option(
        "--min-confidence",
        type=float,
        help="List only hits above --min-score, with this probability, such as 0.95.",
    ),
    click.option("--prefix", metavar="TEXT", help="List only nodes whose name begins like this."),
    click.option(
        "--exclude-prefix", metavar="TEXT", help="List no nodes whose name begins like this."
    ),
    click.option(
        "--only",
        "among",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="List only nodes that are named in this file, one a line.",
    ),
    click.option(
        "--exclude-same-site",
        "other_sites",
        is_flag=True,
        help="List no pages of the same site as NODE (URLs only).",
    ),
)
_ORDER = (
    click.option(
        "--order",
        type=click.Choice(["score", "score*pagerank", "pagerank"], case_sensitive=False),
        default="score",
        show_default=True,
        help="What comes first. The orders by PageRank take the best by score, see --candidates.",
    ),
    click.option(
        "--candidates",
        type=click.IntRange(1),
        help="How many hits to order by PageRank, the best by score.  [default: four times "
        "as many as are asked for, at least 100]",
    ),
    click.option(
        "--ranks",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The PageRanks for --order, as cocite rank -o wrote them (.npy is fastest).  "
        "[default: computed from the graph, which takes seconds for some million links]",
    ),
)


def filter_options(command: Command) -> Command:
    """Add what decides who may be a hit; ``among`` is a path."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def order_options(command: Command) -> Command:
    """Add ``--order`` and what goes with it."""
    for option in reversed(_ORDER):
        command = option(command)
    return command
