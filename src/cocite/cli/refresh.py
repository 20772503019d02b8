"""``cocite refresh``: draw some samples of an index from the graph as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cocite.cli.options import format_option, memory_option, threads_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.text import facts_text, say
from cocite.memory import format_size, format_time

if TYPE_CHECKING:
    from cocite.index.documents import RefreshDocument

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
@memory_option
@threads_option
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
    show: Show,
) -> None:
    """Draw some samples of INDEX from the stored GRAPH, whose links and nodes have changed.

    The oldest samples retire; the others stay, without the nodes that are gone. Measure and
    settings stay as they are; a measure without samples is computed anew. The index answers all the
    while; a refresh that was interrupted goes on when the same command is given again. A graph that
    has hardly any of the nodes is refused.
    """
    from cocite.graph import Graph
    from cocite.index.documents import RefreshDocument
    from cocite.index.refresh import RefreshBuild

    stored = Graph.open(graph)
    with RefreshBuild(
        index, stored, share, date=date, threads=threads, memory=memory, restart=restart
    ) as work:
        # No pilots: they would take as long as a small share of the samples does.
        if work.drawn:
            say(f"{index}: {work.kept:,} samples stay, {len(work.drawn):,} are drawn from {graph}")
        stage = "sampling" if work.unit == "samples" else "computing"
        with Stages({stage: work.unit, "refining": "nodes"}) as stages:
            report = work.run(
                lambda done, total: stages(stage, done, total),
                lambda sweep, done, total: stages(f"refining {sweep + 1}", done, total),
            )
        found = RefreshDocument.of(work, report, index)
    show(Reply(found, lambda: _text(found)))


def _text(found: RefreshDocument) -> str:
    drawn = f"{found.drawn:,} samples from {found.graph}"
    samples = {"kept": f"{found.kept:,} samples", "drawn anew": drawn}
    return facts_text(
        {
            "index": found.index,
            **(samples if found.drawn else {"computed anew": f"all of it, from {found.graph}"}),
            "took": format_time(found.seconds),
            "on disk": format_size(found.bytes),
        }
    )
