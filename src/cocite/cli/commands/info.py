"""``cocite info``: show a graph, an index or the cache. ``cocite verify``: check all checksums.
``cocite cache``: clear the cache. ``cocite nodes``: find nodes by part of their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cocite.cli import flags, output
from cocite.cli.console import say
from cocite.cli.inputs import graph_of, stored_of
from cocite.errors import Damaged, StoreError, UsageError
from cocite.graph import Graph
from cocite.graph.graph import hubs_in_words
from cocite.graph.partitions import BlockedGraph, GraphDocument, is_blocked
from cocite.io.remote import Copy, clear_remote_cache, list_remote_cache
from cocite.measures import find_measure
from cocite.measures.measure import PREFIX
from cocite.options.common import QuerySource, SourceOptions
from cocite.resources import format_size
from cocite.results import Document
from cocite.storage import kind_of
from cocite.storage.user_cache import VARIABLE, place

if TYPE_CHECKING:
    from cocite.index.results import IndexDocument
    from cocite.index.verify import VerifyDocument
    from cocite.search.resolver import FoundNode, NodesDocument


@click.command()
@click.argument("path", metavar="GRAPH|INDEX|LINKS", required=False)
@click.option("--cache", is_flag=True, help="Show the location and contents of the cache instead.")
@flags.takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@flags.format
def info(path: str | None, cache: bool, source: SourceOptions, show: output.Show) -> None:
    """Show the contents of a stored graph or index, or of the graph of a file of links."""
    if cache == (path is not None):
        raise UsageError("pass a graph, an index, an edge list or --cache")
    if path is None:
        if source.bipartite:
            raise UsageError(
                "--bipartite applies to edge lists, not to --cache: omit one of the two"
            )

        show(_cache_reply())
        return
    if is_blocked(path):
        show(graph_reply(BlockedGraph.open(path)))
        return
    path = graph_of(path, source)
    show(_index_reply(path) if kind_of(path) == "index" else graph_reply(Graph.open(path)))


def graph_reply(graph: Graph) -> output.Reply:
    """Return the facts of a graph."""
    found = GraphDocument.of(graph)
    return output.Reply(found, lambda: _graph_text(found))


def _graph_text(found: GraphDocument) -> str:
    info = found.info
    mean = info.edges / info.nodes if info.nodes else 0.0

    def most(degree: int, node: str | None) -> str:
        return f"{degree:,} ({node})" if degree else "0"

    facts = {
        "graph": found.path,
        "nodes": f"{info.nodes:,}, named by {info.names}",
        "sides": found.sides.in_words() if found.sides else "",
        "links": f"{info.edges:,}, {mean:.1f} per node",
    }
    if blocks := found.blocks:
        facts["blocks"] = f"{blocks['count']:,}, the largest of {blocks['largest']:,} links"
        if blocks["here"] < blocks["count"]:
            facts["blocks"] += f"; {blocks['here']:,} of them here"
    if found.weighted:
        ends = f"{info.smallest_weight or 0:.7g} to {info.largest_weight or 0:.7g}"
        facts["weights"] = f"{ends}, {info.total_weight:,.7g} in total"
    if titles := found.titles:
        facts["titles"] = f"{titles['nodes']:,} nodes"
        if titles["unknown"]:
            facts["titles"] += f"; skipped {titles['unknown']:,} with unknown names"
        if titles["others"]:
            facts["titles"] += f"; skipped {titles['others']:,} extra titles of these nodes"
    facts |= {
        "most linked to": most(info.largest_in_degree, info.largest_in_degree_node),
        "most links": most(info.largest_out_degree, info.largest_out_degree_node),
        "hubs": hubs_in_words(found.hubs, info.nodes) if found.hubs else "",
        "without in-links": f"{info.without_in_links:,}",
        "without out-links": f"{info.without_out_links:,}",
        "isolated": f"{info.isolated:,}",
        "links read": f"{info.rows:,}" + (", stored both ways" if info.undirected else ""),
        "dropped": f"{info.duplicates:,} duplicates, {info.self_loops:,} self-loops, "
        f"{info.bad_rows:,} bad rows",
    }
    if found.excluded:
        pages, links = (
            output.counted(found.excluded[what], what[:-1]) for what in ("nodes", "links")
        )
        facts["excluded"] = f"{pages}, with {links}"
    return output.facts_text(facts | {"on disk": format_size(info.bytes)})


def _index_reply(path: str) -> output.Reply:
    from cocite.index import StoredIndex
    from cocite.index.results import IndexDocument

    found = IndexDocument.of(StoredIndex.open(path))
    return output.Reply(found, lambda: _index_text(found))


def _index_text(found: IndexDocument) -> str:
    snapshots = found.snapshots
    refreshed = len(snapshots) > 1 or bool(snapshots[0].refresh)
    facts = {
        "index": found.path,
        "measure": f"{found.measure}, {found.links}",
        "layout": found.layout,
        **_shown_parts(found),
        "nodes": f"{found.nodes:,}",
        "sides": found.sides.in_words() if found.sides else "",
        "keeps": found.kept.in_words(found.nodes) if found.kept else "",
        "texts": output.texts_in_words(found.texts, found.nodes),
        **output.reported_settings(found.settings),
        "graph": f"{found.graph['name']}, {found.graph['edges']:,} links",
    }
    if refreshed:  # newest first
        facts |= {
            f"snapshot {g.refresh}": f"{g.samples:,} samples of {g.date or 'an unknown date'}, "
            f"from {g.graph}"
            for g in reversed(snapshots)
        }
    elif snapshots[0].first:
        facts["numbers"] = f"{snapshots[0].first} to {snapshots[0].numbers.stop - 1}"
    if local := found.local:
        anew, left = output.staleness_in_words(local)
        facts["refreshed"] = f"locally, on {local.date}: {anew}"
        facts["all others"] = f"of {local.since}, from {local.graph}; {left}"
    if found.missing_samples:
        facts["available"] = f"{found.available_samples:,} samples"
        facts["available"] += f" (see: cocite verify {found.path})"
        facts["missing"] = "; ".join(
            f"{each.file}, samples {each.first} to {each.first + each.samples - 1}"
            for each in found.missing_samples
        )
    decays = sorted({facts["decay"] for facts in found.refined.values()})
    size = f"{format_size(found.bytes)}, {found.bytes_each:.2f} bytes per node"
    weights = "used" if found.weighted else "ignored"
    return output.facts_text(
        facts
        | {
            "weights": weights if found.graph["weighted"] else "",
            "refined": "ready for decay " + ", ".join(map(str, decays)) if decays else "",
            **output.defaults_text(found),
            "on disk": size + " per sample" * (found.samples > 0),
        }
    )


def _shown_parts(found: IndexDocument) -> dict[str, str]:
    from cocite.index.plan import links_in_words

    shown: dict[str, str] = {}
    for number, part in enumerate(found.parts if found.measure.startswith(PREFIX) else (), 1):
        own = {**part["settings"], **part["fixed"]}
        settings = [f"{k} {v}" for k, v in own.items() if found.settings.get(k) != v]
        links = links_in_words(find_measure(part["measure"]), part["direction"])
        weight = f"{part['weight']:.4g} of {part['measure']}"
        shown[f"part {number}"] = ", ".join([weight, links, part["layout"], *settings])
    return shown


@click.command()
@click.argument("path", metavar="GRAPH|INDEX|LINKS")
@flags.format
def verify(path: str, show: output.Show) -> None:
    """Read every file of a store in full and compare it with its checksum.

    This covers all parts of a partitioned graph, which must be on this machine, and the cached
    graph and indexes of a file of LINKS. The manifest is also compared with the content, as its own
    checksum does not reveal deliberate changes. Files that are not part of the store are listed.
    """
    from cocite.index.verify import VerifiedLinks, VerifyDocument

    kept = stored_of(path)
    each = [VerifyDocument.of(store) for store in kept]
    found = each[0] if kept == [path] else VerifiedLinks(path, each)
    show(output.Reply(found, lambda: "\n".join(_whole(one) for one in each if not one.faults)))
    for one in each:
        if one.leftovers:
            say(f"{one.leftovers}. They are not used and can be removed")
        if one.faults:
            left = [one.left] if one.left else []
            where = "" if kept == [path] else f"{one.path}: "
            raise Damaged("\n  ".join([f"{where}{one.verdict}:", *one.faults, *left]))


def _whole(found: VerifyDocument) -> str:
    size = format_size(found.bytes)
    return output.facts_text(
        {found.path: f"{found.kind}, {found.files} files, {size}: {found.verdict}"}
    )


@dataclass(frozen=True)
class CacheDocument(Document):
    """The cache's ``path`` (None if no location is safe), why it was chosen, and its contents."""

    path: str | None
    because: str
    copies: list[Copy]
    """Copies of stores at URLs."""
    bytes_of_copies: int
    links: dict[str, int]
    """Bytes cached for links and stored graphs, by source."""


