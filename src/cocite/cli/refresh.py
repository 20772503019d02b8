"""``cocite refresh``: draw some samples of an index from the graph as it is now."""

from __future__ import annotations

import click

from cocite.cli.options import format_option, means_options
from cocite.cli.output import print_facts, say
from cocite.cli.progress import Stages
from cocite.means import Means
from cocite.memory import format_size

__all__ = ["refresh"]


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--share",
    type=float,
    default=0.1,
    show_default=True,
    help="How many of the samples are drawn anew, above 0, at most 1.",
)
@click.option(
    "--date",
    metavar="DAY",
    help="The day that GRAPH is of, such as 2026-11-21, for info to tell.  [default: today]",
)
@means_options
@click.option("--restart", is_flag=True, help="Throw away an unfinished refresh or build.")
@format_option
def refresh(
    index: str,
    graph: str,
    share: float,
    date: str | None,
    memory: int | None,
    threads: int | None,
    restart: bool,
    form: str,
) -> None:
    """Draw some samples of INDEX from the stored GRAPH, whose links and nodes have changed.

    The oldest samples retire; the others stay, without the nodes that are gone. Measure and
    settings stay as they are; a measure without samples is computed anew. The index answers all the
    while; a refresh that was interrupted goes on when the same command is given again. A graph that
    has hardly any of the nodes is refused.
    """
    from cocite.graph import Graph
    from cocite.index.build import format_time
    from cocite.index.refresh import RefreshBuild

    stored = Graph.open(graph)
    means = Means.checked(threads, memory)
    with RefreshBuild(index, stored, share, means, date=date, restart=restart) as work:
        # No pilots: they would take as long as a small share of the samples does.
        if work.drawn:
            say(f"{index}: {work.kept:,} samples stay, {len(work.drawn):,} are drawn from {graph}")
        stage = "sampling" if work.unit == "samples" else "computing"
        with Stages({stage: work.unit, "refining": "nodes"}) as stages:
            report = work.run(
                lambda done, total: stages(stage, done, total),
                lambda sweep, done, total: stages(f"refining {sweep + 1}", done, total),
            )
        kept, drawn = work.kept, len(work.drawn)
    facts: dict[str, object] = {"index": index, "graph": graph, "kept": kept, "drawn": drawn}
    facts |= {"date": work.date, "seconds": report.seconds, "bytes": report.bytes}
    samples = {"kept": f"{kept:,} samples", "drawn anew": f"{drawn:,} samples from {graph}"}
    shown = {
        "index": index,
        **(samples if drawn else {"computed anew": f"all of it, from {graph}"}),
        "took": format_time(report.seconds),
        "on disk": format_size(report.bytes),
    }
    print_facts(facts, form, shown)
