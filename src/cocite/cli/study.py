"""``cocite rank --study``: how PageRank converges, as tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.options import Sectioned, verifying
from cocite.cli.outputs import Reply
from cocite.cli.progress import Stages
from cocite.cli.text import say, table_text
from cocite.errors import UsageError

if TYPE_CHECKING:
    from cocite.graph import Graph
    from cocite.ranking import ConvergenceStudy, Query

__all__ = ["queries_of", "run_study", "study_options"]


def _whole_numbers(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 5,10,25") from None


_option: Callable[..., Callable[[Any], Any]] = partial(
    click.option, cls=Sectioned, section="For --study only"
)
_shared = partial(click.option, cls=Sectioned, section="For --study and --against")
_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--study",
        metavar="DIR",
        help="Write a study of convergence: into the new directory DIR, residual, positions and "
        "similarity of the top after each sweep, as CSV and pictures.",
    ),
    _option(
        "--compared",
        metavar="LIST",
        default="5,10,25,50",
        show_default=True,
        callback=_whole_numbers,
        help="After how many sweeps the order is compared.",
    ),
    _option(
        "--reference",
        type=click.IntRange(2),
        default=100,
        show_default=True,
        help="How many sweeps to make in all. Orders are compared with the one after these.",
    ),
    _shared(
        "--top",
        type=click.IntRange(1),
        default=10_000,
        show_default=True,
        help="How many of the highest nodes to look at.",
    ),
    _shared(
        "--bucket",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="How many positions share a bar of the histogram.",
    ),
    _shared(
        "--query-nodes",
        multiple=True,
        metavar="FILE",
        help="Study the order of these nodes, too, named in FILE, one a line. Repeatable.",
    ),
    _shared(
        "--query-words",
        multiple=True,
        metavar="WORDS",
        help="Study nodes that have these words in their names, too: all of them, in upper or "
        "lower case. Repeatable.",
    ),
    _shared(
        "--query-texts",
        metavar="PATH",
        help="Look for the words in the pages' texts instead: a folder or tar archive with a file "
        "a node, or a table of names and texts.",
    ),
    _option("--no-plots", is_flag=True, help="Write the tables only, no pictures."),
]


def study_options(command: Any) -> Any:
    """The options of a study."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def queries_of(
    graph: Graph, files: Sequence[str], words: Sequence[str], texts: str | None
) -> list[Query]:
    """The sets of nodes that are named in files, or found by words in names or ``texts``."""
    from cocite.ranking import queries_of_words, query_of_nodes

    if texts is not None and not words:
        raise UsageError("--query-texts says where words are looked for: give some, --query-words")
    queries = [query_of_nodes(graph, file) for file in files]
    return queries + queries_of_words(graph, words, texts)


def run_study(
    path: str,
    output: str,
    toward: tuple[str, ...],
    personalise: tuple[str, ...],
    overwrite: bool,
    *,
    compared: tuple[int, ...],
    reference: int,
    top: int,
    bucket: int,
    query_nodes: tuple[str, ...],
    query_words: tuple[str, ...],
    query_texts: str | None,
    no_plots: bool,
    damping: float,
    dangling: str,
    removals: int,
    memory: int | None,
    blocks: int | None,
    unweighted: bool,
    **run_only: object,
) -> Reply:
    """Make the study and write it; returns its summary."""
    from cocite.graph import Graph
    from cocite.ranking import study, toward_of
    from cocite.ranking.documents import ConvergenceDocument
    from cocite.ranking.figures import check_study_output, write_study

    check_study_output(output, overwrite, not no_plots)
    graph = Graph.open(path, verify=verifying())
    if graph.in_weights is not None and not unweighted:
        raise UsageError(
            "a study lets all links count the same, and these have weights: pass --unweighted"
        )
    queries = queries_of(graph, query_nodes, query_words, query_texts)
    with Stages(dict.fromkeys(("reference", "power", "Gauss-Seidel"), "sweeps")) as stages:
        found = study(
            graph,
            queries=queries,
            sweeps=compared,
            reference=reference,
            top=top,
            bucket=bucket,
            damping=damping,
            personalization=toward_of(graph, toward, personalise),
            dangling=dangling,
            removals=removals,
            memory=memory,
            blocks=blocks,
            progress=stages,
        )
        stages("writing", 0, 0)
        write_study(found, output, with_plots=not no_plots, overwrite=overwrite)
    for iteration, residuals in found.residuals.items():
        after = ", ".join(
            f"{residuals[s - 1]:.1e} after {s}" for s in (*found.sweeps, found.reference)
        )
        say(f"{iteration.value}: L1 residual {after}")
    say(
        f"{output}: the study. The table shows from which sweep on the top n are as after "
        f"{found.reference} sweeps"
    )
    return Reply(ConvergenceDocument(path, output, found), lambda: _text(found))


def _text(found: ConvergenceStudy) -> str:
    from cocite.ranking.figures import settled_rows

    titles = ["iteration", "n", "99 % alike", "same members", "same order", "among"]
    keys = ("iteration", "n", "nearly", "members", "order", "among")
    return table_text(titles, [[_cell(row[key]) for key in keys] for row in settled_rows(found)])


def _cell(value: object) -> str:
    if value is None:
        return "never"
    return f"{value:,}" if isinstance(value, int) else str(value)