@dataclass(frozen=True)
class ClearedDocument(Document):
    """The cache entries that were removed."""

    copies: list[Copy]
    links: list[str]
    """Their sources."""
    bytes: int


def _cache_reply() -> output.Reply:
    from cocite.search.cache import list_cache

    found = place()
    try:
        copies = list_remote_cache()
    except StoreError:
        copies = []  # no safe location
    links: dict[str, int] = {}  # bytes by source, summed over read options
    for source, nbytes in list_cache():
        links[source] = links.get(source, 0) + nbytes
    folder = None if found.folder is None else str(found.folder)
    size = sum(each.bytes for each in copies)
    document = CacheDocument(folder, found.because, copies, size, links)
    return output.Reply(document, lambda: _cache_text(document))


def _cache_text(found: CacheDocument) -> str:
    shown = {"cache": found.path or "none: no directory is safe"}
    shown["chosen by"] = f"{found.because} (set {VARIABLE} to change it)"
    count, size = len(found.copies), format_size(found.bytes_of_copies)
    shown["copies"] = f"{count:,} of remote stores, {size} (cocite cache clear --remote)"
    for number, copy in enumerate(found.copies, 1):
        read = ", being read" if copy.read else ""
        shown[f"copy {number}"] = f"{copy.url or copy.name}, {format_size(copy.bytes)}{read}"
    size = format_size(sum(found.links.values()))
    what = f"graphs and indexes of {output.counted(len(found.links), 'input')}"
    shown["of links"] = f"{what}, {size} (cocite cache clear --links)"
    return output.facts_text(shown)


