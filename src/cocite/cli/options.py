"""Flags: those of classes of options (``cocite/options/``), and those of the command line alone.

The others are formats, threads and memory, a cluster, and whether checksums are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from math import isinf
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cocite.cli.help import Sectioned
from cocite.cli.output import GRAPH_OUTPUTS, OUTPUTS, output_called
from cocite.errors import InputError, UsageError
from cocite.options.core import NodeNames, Option, Options
from cocite.options.query import RanksFile
from cocite.resources import parse_size

if TYPE_CHECKING:
    from cocite.graph.partitions import BlockedGraph
    from cocite.io.writers import Target, Types
    from cocite.options.common import OutputOptions


Command = Callable[..., Any]
Decorator = Callable[[Any], Any]


# -- options of a class, as flags ----------------------------------------------------------------


def takes(
    kind: type[Options],
    name: str,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    section: str = "",
    brief: bool = True,
    types: Mapping[str, Any] = MappingProxyType({}),
    **changes: Mapping[str, Any],
) -> Decorator:
    """Give a command the flags of ``kind``; it receives them as one object, called ``name``.

    ``only`` names the fields that it takes, by default all, and ``without`` those that it does not.
    ``section`` is the title under which help lists them; ``brief`` says whether short help does.
    ``types`` are click's, of those that only this command has. ``changes`` are
    what an option is for this command, such as ``k={"text": "How many rows."}``.
    """
    declared = {
        field: replace(each, **changes.get(field, {}))
        for field, each in kind.declared().items()
        if "cli" in each.fronts and field not in without and (not only or field in only)
    }

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(*args: Any, **parameters: Any) -> Any:
            chosen = {
                field: _as_option(parameters.pop(field), declared[field]) for field in declared
            }
            return command(*args, **parameters, **{name: kind(**chosen)})

        found: Command = call
        for each in reversed(declared.values()):
            found = _flag(each, section, brief, types.get(each.name))(found)
        return found

    return decorate


def flag_of(name: str, *kinds: type[Options]) -> str:
    """Return the flag of a field."""
    found = next((kind.declared()[name] for kind in kinds if name in kind.declared()), None)
    return found.flag.split(",")[0] if found and found.flag else "--" + name.replace("_", "-")


def _flag(option: Option[Any], section: str, brief: bool, kind: Any) -> Decorator:
    """Return click's option for one of ours."""
    names = option.flag.split(",") if option.flag else ["--" + option.name.replace("_", "-")]
    default = option.default_text
    simple = not isinstance(option.default, tuple)
    more: dict[str, Any] = {"default": option.default if simple else None}
    more["metavar"] = option.metavar or None
    help_text = option.negated or option.text
    if option.type is bool:
        more |= {"is_flag": True, "flag_value": not option.default}
    elif option.choices:
        more["type"] = click.Choice(option.choices, case_sensitive=False)
    elif option.type is int:
        low, high = (None if isinf(bound) else int(bound) for bound in (option.low, option.high))
        more["type"] = click.IntRange(low, high)
    elif option.type is float:
        more["type"] = float
    elif option.type in (NodeNames, Path, RanksFile):
        dash = option.metavar.endswith("|-")
        more["type"] = click.Path(exists=True, dir_okay=False, allow_dash=dash, path_type=Path)
    if complete := _COMPLETED.get(option.name):
        more["shell_complete"] = complete
    if kind is not None:
        more["type"] = kind
    if option.many and option.type is not NodeNames:
        more |= {"multiple": True, "default": ()}
    if default:
        help_text = f"{help_text}  [default: {default}]"
    if section := section or option.section:
        more |= {"cls": Sectioned, "section": section, "brief": brief}
    return click.option(*names, option.name, **more, help=help_text)


def _measures(context: click.Context, parameter: click.Parameter, text: str) -> Any:
    from cocite.cli.completion import measure_names  # the shell alone waits for it

    return measure_names(context, parameter, text)


def _directions(context: click.Context, parameter: click.Parameter, text: str) -> Any:
    from cocite.cli.completion import direction_names

    return direction_names(context, parameter, text)


_COMPLETED = {
    "measure": _measures,
    "measures": _measures,
    "direction": _directions,
    "directions": _directions,
}
"""What a shell offers, by the name of an option."""


def _as_option(value: Any, option: Option[Any]) -> Any:
    """Return what a command line gave as Python has it."""
    if option.type is NodeNames and isinstance(value, Path):
        return names_in(value)
    return option.default if value is None or (option.many and not value) else value


def target_for(
    output: OutputOptions, types: Types | None = None, endings: Iterable[str] | None = None
) -> Target | None:
    """Return where a table goes, before any work is done; None for the terminal."""
    from cocite.io.writers import target_of

    return target_of(
        output.output,
        output.to,
        kind=output.output_format,
        overwrite=output.overwrite,
        append=output.append,
        types=types,
        endings=endings,
        safe=safe_csv(),
    )


_SAFE = "cocite.safe_csv"


def _safely(context: click.Context, parameter: click.Parameter, chosen: bool) -> None:
    context.meta[_SAFE] = chosen


def safe_csv() -> bool:
    """Whether the command writes CSV and TSV for spreadsheets (``--safe-csv``)."""
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
"""Gives the command ``show``, the function that prints its reply."""

graph_format_option: Decorator = _formats(
    [*OUTPUTS, *GRAPH_OUTPUTS],
    "; or as a graph, of the nodes that are listed and who of them is near to whom, for Gephi, "
    "NetworkX or Graphviz",
)
"""The same for a command whose reply has a graph."""


def overwrite_option(kind: str) -> Decorator:
    """Add ``--overwrite`` to a command that makes a store of that kind."""
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
    """Whether the command compares what it reads with its checksums: it has no ``--no-verify``, or
    it was not given.
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
    """Add ``--memory`` and ``--threads``, of which a command makes its :class:`Resources`."""
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


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that is there."""
THERE = click.Path(exists=True, path_type=Path)
"""A file or a folder that is there."""


def excluded_in(file: Path | None, links: Iterable[str]) -> list[str] | None:
    """The names in the file of ``--exclude-nodes``, ``-`` being standard input, unless it is that
    of ``links``; None if no file is given. Raises :class:`UsageError` and :class:`InputError`.
    """
    if file is None or str(file) != "-":
        return None if file is None else names_in(file)
    if "-" in links:
        raise UsageError("standard input (-) is named twice, for links and for nodes to leave out")
    return _names(sys.stdin.buffer.read(), "standard input")


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
    """Whether a parameter of this command was given, and not left to its default."""
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
