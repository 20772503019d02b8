"""``cocite rank --study``: how PageRank converges, as tables and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cocite.cli.outputs import Reply
from cocite.cli.progress import Stages
from cocite.cli.text import say, table_text
from cocite.errors import UsageError

if TYPE_CHECKING:
    from cocite.ranking import Study

__all__ = ["check_alone", "run_study", "study_options"]

_STUDY_ONLY = ("compared", "reference", "top", "bucket", "query_nodes", "query_words", "no_plots")
_RUN_ONLY = ("output", "k", "tolerance", "sweeps", "top_order", "precision")


def _whole_numbers(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 5,10,25") from None


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--study",
        metavar="DIR",
        help="Write a study of the convergence into the new directory DIR: residual, positions and "
        "similarity of the top after each sweep, as CSV and pictures.",
    ),
    click.option(
        "--compared",
        metavar="LIST",
        default="5,10,25,50",
        show_default=True,
        callback=_whole_numbers,
        help="Study: after how many sweeps the order is compared.",
    ),
    click.option(
        "--reference",
        type=click.IntRange(2),
        default=100,
        show_default=True,
        help="Study: how many sweeps; what is compared is compared with the order after these.",
    ),
    click.option(
        "--top",
        type=click.IntRange(1),
        default=10_000,
        show_default=True,
        help="Study: how many of the highest nodes are looked at.",
    ),
    click.option(
        "--bucket",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Study: how many positions share a bucket of the histogram.",
    ),
    click.option(
        "--query-nodes",
        multiple=True,
        metavar="FILE",
        help="Study also the order among the nodes that FILE names, one a line. Repeatable.",
    ),
    click.option(
        "--query-words",
        multiple=True,
        metavar="WORDS",
        help="Study also the order among the nodes whose names have all of these words, in any "
        "case. Repeatable.",
    ),
    click.option("--no-plots", is_flag=True, help="Study: write the tables, no pictures."),
]


def study_options(command: Any) -> Any:
    """The options of a study."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_alone(context: click.Context) -> None:
    """Refuse options of a study without one, and those that a study does not heed."""
    studies = context.params["study"] is not None
    wrong, why = (
        (_RUN_ONLY, "does not go with --study") if studies else (_STUDY_ONLY, "needs --study DIR")
    )
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in wrong and given:
            raise click.UsageError(f"{parameter.opts[-1]} {why}")


def run_study(
    path: str,
    output: str,
    toward: tuple[str, ...],
    overwrite: bool,
    *,
    compared: tuple[int, ...],
    reference: int,
    top: int,
    bucket: int,
    query_nodes: tuple[str, ...],
    query_words: tuple[str, ...],
    no_plots: bool,
    damping: float,
    dangling: str,
    removals: int,
    memory: int | None,
    unweighted: bool,
    **run_only: object,
) -> Reply:
    """Make the study and write it; returns its summary."""
    from cocite.graph import Graph
    from cocite.ranking import query_of_nodes, query_of_words, study
    from cocite.ranking.documents import ConvergenceDocument
    from cocite.ranking.figures import check_study_output, write_study

    check_study_output(output, overwrite, not no_plots)
    graph = Graph.open(path)
    if graph.in_weights is not None and not unweighted:
        raise UsageError(
            "a study lets all links count the same, and these have weights: pass --unweighted"
        )
    queries = [query_of_nodes(graph, file) for file in query_nodes]
    queries += [query_of_words(graph, words) for words in query_words]
    with Stages(dict.fromkeys(("reference", "power", "Gauss-Seidel"), "sweeps")) as stages:
        found = study(
            graph,
            queries=queries,
            sweeps=compared,
            reference=reference,
            top=top,
            bucket=bucket,
            damping=damping,
            personalization=toward or None,
            dangling=dangling,
            removals=removals,
            memory=memory,
            progress=stages,
        )
        stages("writing", 0, 0)
        write_study(found, output, with_plots=not no_plots, overwrite=overwrite)
    for iteration, residuals in found.residuals.items():
        after = ", ".join(
            f"{residuals[s - 1]:.1e} after {s}" for s in (*found.sweeps, found.reference)
        )
        say(f"{iteration.value}: L1 residual {after}")
    say(f"{output}: from which sweep on the top n are those after {found.reference} sweeps")
    return Reply(ConvergenceDocument(path, output, found), lambda: _text(found))


def _text(found: Study) -> str:
    from cocite.ranking.figures import settled_rows

    titles = ["iteration", "n", "99 % alike", "same members", "same order", "among"]
    keys = ("iteration", "n", "nearly", "members", "order", "among")
    return table_text(titles, [[_cell(row[key]) for key in keys] for row in settled_rows(found)])


def _cell(value: object) -> str:
    if value is None:
        return "never"
    return f"{value:,}" if isinstance(value, int) else str(value)
