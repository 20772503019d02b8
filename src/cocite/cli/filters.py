"""Options of the verbs that list hits: which nodes may be hits, and what comes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["filter_options", "order_options"]

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
        "--among",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="List only nodes that are named in this file, one a line.",
    ),
    click.option(
        "--other-sites", is_flag=True, help="List no pages of the same site as NODE (URLs only)."
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
