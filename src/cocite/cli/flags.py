"""Flags, derived from option classes (``cocite/options/``) and from the settings of measures.

Flags that only the command line has are defined here. A setting of several measures is one flag,
whose help lists the measures with their defaults.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click
from click.core import ParameterSource

from cocite.cli.help import SETTING, Sectioned
from cocite.cli.output import GRAPH_OUTPUTS, OUTPUTS, output_called
from cocite.errors import InputError, UsageError
from cocite.measures import MEASURES, MEETING_WEIGHT, Measure
from cocite.options import NodeNames, Option, Options
from cocite.options.build import ExistingPath, Sample
from cocite.options.common import OutputOptions
from cocite.options.query import RanksFile
from cocite.resources import parse_size

if TYPE_CHECKING:
    from cocite.graph.partitions import BlockedGraph
    from cocite.io.writers import Target, Types


Command = Callable[..., Any]
Decorator = Callable[[Any], Any]


# -- types of values -------------------------------------------------------------------------


def _meeting_weight(value: str | list[float]) -> str | list[float]:
    """Return the numbers in a file; return any other text unchanged, to be parsed later."""
    if not isinstance(value, str) or value == "hitting" or not Path(value).is_file():
        return value
    try:
        return [float(line) for line in names_in(Path(value))]
    except ValueError as error:
        raise InputError(
            f"{value}: {error}; the file must contain a number from 0 to 1 for each step, one "
            "per line"
        ) from error


def _sample_range(value: str | range) -> range:
    """Parse a range, ``100..199``, or a single number."""
    if isinstance(value, range):
        return value
    match = re.fullmatch(r"([0-9]{1,10})(?:\.\.([0-9]{1,10}))?", value)
    if match is None:
        raise click.BadParameter(
            f"{value!r} is not a range of numbers; write a range like 100..199"
        )
    return range(int(match[1]), int(match[2] or match[1]) + 1)


def _type_of(option: Option[Any]) -> Any:
    """Return click's type for an option, or None for text."""
    if option.name == MEETING_WEIGHT.name:
        return _meeting_weight
    if option.choices:
        return click.Choice(option.choices, case_sensitive=False)
    if option.type is int:
        low, high = (None if isinf(bound) else int(bound) for bound in (option.low, option.high))
        return click.INT if low is high is None else click.IntRange(low, high)
    if option.type in (NodeNames, Path, RanksFile):
        dash = option.metavar.endswith("|-")
        return click.Path(exists=True, dir_okay=False, allow_dash=dash, path_type=Path)
    if option.type is ExistingPath:
        return click.Path(exists=True, path_type=Path)
    if option.type is Sample:
        return _sample_range
    return float if option.type is float else None


# -- options of a class, as flags ----------------------------------------------------------------


SETTINGS = "Settings of the measure"
ASKED = frozenset(setting.name for measure in MEASURES.values() for setting in measure.ask)
"""Names of query settings; for some measures, some of these are build settings."""
Chooser = Callable[[Measure], Iterable[Option[Any]]]
BUILDING: Mapping[str, Chooser] = {SETTINGS: lambda measure: measure.build}
"""Build settings: ``--samples``, ``--length``, ..."""
ASKING: Mapping[str, Chooser] = {SETTINGS: lambda measure: measure.ask}
"""Query settings: ``--decay``, ..."""
EVERY: Mapping[str, Chooser] = {
    f"{SETTINGS} when building": lambda measure: (
        s for s in measure.build + measure.ask if s.name not in ASKED
    ),
    f"{SETTINGS} when querying": lambda measure: (
        s for s in measure.build + measure.ask if s.name in ASKED
    ),
}


def takes(
    kind: type[Options],
    name: str,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    section: str = "",
    brief: bool = True,
    settings: Mapping[str, Chooser] | None = None,
    **changes: Mapping[str, Any],
) -> Decorator:
    """Add the flags of ``kind`` to a command, which receives the options as one object, ``name``.

    ``only`` and ``without`` select fields. ``section`` is their section in the help; ``brief``
    includes them in the short help. ``settings`` adds measures' settings by section. ``changes``
    overrides attributes of options: ``k={"text": "How many rows."}``.
    """
    chosen_settings = [
        (setting, title)
        for title, chooser in (settings or {}).items()
        for setting in _settings(chooser)
    ]
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
            if settings is not None:
                values = {s.name: parameters.pop(SETTING + s.name) for s, _ in chosen_settings}
                chosen["settings"] = {n: v for n, v in values.items() if v is not None}
            return command(*args, **parameters, **{name: kind(**chosen)})

        found: Command = call
        for setting, title in reversed(chosen_settings):
            found = _flag(setting, title, True, SETTING)(found)
        for each in reversed(declared.values()):
            found = _flag(each, section or each.section, brief)(found)
        return found

    return decorate


def flag_of(name: str, *kinds: type[Options]) -> str:
    """Return the flag of a field, such as ``--max-edges``."""
    found = next((kind.declared()[name] for kind in kinds if name in kind.declared()), None)
    return found.flag.split(",")[0] if found and found.flag else "--" + name.replace("_", "-")


