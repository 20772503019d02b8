"""``cocite rank``: the PageRank of every node, or a study of how it converges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.options import format_option, memory_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.study import check_alone, run_study, study_options
from cocite.cli.text import say, table_text

if TYPE_CHECKING:
    from cocite.ranking.documents import RankDocument

__all__ = ["rank"]

_ONE_RUN = ("damping", "dangling", "removals", "precision")


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write all ranks: .parquet, .csv, .tsv (node, rank) or .npy (ranks by id).",
)
@click.option("-k", type=click.IntRange(1), default=20, show_default=True, help="Ranks to print.")
@click.option(
    "--damping",
    type=float,
    default=0.85,
    show_default=True,
    help="The share of steps that follow a link.",
)
@click.option(
    "--dangling",
    type=click.Choice(["spread", "uniform", "remove"]),
    default="spread",
    show_default=True,
    help="Rank of nodes without out-links: spread as the personalisation is, or over all nodes, or "
    "remove such nodes first.",
)
@click.option(
    "--removals",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="How often dangling nodes are removed, with --dangling remove.",
)
@click.option(
    "--toward",
    multiple=True,
    metavar="NODE",
    help="Personalise: other steps go to this node. Repeatable.  [default: to any node]",
)
@click.option(
    "--tolerance",
    type=float,
    default=1e-8,
    show_default=True,
    help="Stop at this L1 residual: absolute, not times the number of nodes.",
)
@click.option(
    "--sweeps", type=click.IntRange(1), default=10_000, show_default=True, help="Sweeps at most."
)
@click.option(
    "--top-order",
    type=click.IntRange(1),
    metavar="K",
    help="Stop also when the order of the top K has not changed for three sweeps.",
)
@click.option(
    "--precision",
    type=click.Choice(["double", "single"]),
    default="double",
    show_default=True,
    help="Of the rank vector; sums are always double.",
)
@click.option(
    "--unweighted", is_flag=True, help="Let all links count the same, where the graph has weights."
)
@memory_option
@click.option("--overwrite", is_flag=True, help="Replace the output file, or the study.")
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
    overwrite: bool,
    show: Show,
    study: str | None,
    **options: Any,
) -> None:
    """Compute PageRank, the share of time a random surfer spends at each node.

    Prints the top K and how the iteration ended; --output writes the ranks of all nodes. --study
    writes instead how the residual and the order of the nodes converge, sweep by sweep.
    """
    check_alone(context)
    if study is not None:
        options |= {"memory": memory, "unweighted": unweighted}
        show(run_study(graph, study, toward, overwrite, **options))
        return
    options = {name: options[name] for name in _ONE_RUN}
    from cocite.graph import Graph
    from cocite.graph.export import check_output, named_pieces, write_columns
    from cocite.memory import budget
    from cocite.ranking import Residual, StoppingRule, Sweeps, TopOrder, pagerank, plan_memory
    from cocite.ranking.documents import RankDocument

    path: Path | None = check_output(output, overwrite) if output else None
    stop: StoppingRule = Residual(tolerance) | Sweeps(sweeps)
    if top_order:
        stop = stop | TopOrder(top_order)
    opened = Graph.open(graph)
    room = plan_memory(opened, budget(memory), opened.in_weights is not None and not unweighted)
    say(str(room))
    with Stages({"ranking": "sweeps"}) as stages:
        found = pagerank(
            opened,
            personalization=toward or None,
            stop=stop,
            weighted=not unweighted,
            memory=room.memory,
            progress=lambda done, residual: stages("ranking", done, 0),
            **options,
        )
    if path is not None:
        types = {"node": "VARCHAR", "rank": "DOUBLE"}
        write_columns(path, named_pieces(found.names, rank=found.values), types)
    told, ended = RankDocument.of(opened, found, k), found.convergence
    show(Reply(told, lambda: _text(told)))
    if found.weighted:
        say("each node's rank is shared by the weights of its links")
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
