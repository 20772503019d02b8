"""``cocite refresh``: update an index to a changed graph. ``cocite merge``: join indexes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.commands.index import run_build
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import graph_url
from cocite.cli.options import (
    cluster_option,
    format_option,
    no_verify_option,
    overwrite_option,
    resource_options,
    store_option,
    takes,
    verifying,
)
from cocite.cli.output import Reply, Show, facts_text, staleness_in_words
from cocite.deadline import clock
from cocite.options.build import RefreshOptions
from cocite.resources import Resources, format_size, format_time, give_back_at_once

if TYPE_CHECKING:
    from cocite.index.results import MergeDocument, RefreshDocument


@click.command()
@click.argument("indexes", metavar="INDEX INDEX...", nargs=-1, required=True)
@store_option("index")
@click.option(
    "--shard",
    type=click.IntRange(1),
    metavar="SAMPLES",
    help="Number of samples per file.  [default: as for cocite index]",
)
@overwrite_option("index")
@no_verify_option
@format_option
def merge(
    indexes: tuple[str, ...], output: str, shard: int | None, overwrite: bool, show: Show
) -> None:
    """Join indexes that contain different samples of one graph, or different nodes.

    Build them on any machines, with "cocite index --sample-range" or, for fusion, ppr-pmi and snn,
    "cocite index --only-range". The result is byte-identical to a single build. Ranges must be
    consecutive, without gaps or overlaps; graph, measure and settings must be the same. Merging
    ranges of nodes reads names from the graph.

    An index that has lost some samples answers from the others. To repair it, build an index of the
    lost samples (cocite verify lists them), and merge the two; with --overwrite the output may be
    one of them. An interrupted merge leaves nothing behind.
    """
    from cocite.index.merge import open_merge
    from cocite.index.results import MergeDocument
    from cocite.io.remote import Sending, is_url

    begin = clock()
    sending = Sending(output, "index", overwrite) if is_url(output) else None
    how: dict[str, Any] = {"overwrite": overwrite, "verify": verifying()}
    how |= {"overwrite": True, "elsewhere": True} if sending else {}
    means = Resources.checked(None, None, shard)
    with open_merge(indexes, sending.path if sending else output, means, **how) as work:
        say(f"{output}: {work.contents}, from {len(indexes)} indexes")
        with Stages({"merging": work.unit}) as stages:
            work.run(lambda done, total: stages("merging", done, total))
        if sending is not None:
            sending.send()
        found = MergeDocument.of(work, clock() - begin, output)
    show(Reply(found, lambda: _merge_text(found)))


def _contents(found: MergeDocument) -> dict[str, str]:
    if found.samples is None or found.first is None:
        return {"nodes": f"{found.nodes:,}"}
    end = found.first + found.samples - 1
    return {"samples": f"{found.samples:,}, numbers {found.first} to {end}"}


def _merge_text(found: MergeDocument) -> str:
    return facts_text(
        {
            "index": found.index,
            "merged": ", ".join(found.merged),
            **_contents(found),
            "took": format_time(found.seconds),
            "on disk": format_size(found.bytes),
        }
    )


@click.command(cls=SectionedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("graph", metavar="GRAPH")
@takes(RefreshOptions, "options")
@resource_options
@cluster_option(
    "Draw the samples on a cluster, whose nodes must have GRAPH and INDEX at the same paths. GRAPH "
    "may also be a URL, which each node copies."
)
@no_verify_option
@format_option
def refresh(
    index: str,
    graph: str,
    options: RefreshOptions,
    memory: int | None,
    threads: int | None,
    cluster: str | None,
    show: Show,
) -> None:
    """Update INDEX after links or nodes of GRAPH have changed, by drawing some samples again.

    New samples replace the oldest ones; removed nodes are dropped from the others. Measure and
    settings do not change. A measure without samples is recomputed. Meanwhile, the index answers
    queries. To resume an interrupted refresh, repeat the command. An index that is up to date does
    not change. A GRAPH with hardly any nodes of the index is refused.
    """
    from cocite.graph import Graph
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.refresh import RefreshBuild, graph_with_links
    from cocite.index.results import RefreshDocument
    from cocite.io.remote import copied

    give_back_at_once()
    url = graph_url(graph)
    stored = Graph.open(graph if url is None else copied(url, "graph"), verify=verifying())
    means = Resources.checked(threads, memory)
    stored = graph_with_links(index, stored, means, options)
    with ExitStack() as stack:
        spread = stack.enter_context(spread_on(cluster, url, options.staging_url))
        each = of_nodes(spread, means, threads, memory)
        work = stack.enter_context(
            RefreshBuild(index, stored, each, options, spread=spread, verify=verifying())
        )
        if work.already:
            say(work.already)
        # No pilots: they take as long as drawing the few samples of a typical refresh.
        if work.drawn:
            old, new = work.retained, len(work.drawn)
            say(f"{index}: {old:,} samples stay, {new:,} are drawn from {graph}")
        found = RefreshDocument.of(work, run_build(work), index)
    show(Reply(found, lambda: _refresh_text(found)))


def _refresh_text(found: RefreshDocument) -> str:
    if found.already:
        came = {"redrawn": "nothing: the index is up to date with this graph"}
    elif found.local:
        anew, left = staleness_in_words(found.local)
        came = {"recomputed": anew, "all others": left}
    elif not found.drawn:
        came = {"recomputed": f"everything, from {found.graph}"}
    else:
        drawn = f"{found.drawn:,} samples from {found.graph}"
        came = {"kept": f"{found.kept:,} samples", "redrawn": drawn}
    size = format_size(found.bytes)
    return facts_text(
        {"index": found.index, **came, "took": format_time(found.seconds), "on disk": size}
    )
