"""Options for building, planning and refreshing an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.options import (
    BETWEEN_0_AND_1,
    CLI,
    DIRECTIONS,
    PYTHON,
    NodeNames,
    Options,
    option,
    option_of,
)
from cocite.options.query import DEFAULT_K


class ExistingPath:
    """Kind of an option that is an existing file or folder."""


class Sample:
    """Kind of an option that is a range: ``100..199``, or a ``range`` in Python."""


@dataclass(frozen=True)
class MeasureOptions(Options):
    """What an index contains. ``settings`` are the measure's settings, by name."""

    measure: str | None = option(
        None,
        "The measure of similarity (see: cocite measures), or a weighted mean of several, such as "
        "blend:psimrank+cocitation.",
        metavar="NAME",
        unset="fusion",
    )
    direction: str | None = option(
        None,
        "Which links count. in: pages are similar if similar pages link to them. out: if they link "
        "to similar pages. both: combine in-link and out-link similarity. any: ignore direction.",
        metavar=f"[{'|'.join(DIRECTIONS)}]",
        unset="the default of the measure (see: cocite measures)",
    )
    layout: str | None = option(
        None,
        "How the index is stored, for measures with several layouts (see: cocite measures).",
        metavar="NAME",
    )
    texts: Any = option(
        None,
        "Also compare the texts of pages: pages with the same words are similar. The texts are a "
        "table of names and texts, or a folder or tar archive with one file per page, named like "
        "the page, with or without an extension.",
        kind=ExistingPath,
        metavar="FOLDER|FILE",
        unset="only links",
    )
    text_fraction: float | None = option(
        None,
        "The weight of texts in a score, from 0 to 1; links have the remaining weight. Not for a "
        "--measure that sets this weight itself.",
        metavar="SHARE",
        unset="0.5",
    )
    only_nodes: Any = option(
        None,
        "Index only the pages named in this file, one per line. Scores are still computed from "
        "the whole graph, and the index is proportionally smaller. Other pages cannot be queried.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        unset="all",
    )
    only_prefix: Any = option(
        None,
        "Index only pages whose names begin with this text, and the pages of --only-nodes. "
        "Repeatable.",
        kind=str,
        many=True,
        metavar="TEXT",
    )
    only_range: str | None = option(
        None,
        "Index only one of several equal ranges of pages, such as 2/8 for the second of eight. "
        "For fusion, ppr-pmi and snn, cocite merge joins the indexes of all ranges into one, even "
        "if they were built on different machines.",
        metavar="NUMBER/COUNT",
        unset="all",
    )
    unweighted: bool = option(
        False, "Ignore the weights of links.", unset="use weights if the graph has them"
    )
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IndexOptions(MeasureOptions):
    """Options of ``cocite index``: what the index contains, and how to build it."""

    settings_file: Any = option(
        None,
        "Read measure, direction and settings from this file, written by cocite tune. Other "
        "options override it, except --measure.",
        kind=Path,
        flag="--settings",
        metavar="FILE",
        fronts=CLI,
    )

    shard: int | None = option(
        None,
        "Save after this many samples; an interrupted build resumes there.",
        metavar="SAMPLES",
        unset="16, fewer for large graphs",
    )
    blocks: int | None = option(
        None,
        "Split the graph into this many blocks, one in memory at a time.",
        low=1,
        metavar="COUNT",
        unset="as many as --memory requires",
    )
    external: bool = option(
        False,
        "Also keep the state of walks on disk, so that memory does not grow with the graph.",
        flag="--out-of-core",
        unset="only if --memory is below 26.5 bytes per node",
    )
    meeting_weight: Any = option(
        None,
        "The default --meeting-weight of queries to this index, for measures based on walks (see: "
        "cocite related --help). Samples do not depend on it.",
        metavar="FILE|hitting|EXPR",
    )
    refine: bool = option(
        False,
        "Store the data for refined answers (simrank only), 24 bytes per node. Otherwise every "
        "command that refines scores recomputes this data.",
    )
    numbers: range | None = option(
        None,
        "Draw only the samples with these numbers, such as 100..199. cocite merge joins indexes "
        "with different sample numbers, even if they were built on different machines.",
        kind=Sample,
        flag="--sample-range",
        metavar="FIRST..LAST",
        unset="0..99, or by --samples",
    )
    staging_url: str | None = option(
        None,
        "With --cluster, the folder (s3://..., gs://..., file://...) for samples from nodes that "
        "cannot access the output.",
        metavar="URL",
        unset="nodes can access GRAPH and the output by the same paths",
    )
    overwrite: bool = option(
        False,
        "Replace an existing index once the new one is complete. Its directory must hold nothing "
        "else.",
    )
    restart: bool = option(
        False,
        "Start over, and discard an unfinished build.",
        flag="--no-resume",
    )


