"""What is asked: an index, or a graph or links, of which one is made. The options of all commands
that ask.

Of an index, measure and settings are what it was built with, and only what a measure takes when
asking can be chosen. Of a graph everything can.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cocite.cli.console import Stages
from cocite.cli.link_files import (
    cached,
    is_links,
    reading_options,
    refuse_folder,
    refuse_options,
)
from cocite.cli.options import excluded_in, flag_of, is_set, takes, verifying
from cocite.cli.output import or_of, say
from cocite.cli.settings import ask_options, graph_options, with_settings
from cocite.errors import UsageError
from cocite.measures import DEFAULT, MEASURES, Measure, find_measure
from cocite.options.ingest import ReadingOptions
from cocite.options.query import UnseenOptions
from cocite.options.source import GraphQueryOptions, QuerySource
from cocite.resources import Resources
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.index.plan import BuildOptions
    from cocite.search import Index


Command = Callable[..., Any]
_GRAPH_ONLY = "For a GRAPH or LINKS only (an INDEX was built with its own)"
_GRAPH = takes(GraphQueryOptions, "_graph", section=_GRAPH_ONLY)


def asks(command: Command) -> Command:
    """Give a command that asks ``source``, a :class:`IndexSource`: what a path becomes an
    index by, and the settings of questions.
    """

    @wraps(command)
    def call(*args: Any, **parameters: Any) -> Any:
        found = [parameters.pop(name) for name in ("_where", "_graph", "reading", "settings")]
        return command(*args, **parameters, source=IndexSource(*found))

    found: Command = call
    for option in (
        reading_options,
        with_settings(lambda each: ask_options(_GRAPH(graph_options(_GRAPH_ONLY)(each)))),
        takes(QuerySource, "_where"),
    ):
        found = option(found)
    return found


class IndexSource(NamedTuple):
    """How a path becomes an index, and the settings of the question."""

    where: QuerySource
    graph: GraphQueryOptions
    reading: ReadingOptions
    settings: dict[str, Any]


def query_nodes(
    index: Index, nodes: Sequence[str], unseen: UnseenOptions
) -> tuple[Index, Sequence[str]]:
    """Return the index, with the unseen node if there is one, and what is asked for."""
    if unseen.draft is None:
        for name in unseen.changed():
            raise UsageError(
                f"{flag_of(name, UnseenOptions)} goes with a draft: give one with --draft, or "
                "leave it out"
            )
        if not nodes:
            raise UsageError("no node is named: name one, or give a page of your own with --draft")
        return index, nodes
    if nodes:
        raise UsageError(
            f"{nodes[0]!r} is named beside a draft, which is asked alone: leave one of the two out"
        )
    from cocite.search.unseen import UnseenNode

    draft = str(unseen.draft)
    with click.open_file(draft, "rb") as file:
        read = UnseenNode.read(file.read(), "standard input" if draft == "-" else draft)
    found = index.with_unseen(read, name=unseen.draft_name, skip_unknown=unseen.skip_unknown)
    return found, [found.nodes.name(len(found.nodes) - 1)]


def opened(
    path: str, source: IndexSource, named: Sequence[str] = (), **means: Any
) -> tuple[Index, dict[str, Any]]:
    """Return what answers, and the settings of the question.

    ``named`` are the nodes that are asked for, of which the last one may have taken the place of
    ``path``; ``means`` are threads and memory.
    """
    from cocite.search import open_index

    links = is_links(path)
    _check_first(path, links, named)
    stored = not links and kind_of(path) == "graph"
    where, chosen = source.where, source.graph.changed()
    if not links:
        refuse_folder(path)
        refuse_options(path, where, source.reading, stored=stored)
    if (links or stored) and where.graphs:
        what = "is a file of links" if links else "is a graph itself"
        raise UsageError(f"{path} {what}: leave --graph out")
    exclude = _left_out(path, where.exclude_nodes, links, named)
    if not links and not stored:
        if chosen:
            raise UsageError(
                f"--{next(iter(chosen))} is fixed when an index is built; {path} is no stored "
                "graph. Ask the graph itself, or build another index"
            )
        graph = list(where.graphs)
        return open_index(path, graph=graph, verify=verifying(), **means), source.settings
    limits = Resources.checked(**means)  # read of the machine once, for the build and the question
    means = {"threads": limits.threads, "memory": limits.memory}
    built, asked = _built_for(path, source, "file of links" if links else "graph")
    found = cached(path, where, source.reading, index=True, built=built, exclude=exclude, **means)
    return open_index(found, graph=path if stored else None, **means), asked


def _check_first(path: str, links: bool, named: Sequence[str]) -> None:
    """Raise :class:`UsageError` where a node was named before what answers."""
    swapped = named[-1] if named else None
    if swapped is not None and kind_of(path) is None and not links:
        kind = kind_of(swapped) or ("file of links" if is_links(swapped) else None)
        if kind is not None and swapped != "-":
            raise UsageError(f"{swapped} comes first: the {kind}, then what is asked of it")


def _built_for(
    path: str, source: IndexSource, what: str
) -> tuple[BuildOptions | None, dict[str, Any]]:
    """Return what the index of links or a graph is made of, None for the default one, and the
    settings of the question.
    """
    from cocite.index.plan import BuildOptions

    measure = find_measure(source.graph.measure or DEFAULT)
    if measure.texts:
        made_here = "--measure tfidf --texts FOLDER -o INDEX"
        raise UsageError(
            f"{measure.name} compares texts: cocite index {shlex.quote(path)} "
            f"{made_here.replace('text', measure.name, 1)}; then ask INDEX"
        )
    _see_it_takes(measure, source.settings, what)
    names = {setting.name for setting in measure.ask}
    asked = {name: value for name, value in source.settings.items() if name in names}
    built = {name: value for name, value in source.settings.items() if name not in names}
    if (
        measure.name == DEFAULT
        and not built
        and source.graph == GraphQueryOptions(measure=source.graph.measure)
    ):
        return None, asked
    way, bare = source.graph.direction, source.graph.unweighted
    return BuildOptions.checked(measure.name, way, None, built, unweighted=bare), asked


def _left_out(path: str, file: Path | None, links: bool, named: Sequence[str]) -> list[str]:
    """Return the nodes that are to be left out, none of them asked for."""
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
    for name, times in (("max_edges", 10), ("tolerance", 0.1)):
        value = settings.get(name)
        if name in asked and isinstance(value, int | float):
            return f"--{name} {value * times:g}" if times < 1 else f"--{name} {value * times}"
    return ""


def _unrefined(measure: Measure) -> str:
    """Why there is nothing to refine, and what gives better scores if anything does."""
    asked = {setting.name for setting in measure.ask}
    if "max_edges" in asked:
        return f"{measure.name} has no samples; a larger --max-edges narrows its intervals"
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
