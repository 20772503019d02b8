"""``cocite related``: list the nodes most related to a node."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cocite.cli import flags, inputs
from cocite.cli.commands.completion import node_names
from cocite.cli.help import SectionedCommand
from cocite.cli.output import Reply, Show, and_of, names_text, show_json
from cocite.errors import UnknownNode, UsageError
from cocite.options.query import QueryOptions, UnseenOptions
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.search import Hit, Index, Score
    from cocite.search.results import PairsDocument, RelatedDocument, SimilarityDocument


_GIVE_WAY = (("error",), ("low", "high"), ("pagerank",))
"""Columns to drop on a narrow terminal, in this order, so that names fit."""
_RELATED = """List the nodes most related to NODE, or to several nodes together, best first. With
--draft, list the nodes most related to a page that is not in the graph yet, by its links.

For an edge list ("cocite related links.tsv PAGE") or a stored graph, an index is built and
cached until the file or the graph changes. An INDEX answers directly.

In the table, error is the standard error of a score, and the true score lies between low and
high (see --confidence). If pages meet in few samples, the error is unreliable: use low and high.
The last line says up to which rank the order is certain: each page up to that rank scores higher
than the next one, listed or not. More samples or --refine make more ranks certain. Write -- before
a NODE that begins with -.

If NODE is -, names are read from standard input, one per line, and each is answered immediately
with a line of JSON.
"""


@click.command(cls=SectionedCommand, help=_RELATED)
@click.argument("index", metavar="INDEX|GRAPH|LINKS")
@click.argument("nodes", metavar="NODE...", nargs=-1, shell_complete=node_names)
@flags.takes(QueryOptions, "query")
@flags.takes(UnseenOptions, "unseen")
@inputs.asks
@flags.resources
@flags.graph_format
def related(
    index: str,
    nodes: tuple[str, ...],
    query: QueryOptions,
    unseen: UnseenOptions,
    source: inputs.IndexSource,
    limits: flags.ResourceLimits,
    show: Show,
) -> None:
    """List the nodes most related to a node; the help is ``_RELATED``."""
    from cocite.search.results import RelatedDocument

    from_input = nodes == ("-",) and unseen.draft is None
    if from_input and index == "-":
        raise UsageError(
            "standard input cannot provide both links and names: pass one of the two as a file"
        )
    if from_input and flags.is_set("show") and show is not show_json:
        raise UsageError(
            "with names from standard input, each answer is a line of JSON: omit --format, or "
            "query one page at a time"
        )
    named = () if from_input else nodes
    asked_index, settings = inputs.opened(index, source, named, **limits)
    asking = replace(query, settings=settings)

    def answered(names: Sequence[str]) -> RelatedDocument:
        nodes = inputs.as_stored(asked_index, index, names, source.where.side)
        return RelatedDocument.of(asked_index, tuple(nodes), options=asking)

    if from_input:
        with inputs.preparing(asked_index, query.refined):
            _answer_each(answered)
        return
    asked_index, asked = inputs.query_nodes(asked_index, nodes, unseen)
    with inputs.preparing(asked_index, query.refined):
        found = answered(asked)
    closer = inputs.narrowing(asked_index.stored.measure, found.settings)

    def graph(kind: str) -> str:
        from cocite.search.related_graph import RelatedGraph

        around = RelatedGraph.of(
            asked_index, list(found.nodes), query.k, found.hits, **asking.keywords()
        )
        return around.to_text(kind)

    def text() -> str:
        if not found.hits:
            links = inputs.is_links(index) or kind_of(index) == "graph"
            return _none(found, query) + _why_none(asked_index, found, asking, source, links)
        return _hits_text(found, closer, _complete(found, query)) + unmet(found, query.target_error)

    show(Reply(found, text, graph))


def _answer_each(answered: Callable[[Sequence[str]], RelatedDocument]) -> None:
    """Answer each name on standard input with a line of JSON, which may have an ``error``."""
    wrong = 0
    for line in sys.stdin:
        name = line.rstrip("\r\n")
        if not name:
            continue
        try:
            found = answered([name]).to_json()
        except UnknownNode as error:
            wrong += 1
            found = {"node": name, "error": str(error)}
        print(json.dumps(found, ensure_ascii=False), flush=True)
    if wrong:
        raise UsageError(f"{wrong:,} of the names are not nodes: see the lines with an error")


def _none(found: RelatedDocument, query: QueryOptions) -> str:
    node, floor = and_of(found.nodes), query.min_score
    filtered = replace(query, min_score=0.0).filters
    if query.offset:
        return f"{node} has no hit after rank {query.offset:,}"
    if floor > 0:
        return f"no {'requested ' * filtered}node scores {floor:g} or more with {node}"
    if filtered:
        return f"none of the requested nodes is related to {node} by {found.measure}"
    return f"no node is related to {node} by {found.measure}"


def _why_none(
    index: Index,
    found: RelatedDocument,
    query: QueryOptions,
    source: inputs.IndexSource,
    links: bool,
) -> str:
    if found.offset or len(found.nodes) > 1:
        return ""
    from cocite.search.empty import why_empty, why_filtered

    node, stored = found.nodes[0], index.stored
    if query.filters:
        return f". {why_filtered(index, node, query.settings)}"
    if stored.drafted:
        from cocite.search.unseen import UnseenIndex

        unlinked = stored.unlinked if isinstance(stored, UnseenIndex) else ""
        return f": the draft has no {unlinked}, which the index uses" if unlinked else ""
    why = why_empty(stored, node, source.where.graphs or None, links=links)
    return f". {why}" if why else ""


def _complete(found: RelatedDocument, query: QueryOptions) -> str:
    """Return a note if a short list is complete, or ""."""
    if not found.complete or len(found.hits) >= query.k:
        return ""
    filtered = replace(query, min_score=0.0).filters
    least = f"{query.min_score:g} or more" if query.min_score > 0 else "above 0"
    asked = "requested " * filtered
    return f"\nthe list is complete: no other {asked}node scores {least} by {found.measure}"


def _hits_text(found: RelatedDocument, closer: str, complete: str) -> str:
    hits, offset = found.hits, found.offset
    titles = ["rank", "score", "error", "low", "high", "node"]
    rows = [[str(i), *numbers(hit), hit.node] for i, hit in enumerate(hits, offset + 1)]
    if found.pageranks is not None:
        titles.insert(5, "pagerank")
        for row, rank in zip(rows, found.pageranks, strict=True):
            row.insert(5, f"{rank:.2e}")
    named = None if found.titles is None else [hit.title or "" for hit in hits]
    text = names_text(titles, rows, named, _GIVE_WAY)
    if closer and found.surely and any(map(is_open, hits)):
        text += f"\nscores are not sampled; {closer} narrows their intervals"
    if found.total is not None:
        text += f"\n{found.total:,} hits in total"
    text += complete
    if len(hits) == 1:
        return text
    if found.order == "pagerank":
        return f"{text}\nordered by PageRank, among the best by score"
    probably = "" if found.surely else f" ({found.confidence:.0%})"
    among = "" if found.pageranks is None else ", among the best by score"
    return f"{text}\n{_certainty(found.certain_ranks, offset, hits)}{among}{probably}"


def numbers(score: Score | Hit) -> list[str]:
    """Return score, error, low and high."""
    return [
        f"{score.score:.4f}",
        "<0.0001" if 0 < score.stderr < 0.00005 else f"{score.stderr:.4f}",
        f"{score.low:.4f}",
        f"{score.high:.4f}",
    ]


def unmet(found: RelatedDocument | SimilarityDocument | PairsDocument, target: float | None) -> str:
    """Return a note if the target error is not met, or ""."""
    bound = found.loss.get("error_bound", 0.0)
    if target is None or bound <= target:
        return ""
    return f"\n--target-error {target:g} is not met: a score may be off by {bound:.2g}"


def is_open(found: Hit | Score) -> bool:
    """Return whether the displayed interval is wider than one value."""
    return f"{found.low:.4f}" != f"{found.high:.4f}"


def _certainty(certain: int, offset: int, hits: Sequence[Hit]) -> str:
    if certain == len(hits):
        return "the order is certain"
    rank = offset + certain + 1
    if certain == len(hits) - 1:
        return f"the order is certain up to rank {rank - 1}; another page may have rank {rank}"
    here, after = hits[certain : certain + 2]
    equal = here.low == here.high == after.low == after.high
    tie = f", as ranks {rank} and {rank + 1} have the same score" if equal else ""
    if certain == 0:
        return f"the order is not certain from rank {rank} on{tie}"
    return f"the order is certain up to rank {rank - 1}{tie}"