def _flag(option: Option[Any], section: str, brief: bool, prefix: str = "") -> Decorator:
    names = option.flag.split(",") if option.flag else [flag_of(option.name)]
    simple = not isinstance(option.default, tuple)
    more: dict[str, Any] = {"default": option.default if simple else None}
    if option.type is bool:
        more |= {"is_flag": True, "flag_value": not option.default}
    else:
        more |= {"metavar": option.metavar or None, "type": _type_of(option)}
    if option.name.removesuffix("s") in ("measure", "direction"):
        more["shell_complete"] = _completed
    if option.many and option.type is not NodeNames:
        more |= {"multiple": True, "default": ()}
    more["help"] = option.negated or option.text
    if option.default_text:
        more["help"] += f"  [default: {option.default_text}]"
    if section:
        more |= {"cls": Sectioned, "section": section, "brief": brief}
    return click.option(*names, prefix + option.name, **more)


def _completed(context: click.Context, parameter: click.Parameter, text: str) -> Any:
    from cocite.cli.commands import completion  # loads slowly, and only completion needs it

    measure = str(parameter.name).startswith("measure")
    names = completion.measure_names if measure else completion.direction_names
    return names(context, parameter, text)


def _as_option(value: Any, option: Option[Any]) -> Any:
    if option.type is NodeNames and isinstance(value, Path):
        return names_in(value)
    return option.default if value is None or (option.many and not value) else value


def _settings(chooser: Chooser) -> list[Option[Any]]:
    """Return the settings of all measures; merge those with the same name."""
    takers: dict[str, dict[str, Option[Any]]] = {}
    for measure in MEASURES.values():
        for setting in chooser(measure):
            takers.setdefault(setting.name, {})[measure.name] = setting
    found = []
    for name, each in takers.items():
        first, texts = next(iter(each.values())), dict[str, list[str]]()
        for measure_name, setting in each.items():
            texts.setdefault(setting.text, []).append(measure_name)
        if len(texts) > 1:
            text = " ".join(f"For {', '.join(names)}: {usage}." for usage, names in texts.items())
        else:
            text = first.text[0].upper() + first.text[1:] + "."
            text += f" For {', '.join(each)}." if len(each) < len(MEASURES) else ""
        if name == MEETING_WEIGHT.name:
            text += " A FILE lists a number for each step, one per line."
        usual, *others = dict.fromkeys(setting.default for setting in each.values())
        defaults = [str(usual)] + [
            f"{value} for {', '.join(n for n, s in each.items() if s.default == value)}"
            for value in others
        ]
        choices = tuple(dict.fromkeys(c for setting in each.values() for c in setting.choices))
        unset = "" if first.type is bool else "; ".join(defaults)
        metavar = "FILE|hitting|EXPR" if name == MEETING_WEIGHT.name else ""
        allowed: dict[str, Any] = {
            "choices": choices,
            "kind": first.type,
            "unset": unset,
            "metavar": metavar,
        }
        found.append(Option(name, None, text, -inf, inf, **allowed))
    return found


