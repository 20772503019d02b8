"""``cocite all-pairs``: the similarity of all pairs of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import graph_of
from cocite.cli.options import (
    format_option,
    no_verify_option,
    resource_options,
    takes,
    target_for,
    verifying,
)
from cocite.cli.output import Reply, Show, facts_text, or_of
from cocite.io.writers import ARRAYS, TABLES, kinds_of
from cocite.options import DIRECTIONS
from cocite.options.all_pairs import AllPairsOptions
from cocite.options.common import OutputOptions, SourceOptions

if TYPE_CHECKING:
    from cocite.allpairs.run import ExactDocument


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|LINKS")
@takes(
    OutputOptions,
    "output",
    output={
        "text": f"Where to write: {or_of(TABLES)} (node, other, score), or {or_of(ARRAYS)} (the "
        "whole matrix, in the order of node ids)."
    },
    output_format={"choices": kinds_of((*TABLES, *ARRAYS))},
)
@takes(AllPairsOptions, "options")
@resource_options
@takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@no_verify_option
@format_option
def all_pairs(
    graph: str,
    output: OutputOptions,
    options: AllPairsOptions,
    memory: int | None,
    threads: int | None,
    source: SourceOptions,
    show: Show,
) -> None:
    """Compute the SimRank of all pairs of nodes, to a stated accuracy.

    It first prints the memory that the run needs. A table has each pair of different nodes once, or
    the pairs of one side of a bipartite graph. Nothing is written if the run diverges, or if scores
    may be off by 1 or more because --rank is too low.
    """
    from cocite.allpairs import AllPairs
    from cocite.allpairs.run import ExactDocument
    from cocite.allpairs.scores import PAIR_TYPES
    from cocite.graph import Graph

    target = target_for(output, PAIR_TYPES)
    if target is None:
        raise click.UsageError("name an output with --output or --to")
    path = graph_of(graph, source, memory=memory, threads=threads)
    stored = Graph.open(path, verify=verifying())
    run = AllPairs(stored, options, memory=memory, threads=threads)
    say(f"{graph}: {run.estimate()}")
    with Stages({"sweeping": "sweeps", "writing": "nodes"}) as stages:
        found = run.run(lambda done, error: stages("sweeping", done, 0, f"error {error:.0e}"))
        found.write_target(
            target,
            least=options.min_score,
            top=options.top,
            progress=lambda nodes: stages("writing", nodes, len(found.within)),
        )
    document = ExactDocument.of(graph, target.label, options.measure, options.direction, found)
    show(Reply(document, lambda: _text(document, options.order == "rcm")))
    ended = document.ended
    if ended.converged:
        return
    if ended.pruning_error > ended.iteration_error:
        say("not converged: use a smaller --prune or a larger --epsilon")
    else:
        say(
            "not converged: allow more --max-sweeps or a larger --epsilon, or use another "
            "--method (gauss-seidel and plain always converge)"
        )


def _text(found: ExactDocument, ordered: bool) -> str:
    ended, (stored, meanwhile) = found.ended, found.bandwidth
    links = "" if found.direction == "in" else f", {DIRECTIONS[found.direction]}"
    rows = f"{found.rows_computed:,} for {found.nodes:,} nodes, bandwidth {stored:,}"
    return facts_text(
        {
            "output": found.output,
            "method": f"{found.measure}{links}, {found.method}, {found.products} products, "
            f"{found.precision} precision",
            "rows": rows + (f", ordered {meanwhile:,}" if ordered else ""),
            "ended": f"{ended.sweeps} sweeps, {ended.reason}",
            "error": f"at most {ended.error_bound:.1e}: {ended.iteration_error:.1e} from iteration"
            f", {ended.rounding_error:.1e} from rounding, {ended.pruning_error:.1e} from pruning",
        }
    )
