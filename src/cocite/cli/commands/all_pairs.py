"""``cocite all-pairs``: the similarity of all pairs of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cocite.cli.console import Stages
from cocite.cli.help import SectionedVerb
from cocite.cli.link_files import bipartite_option, cache_option, graph_of, side_option
from cocite.cli.options import (
    format_option,
    no_verify_option,
    resource_options,
    safe_csv,
    verifying,
)
from cocite.cli.output import Reply, Show, facts_text, or_of, say
from cocite.cli.targets import kind_option, to_options
from cocite.graph.links import DIRECTIONS
from cocite.io.writers import ARRAYS, TABLES, kinds_of

if TYPE_CHECKING:
    from cocite.allpairs.run import ExactDocument


@click.command(cls=SectionedVerb)
@click.argument("graph", metavar="GRAPH|LINKS")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=f"Where to write: {or_of(TABLES)} (node, other, score), or {or_of(ARRAYS)} (the whole "
    "matrix, in the order of the nodes' numbers).",
)
@kind_option(kinds_of((*TABLES, *ARRAYS)))
@to_options
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="Leave out pairs with a lower score, in a table.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Write the K best of every node instead, in a table.",
)
@click.option(
    "--measure",
    type=click.Choice(["simrank", "psimrank"], case_sensitive=False),
    default="simrank",
    show_default=True,
    help="What similar means. psimrank takes the plain method, for graphs of some thousand nodes.",
)
@click.option(
    "--method",
    type=click.Choice(["gauss-seidel", "plain", "sor", "psum", "svd"], case_sensitive=False),
    help="How to iterate.  [default: gauss-seidel; plain for psimrank]",
)
@click.option(
    "--omega", type=float, help="The relaxation of --method sor, between 0 and 2.  [default: 1.3]"
)
@click.option("--rank", type=click.IntRange(1), help="The rank of --method svd.  [default: 100]")
@click.option(
    "--decay",
    type=float,
    default=0.6,
    show_default=True,
    help="How much a step counts, compared with the step before it; between 0 and 1.",
)
@click.option(
    "--direction",
    type=click.Choice(["in", "out", "any"], case_sensitive=False),
    default="in",
    show_default=True,
    help="Which links count; any: links taken either way.",
)
@side_option(
    "Of a bipartite graph the side whose nodes are compared, such as user.  [default: the side of "
    "the targets, item]"
)
@bipartite_option
@click.option("--unweighted", is_flag=True, help="Ignore the weights of links.")
@click.option(
    "--epsilon",
    type=float,
    default=1e-3,
    show_default=True,
    help="The largest error that a score may have.",
)
@click.option(
    "--sweeps",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="How many sweeps to make at most.",
)
@click.option(
    "--prune",
    type=float,
    metavar="DELTA",
    help="After every sweep drop scores below DELTA, which keeps the matrix small. It adds an "
    "error "
    "of up to DELTA / (1 - decay).",
)
@click.option(
    "--teleport",
    type=float,
    metavar="LAMBDA",
    help="Compute another measure: links count LAMBDA, and a node without in-links has one from "
    "every node, which together count 1 - LAMBDA.",
)
@click.option(
    "--order",
    type=click.Choice(["stored", "rcm"], case_sensitive=False),
    default="stored",
    show_default=True,
    help="How to number the rows meanwhile: rcm is reverse Cuthill-McKee.",
)
@click.option(
    "--precision",
    type=click.Choice(["auto", "single", "double"], case_sensitive=False),
    default="auto",
    show_default=True,
    help="How to store numbers meanwhile. auto: single, if its rounding is at most a quarter of "
    "--epsilon.",
)
@click.option(
    "--products",
    type=click.Choice(["auto", "sparse", "dense"], case_sensitive=False),
    default="auto",
    show_default=True,
    help="How to multiply matrices. auto: dense, if there is a quarter of all possible links or "
    "more.",
)
@resource_options
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the output file, or the table. A symbolic link is refused.",
)
@cache_option
@no_verify_option
@format_option
def all_pairs(
    graph: str,
    output: str | None,
    kind: str | None,
    to: str | None,
    append: bool,
    min_score: float,
    top: int | None,
    side: str | None,
    bipartite: bool,
    no_cache: bool,
    threads: int | None,
    memory: int | None,
    unweighted: bool,
    overwrite: bool,
    show: Show,
    **options: Any,
) -> None:
    """Compute the SimRank of all pairs of nodes, to a stated accuracy.

    First it says how much memory it will take. A table has each pair of different nodes once, of a
    bipartite graph those of one side. If the run diverges, or if scores may be off by 1 or more as
    --rank is too low, nothing is written.
    """
    from cocite.allpairs import AllPairs, Options
    from cocite.allpairs.run import ExactDocument
    from cocite.allpairs.scores import PAIR_TYPES
    from cocite.graph import Graph
    from cocite.io.writers import target_of

    how: dict[str, Any] = {"overwrite": overwrite, "append": append, "safe": safe_csv()}
    target = target_of(output, to, kind=kind, types=PAIR_TYPES, **how)
    if target is None:
        raise click.UsageError("name an output, by --output or --to")
    means: dict[str, Any] = {"memory": memory, "threads": threads}
    run = AllPairs(
        Graph.open(
            graph_of(graph, no_cache=no_cache, bipartite=bipartite, **means),
            verify=verifying(),
        ),
        Options.checked(**options),
        weighted=not unweighted,
        side=side,
        **means,
    )
    say(f"{graph}: {run.estimate()}")
    with Stages({"sweeping": "sweeps", "writing": "nodes"}) as stages:
        found = run.run(lambda done, error: stages("sweeping", done, 0, f"error {error:.0e}"))
        found.write_target(
            target,
            least=min_score,
            top=top,
            progress=lambda nodes: stages("writing", nodes, len(found.within)),
        )
    told = ExactDocument.of(graph, target.label, options["measure"], options["direction"], found)
    show(Reply(told, lambda: _text(told, options["order"] == "rcm")))
    ended = told.ended
    if ended.converged:
        return
    if ended.pruning_error > ended.iteration_error:
        say("not converged: take a smaller --prune, or allow a larger --epsilon")
    else:
        say(
            "not converged: allow more --sweeps or a larger --epsilon, or take another --method "
            "(gauss-seidel and plain always converge)"
        )


def _links(found: ExactDocument) -> str:
    """Which links were looked at, if not those that usually are."""
    return "" if found.direction == "in" else f", {DIRECTIONS[found.direction]}"


def _text(found: ExactDocument, ordered: bool) -> str:
    ended, (stored, meanwhile) = found.ended, found.bandwidth
    rows = f"{found.rows_computed:,} for {found.nodes:,} nodes, bandwidth {stored:,}"
    return facts_text(
        {
            "output": found.output,
            "method": f"{found.measure}{_links(found)}, {found.method}, {found.products} products, "
            f"{found.precision} precision",
            "rows": rows + (f", ordered {meanwhile:,}" if ordered else ""),
            "ended": f"{ended.sweeps} sweeps, {ended.reason}",
            "error": f"at most {ended.error_bound:.1e}: {ended.iteration_error:.1e} of iterating, "
            f"{ended.rounding_error:.1e} of rounding, {ended.pruning_error:.1e} of pruning",
        }
    )
