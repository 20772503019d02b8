"""What is asked: an index, or a graph or links, of which one is made. The options of all verbs that
ask.

Of an index, measure and settings are what it was built with, and only what a measure takes when
asking can be chosen. Of a graph everything can.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.completion import direction_names, measure_names
from cocite.cli.console import Stages
from cocite.cli.help import Sectioned
from cocite.cli.link_files import (
    bipartite_option,
    cache_key_of,
    cache_option,
    is_links,
    refuse_folder,
    refuse_options,
    side_option,
    source_options,
    titles_option,
)
from cocite.cli.options import exclude_option, excluded_in, is_set, verifying
from cocite.cli.output import or_of, say
from cocite.cli.settings import ask_options, chosen_settings, graph_options
from cocite.errors import UsageError
from cocite.graph.links import DIRECTIONS
from cocite.measures import DEFAULT, MEASURES, Measure, find_measure
from cocite.resources import Resources
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.search import Index


Command = Callable[..., Any]
_GRAPH_ONLY = "For a GRAPH or LINKS only (an INDEX was built with its own)"
_OF_A_GRAPH = ("measure", "direction", "unweighted")

_GRAPH = click.option(
    "--graph",
    "graphs",
    metavar="DIR",
    multiple=True,
    help="Where the graph of an INDEX is now, if it was moved. Repeat it for an index that was "
    "refreshed from several graphs.",
)
_EXCLUDE = exclude_option(
    "Leave these nodes out of a file of LINKS: named in this file, one a line, with all "
    "links to and from them, such as hubs that are linked with all.",
    dash=False,
)
_SIDE = side_option(
    "Of what is bipartite the side of the nodes that are asked for, such as user.  [default: "
    "the side of the targets, item]"
)
_ONLY = (
    click.option(
        "--measure",
        metavar="NAME",
        shell_complete=measure_names,
        cls=Sectioned,
        section=_GRAPH_ONLY,
        help="What similar means (see: cocite measures).  [default: neighbourhood]",
    ),
    click.option(
        "--direction",
        metavar=f"[{'|'.join(DIRECTIONS)}]",
        shell_complete=direction_names,
        cls=Sectioned,
        section=_GRAPH_ONLY,
        help="Which links count.  [default: as for cocite index]",
    ),
    click.option(
        "--unweighted",
        is_flag=True,
        default=None,
        cls=Sectioned,
        section=_GRAPH_ONLY,
        help="Ignore the weights of links.",
    ),
)
_REFINE = (
    click.option(
        "--refine",
        is_flag=True,
        help="Give better scores than the samples alone. With simrank, scores are computed, and "
        "the intervals always hold. With other measures that have samples, the best hits get more "
        "of them. This reads the graph.",
    ),
    click.option(
        "--target-error",
        type=float,
        help="How far off a refined score may be. If that is not met, a last line says how far off "
        "it may be. Turns on --refine.  [default: 0.001]",
    ),
)


together_option = click.option(
    "--together",
    type=click.Choice(["mean", "least"], case_sensitive=False),
    default="mean",
    show_default=True,
    help="How several nodes are asked together: by the mean of what they score with another node, "
    "or by the least of it.",
)


_DRAFT = (
    click.option(
        "--draft",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="Ask for a page that is not in the graph yet, in the place of NODE, as if it had been "
        "there. FILE has the pages that it links to, one a line; '<- ' before those that link to "
        "it; behind a tab the weight of the link, if the index goes by weights. - reads standard "
        "input.",
    ),
    click.option(
        "--draft-name",
        metavar="NAME",
        help="What the draft is called in the answer; an URL, for --exclude-same-site.  "
        "[default: draft]",
    ),
    click.option(
        "--skip-unknown",
        is_flag=True,
        help="Leave out the draft's links with unknown pages.",
    ),
)


def draft_options(command: Command) -> Command:
    """Add ``--draft`` and what goes with it."""
    for option in reversed(_DRAFT):
        command = option(command)
    return command


def query_nodes(
    index: Index,
    nodes: Sequence[str],
    draft: str | None,
    draft_name: str | None,
    skip_unknown: bool,
) -> tuple[Index, Sequence[str]]:
    """The index, with the draft if there is one, and what is asked: the nodes, or the draft."""
    if draft is None:
        for name, there in (
            ("--draft-name", draft_name is not None),
            ("--skip-unknown", skip_unknown),
        ):
            if there:
                raise UsageError(
                    f"{name} goes with a draft: give one with --draft, or leave it out"
                )
        if not nodes:
            raise UsageError("no node is named: name one, or give a page of your own with --draft")
        return index, nodes
    if nodes:
        raise UsageError(
            f"{nodes[0]!r} is named beside a draft, which is asked alone: leave one of the two out"
        )
    from cocite.search.unseen import UnseenNode

    with click.open_file(draft, "rb") as file:
        read = UnseenNode.read(file.read(), "standard input" if draft == "-" else draft)
    found = index.drafted(read, name=draft_name, skip_unknown=skip_unknown)
    return found, [found.nodes.name(len(found.nodes) - 1)]


def query_options(command: Command) -> Command:
    """Add ``--graph``, ``--no-cache``, the settings of questions, and what is of a graph only."""
    options: list[Command] = [
        _GRAPH,
        cache_option,
        titles_option,
        _EXCLUDE,
        bipartite_option,
        _SIDE,
        ask_options,
        *_ONLY,
        graph_options(_GRAPH_ONLY),
        source_options,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def refine_options(command: Command) -> Command:
    """Add ``--refine`` and ``--target-error``."""
    for option in reversed(_REFINE):
        command = option(command)
    return command


def opened(
    path: str, options: dict[str, Any], named: Sequence[str] = ()
) -> tuple[Index, dict[str, Any]]:
    """What is there to be asked, and the settings of the question. ``named`` are the nodes that are
    asked for, of which the last one may have taken the place of ``path``; ``options`` has
    ``memory``, and ``threads`` where the verb takes it.
    """
    from cocite.index.plan import BuildOptions
    from cocite.search import open_index

    links, swapped = is_links(path), named[-1] if named else None
    if swapped is not None and kind_of(path) is None and not links:
        kind = kind_of(swapped) or ("file of links" if is_links(swapped) else None)
        if kind is not None and swapped != "-":
            raise UsageError(f"{swapped} comes first: the {kind}, then what is asked of it")
    stored = not links and kind_of(path) == "graph"
    if not links:
        refuse_folder(path)
        refuse_options(path, options, cached=stored)
    settings, graphs = chosen_settings(options), options["graphs"]
    means = {"threads": options.get("threads"), "memory": options["memory"]}
    chosen = {name: options[name] for name in _OF_A_GRAPH if options[name] is not None}
    if (links or stored) and graphs:
        what = "is a file of links" if links else "is a graph itself"
        raise UsageError(f"{path} {what}: leave --graph out")
    options = options | {"exclude": _left_out(path, options["exclude_nodes"], links, named)}
    if not links and not stored:
        if chosen:
            raise UsageError(
                f"--{next(iter(chosen))} is fixed when an index is built; {path} is no stored "
                "graph. Ask the graph itself, or build another index"
            )
        return open_index(path, graph=graphs, verify=verifying(), **means), settings
    measure = find_measure(chosen.pop("measure", None) or DEFAULT)
    if measure.texts:
        made_here = "--measure text --texts FOLDER -o INDEX"
        raise UsageError(
            f"{measure.name} compares texts: cocite index {shlex.quote(path)} "
            f"{made_here.replace('text', measure.name, 1)}; then ask INDEX"
        )
    _see_it_takes(measure, settings, "file of links" if links else "graph")
    names = {setting.name for setting in measure.ask}
    asked = {name: value for name, value in settings.items() if name in names}
    built = {name: value for name, value in settings.items() if name not in names}
    made = None
    if measure.name != DEFAULT or chosen or built:
        way, bare = chosen.get("direction"), bool(chosen.get("unweighted"))
        made = BuildOptions.checked(measure.name, way, None, built, unweighted=bare)
    limits = Resources.checked(**means)  # read of the machine once, for the build and the question
    means = {"threads": limits.threads, "memory": limits.memory}
    found = cache_key_of(path, options | means, index=True, made=made)
    graph = path if stored else None
    return open_index(found, graph=graph, **means), asked


def _left_out(path: str, file: str | None, links: bool, named: Sequence[str]) -> list[str]:
    """The nodes that are to be left out, none of them asked for."""
    if file is None:
        return []
    if not links:
        graph = path if kind_of(path) == "graph" else "GRAPH"
        raise UsageError(
            f"{path} is no file of links. Leave nodes out of the graph, and ask what comes of it: "
            f"cocite ingest {graph} -o DIR --exclude-nodes {file}"
        )
    exclude = excluded_in(file, ()) or []
    for name in {*named} & {*exclude}:
        raise UsageError(f"{name!r} is asked for, and is to be left out by {file}")
    return exclude


def _see_it_takes(measure: Measure, settings: Iterable[str], what: str) -> None:
    """Raise :class:`UsageError` for a setting that is not one of the measure that answers."""
    known = {setting.name for setting in (*measure.build, *measure.ask)}
    for name in settings:
        if name not in known:
            takers = [
                each.name
                for each in MEASURES.values()
                if any(setting.name == name for setting in (*each.build, *each.ask))
            ]
            raise UsageError(
                f"{measure.name} answers for this {what}, and it has no --{name.replace('_', '-')}"
                f". Leave that out, or choose a measure that has it, with --measure: "
                f"{or_of(takers)}"
            )


def narrowing(measure: Measure, settings: Mapping[str, object]) -> str:
    """What to type for narrower intervals of a measure without samples; empty if nothing does it.
    ``settings`` are those of the answer.
    """
    asked = {setting.name for setting in measure.ask}
    for name, times in (("effort", 10), ("tolerance", 0.1)):
        value = settings.get(name)
        if name in asked and isinstance(value, int | float):
            return f"--{name} {value * times:g}" if times < 1 else f"--{name} {value * times}"
    return ""


def _unrefined(measure: Measure) -> str:
    """Why there is nothing to refine, and what gives better scores if anything does."""
    asked = {setting.name for setting in measure.ask}
    if "effort" in asked:
        return f"{measure.name} has no samples; a larger --effort narrows its intervals"
    if "tolerance" in asked:
        return f"{measure.name} has no samples; a smaller --tolerance narrows its intervals"
    return f"the scores of {measure.name} are computed, and not estimated"


@contextmanager
def preparing(index: Index, refine: bool) -> Iterator[None]:
    """Show what is made ready for a refined answer, which an index may hold already; or say that
    there is nothing to refine.
    """
    if not refine or index.refiner is None:
        if refine:
            option = "--refine" if is_set("refine") else "--target-error"
            say(f"{option} changes nothing: {_unrefined(index.stored.measure)}")
        yield
        return
    with Stages({"refining": "nodes"}) as stages:
        index.refiner.report = lambda sweep, done, total: stages(
            f"refining {sweep + 1}", done, total
        )
        yield