@dataclass(frozen=True)
class PlanOptions(MeasureOptions):
    """Options of ``cocite plan``: what the index contains, and how it is queried."""

    samples: int | None = option(None, "The number of samples.", low=1, fronts=PYTHON)
    delta: float | None = option(
        None,
        "Take enough samples to distinguish scores that differ by this much, such as 0.05.",
        **BETWEEN_0_AND_1,
    )
    disk: Any = option(
        None,
        "Take as many samples as fit on this much disk, such as 5GB.",
        kind=str,
        metavar="SIZE",
    )
    time: Any = option(
        None, "Take as many samples as fit in this time: 90s, 10min or 2h.", metavar="TIME"
    )
    failure: float = option(0.01, "The probability that a guarantee fails.", **BETWEEN_0_AND_1)
    guarantee: str | None = option(
        None,
        "What --delta guarantees. error: the error of a score is at most delta. order: two nodes "
        "whose scores differ by delta are ranked correctly. recall: nodes whose scores are delta "
        "above a threshold are listed. precision: nodes whose scores are delta below the threshold "
        "are not listed.",
        choices=("error", "order", "recall", "precision"),
        unset="all",
    )
    listed: int | None = option(
        None,
        "The expected number of nodes in a list; --guarantee precision depends on it.",
        low=1,
        metavar="COUNT",
        unset="10",
    )
    scratch: Any = option(
        None,
        "The directory for scratch files.",
        metavar="DIR",
        unset="the system's directory for temporary files",
    )
    k: int = option(
        DEFAULT_K,
        "The number of hits that related-all writes per node, if an INDEX is given.",
        low=1,
        flag="-k",
        fronts=CLI,
    )


@dataclass(frozen=True)
class RefreshOptions(Options):
    """Options of ``cocite refresh``."""

    fraction: float = option(
        0.1, "The fraction of the samples to replace, above 0, at most 1.", metavar="SHARE"
    )
    date: str | None = option(
        None,
        "The date of GRAPH, such as 2026-11-21; cocite info shows it.",
        metavar="DAY",
        unset="today",
    )
    texts: Any = option_of(
        MeasureOptions,
        "texts",
        text="The current texts of the pages, for an index that compares texts (see: cocite "
        "index).",
        unset="pages keep their indexed words; new pages have none",
    )
    staging_url: str | None = option(
        None,
        "With --cluster, the folder for samples from nodes that cannot access the output.",
        metavar="URL",
        unset="nodes can access GRAPH and INDEX by the same paths",
    )
    restart: bool = option(
        False, "Start over, and discard an unfinished refresh or build.", flag="--no-resume"
    )
    local: bool = option(
        False,
        "Recompute only nodes whose links changed, and their neighbors, and report how stale the "
        "others are. For indexes of fusion or ppr-pmi, whose old graph must still be in place.",
        unset="recompute all nodes",
    )
    force: bool = option(False, "Refresh INDEX even if its newest samples are already from GRAPH.")
    add_links: bool = option(
        False,
        "First add the links that cocite serve --accept-links stored for INDEX to GRAPH. GRAPH is "
        "replaced once the new one is complete.",
    )
