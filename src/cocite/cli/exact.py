"""``cocite exact``: the similarity of all pairs of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cocite.cli.options import format_option, memory_option, threads_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.text import facts_text, say

if TYPE_CHECKING:
    from cocite.allpairs.documents import ExactDocument

__all__ = ["exact"]


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Where to write: .npy (all scores, by id), or .parquet, .csv, .tsv (node, other, score).",
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="The least score of a pair in a table.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Write the K best of every node instead.",
)
@click.option(
    "--measure",
    type=click.Choice(["simrank", "psimrank"]),
    default="simrank",
    show_default=True,
    help="PSimRank takes the plain method, and suits graphs of some thousand nodes.",
)
@click.option(
    "--method",
    type=click.Choice(["gauss-seidel", "plain", "sor", "psum", "svd"]),
    help="How to iterate.  [default: gauss-seidel; plain for psimrank]",
)
@click.option("--omega", type=float, help="Of --method sor, in (0, 2).  [default: 1.3]")
@click.option("--rank", type=click.IntRange(1), help="Of --method svd.  [default: 100]")
@click.option(
    "--decay",
    type=float,
    default=0.6,
    show_default=True,
    help="What a step further is worth, above 0 and below 1.",
)
@click.option(
    "--unweighted", is_flag=True, help="Let all links count the same, where the graph has weights."
)
@click.option(
    "--epsilon",
    type=float,
    default=1e-3,
    show_default=True,
    help="The largest error that a score may have.",
)
@click.option(
    "--sweeps", type=click.IntRange(1), default=1000, show_default=True, help="Sweeps at most."
)
@click.option(
    "--prune",
    type=float,
    metavar="DELTA",
    help="Drop scores below this after every sweep, and keep the matrix sparse.",
)
@click.option(
    "--teleport",
    type=float,
    metavar="LAMBDA",
    help="Weigh links by this, and give nodes without in-links uniform ones by 1 - LAMBDA: another "
    "measure.",
)
@click.option(
    "--order",
    type=click.Choice(["stored", "rcm"]),
    default="stored",
    show_default=True,
    help="rcm: number rows by reverse Cuthill-McKee meanwhile.",
)
@click.option(
    "--precision",
    type=click.Choice(["auto", "single", "double"]),
    default="auto",
    show_default=True,
    help="auto: single where its rounding is at most a quarter of --epsilon.",
)
@click.option(
    "--products",
    type=click.Choice(["auto", "sparse", "dense"]),
    default="auto",
    show_default=True,
    help="auto: dense from a quarter of all possible links.",
)
@threads_option
@memory_option
@click.option("--overwrite", is_flag=True, help="Replace the output file.")
@format_option
def exact(
    graph: str,
    output: str,
    min_score: float,
    top: int | None,
    threads: int | None,
    memory: int | None,
    unweighted: bool,
    overwrite: bool,
    show: Show,
    **options: Any,
) -> None:
    """Compute the SimRank of all pairs of nodes, to a stated accuracy.

    Before it starts it says what it will take. Tables have each pair of different nodes once. A run
    that diverges, or whose scores may be off by 1 or more for a low --rank, writes nothing.
    """
    from cocite.allpairs import AllPairs, Options
    from cocite.allpairs.documents import ExactDocument
    from cocite.allpairs.output import write_scores
    from cocite.graph import Graph
    from cocite.graph.export import check_output

    path = check_output(output, overwrite)
    run = AllPairs(
        Graph.open(graph),
        Options.checked(**options),
        threads=threads,
        memory=memory,
        weighted=not unweighted,
    )
    say(f"{graph}: {run.estimate()}")
    with Stages({"sweeping": "sweeps", "writing": "nodes"}) as stages:
        found = run.run(lambda done, error: stages("sweeping", done, 0, f"error {error:.0e}"))
        write_scores(
            found,
            path,
            least=min_score,
            top=top,
            progress=lambda nodes: stages("writing", nodes, found.nodes),
        )
    told = ExactDocument.of(graph, output, options["measure"], found)
    show(Reply(told, lambda: _text(told, options["order"] == "rcm")))
    if not told.ended.converged:
        say(
            "not converged: allow more --sweeps or a larger --epsilon, or take another --method "
            "(gauss-seidel and plain always converge)"
        )


def _text(found: ExactDocument, ordered: bool) -> str:
    ended, (stored, meanwhile) = found.ended, found.bandwidth
    rows = f"{found.rows_computed:,} for {found.nodes:,} nodes, bandwidth {stored:,}"
    return facts_text(
        {
            "output": found.output,
            "method": f"{found.measure}, {found.method}, {found.products} products, "
            f"{found.precision} precision",
            "rows": rows + (f", ordered {meanwhile:,}" if ordered else ""),
            "ended": f"{ended.sweeps} sweeps, {ended.reason}",
            "error": f"at most {ended.error_bound:.1e}: {ended.iteration_error:.1e} of iterating, "
            f"{ended.rounding_error:.1e} of rounding, {ended.pruning_error:.1e} of pruning",
        }
    )
