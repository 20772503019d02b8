"""``cocite refresh``: draw some samples of an index from the graph as it is now."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.links import graph_url
from cocite.cli.options import (
    SectionedVerb,
    cluster_option,
    format_option,
    means_options,
    no_verify_option,
    verifying,
    via_option,
)
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.text import facts_text, say
from cocite.means import Means
from cocite.memory import format_size, format_time, give_back_at_once

if TYPE_CHECKING:
    from cocite.index.documents import RefreshDocument

__all__ = ["refresh"]


@click.command(cls=SectionedVerb)
@click.argument("index", metavar="INDEX")
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--share",
    type=float,
    default=0.1,
    show_default=True,
    help="The share of the samples to replace, above 0, at most 1.",
)
@click.option(
    "--date",
    metavar="DAY",
    help="The date of GRAPH, such as 2026-11-21; cocite info shows it.  [default: today]",
)
@click.option(
    "--texts",
    metavar="FOLDER|FILE",
    type=click.Path(exists=True),
    help="The texts of the pages as they are now, for an index that compares them (see: cocite "
    "index).  [default: pages keep the words that the index has of them, and new ones have none]",
)
@means_options
@cluster_option(
    "Draw the samples on a cluster. Its nodes see GRAPH and INDEX by the same paths, or GRAPH is a "
    "URL, of which each keeps a copy."
)
@via_option
@click.option(
    "--restart", is_flag=True, help="Throw away an unfinished refresh or build, and begin again."
)
@click.option(
    "--again",
    is_flag=True,
    help="Refresh INDEX also from the GRAPH that its newest samples are of already.",
)
@no_verify_option
@format_option
def refresh(
    index: str,
    graph: str,
    share: float,
    date: str | None,
    texts: str | None,
    memory: int | None,
    threads: int | None,
    restart: bool,
    again: bool,
    cluster: str | None,
    via: str | None,
    show: Show,
) -> None:
    """Update INDEX to GRAPH, whose links and nodes have changed: draw some samples again.

    The oldest samples are replaced; the others stay, without the nodes that are gone. The measure
    and its settings stay as they are. A measure without samples is computed again. Meanwhile the
    index can be asked. If a refresh is interrupted, give the same command again, and it goes on. A
    GRAPH that has hardly any nodes of the index is refused, and one from which it was made already
    leaves it as it is.
    """
    from cocite.copies import copied
    from cocite.graph import Graph
    from cocite.index.documents import RefreshDocument
    from cocite.index.refresh import RefreshBuild
    from cocite.index.spread import of_nodes, spread_on

    give_back_at_once()
    url = graph_url(graph)
    stored = Graph.open(graph if url is None else copied(url, "graph"), verify=verifying())
    means = Means.checked(threads, memory)
    chosen: dict[str, Any] = {"date": date, "restart": restart, "texts": texts, "again": again}
    with ExitStack() as stack:
        spread = stack.enter_context(spread_on(cluster, url, via))
        each = of_nodes(spread, means, threads, memory)
        chosen |= {"spread": spread, "verify": verifying()}
        work = stack.enter_context(RefreshBuild(index, stored, share, each, **chosen))
        if work.already:
            say(work.already)
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
    return facts_text(
        {
            "index": found.index,
            **_came_of(found),
            "took": format_time(found.seconds),
            "on disk": format_size(found.bytes),
        }
    )


def _came_of(found: RefreshDocument) -> dict[str, str]:
    if found.already:
        return {"drawn anew": "nothing: it is of this graph already"}
    if not found.drawn:
        return {"computed anew": f"all of it, from {found.graph}"}
    drawn = f"{found.drawn:,} samples from {found.graph}"
    return {"kept": f"{found.kept:,} samples", "drawn anew": drawn}
