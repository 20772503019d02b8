"""``cocite rank``: the PageRank of every node, or a study of how it converges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.options import SectionedVerb, format_option, memory_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.study import check_alone, run_study, study_options
from cocite.cli.text import or_of, say, table_text
from cocite.graph.writers import ARRAYS, TABLES

if TYPE_CHECKING:
    from cocite.ranking.documents import RankDocument

__all__ = ["rank"]

_ONE_RUN = ("damping", "dangling", "removals", "precision")


@click.command(cls=SectionedVerb)
@click.argument("graph", metavar="GRAPH")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=f"Where to write all ranks: {or_of(TABLES)} (node, rank), or {or_of(ARRAYS)} (ranks in "
    "the order of the nodes' numbers).",
)
@click.option(
    "-k", type=click.IntRange(1), default=20, show_default=True, help="How many ranks to print."
)
@click.option(
    "--damping",
    type=float,
    default=0.85,
    show_default=True,
    help="The probability that a step follows a link; else it jumps.",
)
@click.option(
    "--dangling",
    type=click.Choice(["spread", "uniform", "remove"]),
    default="spread",
    show_default=True,
    help="What becomes of the rank of nodes without out-links. spread: it goes where jumps go. "
    "uniform: it goes to all nodes alike. remove: such nodes are removed first.",
)
@click.option(
    "--removals",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="How often nodes without out-links are removed, with --dangling remove.",
)
@click.option(
    "--toward",
    multiple=True,
    metavar="NODE",
    help="Personalise: jumps go to this node. Repeatable.  [default: to any node]",
)
@click.option(
    "--tolerance",
    type=float,
    default=1e-8,
    show_default=True,
    help="Stop when the L1 residual, the sum over all nodes, is this small.",
)
@click.option(
    "--sweeps",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="How many sweeps to make at most.",
)
@click.option(
    "--top-order",
    type=click.IntRange(1),
    metavar="K",
    help="Stop, too, when the order of the top K has not changed for three sweeps.",
)
@click.option(
    "--precision",
    type=click.Choice(["double", "single"]),
    default="double",
    show_default=True,
    help="How to store ranks meanwhile. Sums are always double.",
)
@click.option("--unweighted", is_flag=True, help="Ignore the weights of links.")
@memory_option
@click.option(
    "--blocks",
    type=click.IntRange(1),
    metavar="COUNT",
    help="Keep everything on disk but one of so many blocks, even if it fits; the ranks are the "
    "same.  [default: as --memory needs]",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the output file, or the study. A symbolic link is refused.",
)
@format_option
@study_options
@click.pass_context
def rank(
    context: click.Context,
    /,
    graph: str,
    output: str | None,
    k: int,
    toward: tuple[str, ...],
    tolerance: float,
    sweeps: int,
    top_order: int | None,
    unweighted: bool,
    memory: int | None,
    blocks: int | None,
    overwrite: bool,
    show: Show,
    study: str | None,
    **options: Any,
) -> None:
    """Compute PageRank, the share of time a random surfer spends at each node.

    It prints the top K, and how the iteration ended. --output also writes the ranks of all nodes.
    --study does something else: it writes how the residual and the order of the nodes converge,
    sweep by sweep.
    """
    check_alone(context)
    if study is not None:
        options |= {"memory": memory, "blocks": blocks, "unweighted": unweighted}
        show(run_study(graph, study, toward, overwrite, **options))
        return
    options = {name: options[name] for name in _ONE_RUN}
    from cocite.graph import Graph
    from cocite.graph.writers import check_output, memory_of, write_numbers
    from cocite.memory import OWN_MEMORY, budget, format_size
    from cocite.ranking import Residual, StoppingRule, Sweeps, TopOrder, pagerank, plan_ranks
    from cocite.ranking.documents import RankDocument

    path: Path | None = check_output(output, overwrite) if output else None
    stop: StoppingRule = Residual(tolerance) | Sweeps(sweeps)
    if top_order:
        stop = stop | TopOrder(top_order)
    opened = Graph.open(graph)
    limit = budget(memory)
    room = plan_ranks(opened, limit, opened.in_weights is not None and not unweighted, blocks)
    writing = memory_of(path) if path else 0
    later = f"; {format_size(writing + OWN_MEMORY)} while the table is written"
    say(str(room) + later * (writing > room.memory))
    with Stages({"ranking": "sweeps"}) as stages:
        found = pagerank(
            opened,
            personalization=toward or None,
            stop=stop,
            weighted=not unweighted,
            memory=limit,
            blocks=blocks,
            progress=lambda done, residual: stages("ranking", done, 0),
            **options,
        )
    if path is not None:
        write_numbers(path, found.names, rank=found.values)
    told, ended = RankDocument.of(opened, found, k), found.convergence
    show(Reply(told, lambda: _text(told)))
    if found.weighted:
        say("links count by their weights")
    removed = f", {found.removed:,} dangling nodes removed" if found.removed else ""
    say(
        f"{ended.sweeps} sweeps, {ended.reason}: L1 residual {ended.residual:.1e}, "
        f"L1 error at most {ended.error_bound:.1e}{removed}"
    )
    if not ended.converged:
        say("not converged: allow more --sweeps, or a larger --tolerance")


def _text(found: RankDocument) -> str:
    rows = [(str(i), f"{value:.3e}", node) for i, (node, value) in enumerate(found.top, 1)]
    return table_text(["place", "rank", "node"], rows)