@click.group()
def cache() -> None:
    """Clear the cache: copies of stores at URLs, and graphs and indexes built from links.

    cocite info --cache shows its location and contents.
    """


@cache.command()
@click.option("--remote", "copies", is_flag=True, help="Remove only the copies of remote stores.")
@click.option(
    "--links", is_flag=True, help="Remove only cached graphs and indexes built from links."
)
@flags.format
def clear(copies: bool, links: bool, show: output.Show) -> None:
    """Remove unused copies of stores at URLs, and cached graphs and indexes built from links."""
    from cocite.search.cache import clear_cache

    copies, links = copies or not links, links or not copies
    taken, cached = clear_remote_cache() if copies else [], clear_cache() if links else []
    size = sum(each.bytes for each in taken) + sum(nbytes for _, nbytes in cached)
    document = ClearedDocument(taken, [source for source, _ in cached], size)
    show(output.Reply(document, lambda: _cleared(document, copies, links)))


def _cleared(found: ClearedDocument, copies: bool, links: bool) -> str:
    parts = []
    if copies:
        parts.append(f"{len(found.copies)} cop{'y' if len(found.copies) == 1 else 'ies'}")
    if links:
        parts.append(f"{len(found.links)} cached graph{'' if len(found.links) == 1 else 's'}")
    return f"removed {output.and_of(parts)}, {format_size(found.bytes)}"


_SHOWN = 10


_SIDE = {
    "text": "For bipartite graphs: list only nodes of this side, such as item.",
    "unset": "both",
}


@click.command()
@click.argument("path", metavar="GRAPH|INDEX|LINKS")
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--search", metavar="TEXT", help="The same as TEXT.")
@click.option(
    "--links",
    is_flag=True,
    help="For each node found, also show which nodes link to it, and which it links to.",
)
@click.option(
    "-k", type=click.IntRange(1), default=20, show_default=True, help="How many nodes to show."
)
@click.option("--graph", metavar="DIR", help="The graph of an INDEX, if it was moved.")
@flags.takes(QuerySource, "source", only=("side", "bipartite", "no_cache", "titles"), side=_SIDE)
@flags.format
def nodes(
    path: str,
    text: str | None,
    search: str | None,
    links: bool,
    k: int,
    graph: str | None,
    source: QuerySource,
    show: output.Show,
) -> None:
    """Find nodes whose names or titles contain TEXT; without TEXT, list all nodes.

    The search ignores case, accents and percent-encoding, and treats underscores as blanks. An
    exact match comes first, then names that begin with TEXT, then the others. Ties are ordered by
    in-links.
    """
    from cocite.search.resolver import NodesDocument

    if text is not None and search is not None:
        raise UsageError(
            f"{text!r} and --search {search!r} both set the text to search for: omit one of the two"
        )
    wanted = text if search is None else search
    path = graph_of(path, source)
    found = NodesDocument.of_path(
        path, wanted or "", k=k, links=links, graph=graph, side=source.side
    )
    show(output.Reply(found, lambda: _nodes_text(found, links)))
    if not found.found:
        say(f"no name in {found.path} contains {wanted!r}")
    elif found.found > len(found.nodes):
        what = f" that contain {wanted!r}" if wanted else ""
        say(f"{len(found.nodes):,} of {found.found:,} nodes{what}; -k shows more")
    if found.nodes and found.nodes[0].in_links is None:
        say("the graph has been moved, so links are not counted: see --graph")


def _nodes_text(found: NodesDocument, links: bool) -> str:
    if not found.nodes:
        return ""
    if links:
        return "\n\n".join(map(_with_links, found.nodes))
    named = [each.title or "" for each in found.nodes] if found.titled else None
    if found.nodes[0].in_links is None:
        if named is None:
            return "\n".join(each.node for each in found.nodes)
        return output.names_text(["node"], [[each.node] for each in found.nodes], named)
    rows = [[f"{each.in_links:,}", f"{each.out_links:,}", each.node] for each in found.nodes]
    titles = ["in-links", "out-links", "node"]
    return output.names_text(titles, rows, named, (("out-links",), ("in-links",)))


def _with_links(node: FoundNode) -> str:
    lines = [f"{node.node}  {node.title}" if node.title else node.node]
    for title, ends in (("linked from", node.linked_from), ("links to", node.links_to)):
        others = ends or []
        lines.append(f"  {title} {len(others):,}{':' * bool(others)}")
        lines += [f"    {other}" for other in others[:_SHOWN]]
        if len(others) > _SHOWN:
            lines.append(f"    and {len(others) - _SHOWN:,} more: --format json lists all")
    return "\n".join(lines)