def is_set(parameter: str) -> bool:
    """Return whether the user gave a parameter of this command."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is not ParameterSource.DEFAULT


# -- outputs -------------------------------------------------------------------------------------


def outputs(text: str, kinds: Sequence[str], **changes: Any) -> Decorator:
    """Give a command ``output``, for tables of ``kinds``; ``changes`` are as for :func:`takes`."""
    output = {"text": text, **changes.pop("output", {})}
    formats = {"choices": kinds, **changes.pop("output_format", {})}
    return takes(OutputOptions, "output", output=output, output_format=formats, **changes)


def target_for(
    output: OutputOptions, types: Types | None = None, endings: Iterable[str] | None = None
) -> Target | None:
    """Return the checked destination of a table, or None to print it."""
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


def _remembered(*names: str, **more: Any) -> tuple[Decorator, Callable[[], bool]]:
    """Return a flag that commands do not receive, and a function that returns its value."""
    key = f"cocite{names[0]}"

    def remember(context: click.Context, parameter: click.Parameter, chosen: bool) -> None:
        context.meta[key] = chosen

    decorator = click.option(*names, is_flag=True, expose_value=False, callback=remember, **more)
    return decorator, lambda: bool(click.get_current_context().meta.get(key, False))


# Eager, because --format reads it; the short help omits eager flags.
_safe_option, safe_csv = _remembered(
    "--safe-csv",
    is_eager=True,
    help="In CSV and TSV, put an apostrophe before cells that a spreadsheet would read as "
    "formulas: those that begin with =, +, -, @, a tab or a line break.",
)
no_verify, _unverified = _remembered(
    "--no-verify",
    help="Skip checksum verification of the files that are read. By default, a damaged file "
    "causes an error that names the file, never a wrong result.",
)


def verifying() -> bool:
    """Return whether to verify the checksums of the input."""
    return not _unverified()


def _formats(names: Sequence[str], more: str = "") -> Decorator:
    option = click.option(
        "--format",
        "show",
        type=click.Choice(names, case_sensitive=False),
        default=next(iter(OUTPUTS)),
        show_default=True,
        callback=lambda context, parameter, name: output_called(name, safe=safe_csv()),
        help=f"How to print the answer: a table for people, the other formats for programs{more}.",
    )
    return lambda command: option(_safe_option(command))


format: Decorator = _formats(list(OUTPUTS))
"""Gives a command ``show``, the function that prints its reply."""

graph_format: Decorator = _formats(
    [*OUTPUTS, *GRAPH_OUTPUTS],
    "; or a graph of the listed nodes, with links between related ones, for Gephi, NetworkX or "
    "Graphviz",
)
"""``format`` for commands whose replies have a graph."""


def overwrite(kind: str) -> Decorator:
    """Add ``--overwrite`` to a command that makes a graph or an index."""
    return click.option(
        "--overwrite",
        is_flag=True,
        help=f"Replace an existing {kind}, if its directory holds nothing else. The old {kind} "
        "is kept until the new one is complete.",
    )


def store(kind: str) -> Decorator:
    """Add ``--output`` to a command that makes a graph or an index, locally or at a URL."""
    return click.option(
        "-o",
        "--output",
        required=True,
        metavar="DIR",
        help=f"The {kind} to create: a directory, or a URL (s3://..., gs://..., file://...), to "
        f"which the complete {kind} is uploaded.",
    )


# -- resources -----------------------------------------------------------------------------------


threads: Decorator = click.option(
    "--threads", type=click.IntRange(1), help="Number of cores to use.  [default: all]"
)


def _size(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_size(value)
    except UsageError as error:
        raise click.BadParameter(str(error)) from error


def memory_of(process: str) -> Decorator:
    """Return ``--memory`` for the named process."""
    return click.option(
        "--memory",
        metavar="SIZE",
        callback=_size,
        help=f"How much memory {process} may use, such as 600MB or 4GiB: all resident memory, "
        "including mapped files. Python and its libraries use 52 MB.  [default: half of what is "
        "available]",
    )


memory = memory_of("the process")


class ResourceLimits(TypedDict):
    """The limits of a command's :class:`Resources`."""

    memory: int | None
    threads: int | None


def resources(command: Command) -> Any:
    """Add ``--memory`` and ``--threads``, which the command receives as ``limits``."""

    @wraps(command)
    def call(*args: Any, memory: int | None, threads: int | None, **parameters: Any) -> Any:
        return command(*args, limits=ResourceLimits(memory=memory, threads=threads), **parameters)

    return memory(threads(call))


def cluster(what: str) -> Decorator:
    """Add ``--cluster``; ``what`` is a sentence on what the nodes do."""
    return click.option(
        "--cluster",
        metavar="ADDRESS|local:N",
        help=f"{what} ADDRESS is HOST:PORT of its head node, or auto for this machine's cluster "
        "(cocite cluster up). local:N starts N nodes here for this command. With --cluster, "
        "--threads and --memory apply to each task on a node.  [default: this machine alone]",
    )


@contextmanager
def open_partitions(
    graph: str, address: str | None, memory: int | None, *, cut: bool = False
) -> Iterator[tuple[BlockedGraph, int]]:
    """Open a partitioned graph on the cluster at ``address``.

    Yields the graph and the bytes for a block there. Raises :class:`UsageError` without an address,
    or if options would ``cut`` the graph.
    """
    from cocite.graph.partitions import BlockedGraph

    if address is None:
        raise UsageError(
            f"{graph} is partitioned: choose a cluster, such as --cluster local:2 for two nodes "
            "on this machine, or use the original graph"
        )
    if cut:
        raise UsageError(f"{graph} is partitioned: omit --blocks, --out-of-core and --staging-url")
    from cocite.cluster.ray import Cluster
    from cocite.cluster.workers import ClusterPool

    with Cluster.connect(address) as cluster:
        found = BlockedGraph.open(graph, verify=verifying(), crew=partial(ClusterPool, cluster))
        yield found, cluster.memory_each(memory, 1)


# -- names in files ------------------------------------------------------------------------------


def excluded_in(file: Path | None, links: Iterable[str]) -> list[str] | None:
    """Return the names in the file of ``--exclude-nodes``, or None without a file.

    Raises :class:`UsageError` if standard input (``-``) is also one of the ``links``, and
    :class:`InputError` if the file is not UTF-8.
    """
    if file is None or str(file) != "-":
        return None if file is None else names_in(file)
    if "-" in links:
        raise UsageError(
            "standard input (-) is given twice, for links and for nodes to exclude: "
            "pass one of the two as a file"
        )
    return _names(sys.stdin.buffer.read(), "standard input")


def names_in(path: Path) -> list[str]:
    """Return the nonempty lines of a file; raises :class:`InputError`."""
    return _names(path.read_bytes(), str(path))


def _names(content: bytes, label: str) -> list[str]:
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{label} is not UTF-8 text (byte {error.start:,}); it must contain names, one per line"
        ) from error
    return [name for name in (line.removesuffix("\r") for line in lines) if name]
