"""What is asked: an index, or a graph as if it had one. The options of all verbs that ask.

Of an index, measure and settings are what it was built with, and only what a measure takes when
asking can be chosen. Of a graph everything can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.options import Sectioned
from cocite.cli.progress import Stages
from cocite.cli.settings import SETTINGS, all_options, given
from cocite.errors import UsageError
from cocite.graph.links import DIRECTIONS
from cocite.measures import find_measure
from cocite.store import kind_of

if TYPE_CHECKING:
    from cocite.query import Index

__all__ = ["asking_options", "opened", "preparing", "refine_options"]

Command = Callable[..., Any]
_GRAPH_ONLY = "Of a GRAPH only, as an index would be built with them"
_OF_A_GRAPH = ("measure", "direction", "unweighted")

_GRAPH = click.option(
    "--graph",
    "graphs",
    metavar="DIR",
    multiple=True,
    help="Where the graph of an INDEX is, if not where it was when indexed; several of an index "
    "that was refreshed.",
)
_ONLY = (
    click.option(
        "--measure",
        metavar="NAME",
        cls=Sectioned,
        section=_GRAPH_ONLY,
        help="What similar means (see: cocite measures).  [default: psimrank]",
    ),
    click.option(
        "--direction",
        metavar=f"[{'|'.join(DIRECTIONS)}]",
        cls=Sectioned,
        section=_GRAPH_ONLY,
        help="Whose links are compared.  [default: the measure's]",
    ),
    click.option(
        "--unweighted",
        is_flag=True,
        default=None,
        cls=Sectioned,
        section=_GRAPH_ONLY,
        help="Leave the weights of links aside.",
    ),
)
_REFINE = (
    click.option(
        "--refine",
        is_flag=True,
        help="Better scores than the samples': computed ones of simrank, with certain intervals; "
        "more samples for the best of other measures of walks. Reads the graph.",
    ),
    click.option(
        "--target-error",
        type=float,
        help="How far off a refined score may be; its interval tells what came of it. Refines.  "
        "[default: 0.001]",
    ),
)


def asking_options(command: Command) -> Command:
    """Add ``--graph``, what is of a graph only, and the settings of all measures."""
    options: list[Command] = [
        _GRAPH,
        all_options(True, SETTINGS),
        *_ONLY,
        all_options(False, _GRAPH_ONLY),
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
    path: str, options: dict[str, Any], swapped: str | None = None
) -> tuple[Index, dict[str, Any]]:
    """What is there to be asked, and the settings of the question. ``swapped`` is the argument that
    may have taken the place of ``path``.
    """
    from cocite.query import open_graph, open_index

    if swapped is not None and kind_of(path) is None and kind_of(swapped) is not None:
        raise UsageError(f"{swapped} comes first: the {kind_of(swapped)}, then what is asked of it")
    settings, graphs = given(options), options["graphs"]
    chosen = {name: options[name] for name in _OF_A_GRAPH if options[name] is not None}
    if kind_of(path) != "graph":
        if chosen:
            raise UsageError(
                f"--{next(iter(chosen))} is fixed when an index is built; {path} is no stored "
                "graph. Ask the graph itself, or build another index"
            )
        return open_index(path, graph=graphs), settings
    if graphs:
        raise UsageError(f"{path} is a graph itself: leave --graph out")
    names = {s.name for s in find_measure(chosen.get("measure", "psimrank")).ask}
    asked = {name: value for name, value in settings.items() if name in names}
    built = {name: value for name, value in settings.items() if name not in names}
    return open_graph(path, **chosen, **built), asked


@contextmanager
def preparing(asked: Index, refine: bool) -> Iterator[None]:
    """Show what is made ready for a refined answer, which an index may hold already."""
    if not refine or asked.refiner is None:
        yield
        return
    with Stages({"refining": "nodes"}) as stages:
        asked.refiner.report = lambda sweep, done, total: stages(
            f"refining {sweep + 1}", done, total
        )
        yield
