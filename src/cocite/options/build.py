"""Options of an index: what it is made of, and how it is built, planned and refreshed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.options import CLI, DIRECTIONS, PYTHON, NodeNames, Options, option
from cocite.options.query import DEFAULT_K


class ExistingPath:
    """Kind of an option that is a file or a folder that is there."""


class Sample:
    """Kind of an option that is a range of numbers: ``100..199``, in Python a ``range``."""


@dataclass(frozen=True)
class MeasureOptions(Options):
    """What an index is made of. ``settings`` are those of its measure, by name."""

    measure: str | None = option(
        None,
        "What similar means: a name that cocite measures lists, or a weighted mean of several, "
        "such as blend:psimrank+cocitation.",
        metavar="NAME",
        unset="fusion",
    )
    direction: str | None = option(
        None,
        "Which links count. in: pages are similar if similar pages link to them. out: if they link "
        "to similar pages. both: both together. any: links are taken either way.",
        metavar=f"[{'|'.join(DIRECTIONS)}]",
        unset="as the measure says (see: cocite measures)",
    )
    layout: str | None = option(
        None,
        "How the index is stored, for a measure that has a choice (see: cocite measures).",
        metavar="NAME",
    )
    texts: Any = option(
        None,
        "Compare the texts of the pages, too: a folder or a tar archive with a file a page, called "
        "as the page is, with or without an ending; or a table of names and texts. Pages with the "
        "same words in their texts are similar then, too.",
        kind=ExistingPath,
        metavar="FOLDER|FILE",
        unset="links alone",
    )
    text_fraction: float | None = option(
        None,
        "How much texts count in a score; links are the rest. A --measure that names text says so "
        "itself.",
        metavar="SHARE",
        unset="0.5",
    )
    only_nodes: Any = option(
        None,
        "Keep the pages in this file only: names, one a line. Walks go over the whole graph; "
        "scores among these pages are what they would be, and other pages cannot be asked. The "
        "index is smaller in proportion.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        unset="all",
    )
    only_prefix: Any = option(
        None,
        "Keep only the pages whose names begin like this, and those of --only-nodes. It can be "
        "given several times.",
        kind=str,
        many=True,
        metavar="TEXT",
    )
    unweighted: bool = option(
        False, "Ignore the weights of links.", unset="use them, if there are any"
    )
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IndexOptions(MeasureOptions):
    """What ``cocite index`` takes: what an index is made of, and how."""

    settings_file: Any = option(
        None,
        "Take measure, direction and settings from this file, such as cocite tune writes. Options "
        "that are given beside it go before it, but for another --measure.",
        kind=Path,
        flag="--settings",
        metavar="FILE",
        fronts=CLI,
    )

    shard: int | None = option(
        None,
        "Save after so many samples; a build that was interrupted goes on from there.",
        metavar="SAMPLES",
        unset="16, fewer for large graphs",
    )
    blocks: int | None = option(
        None,
        "Cut the graph into blocks, one in memory at a time.",
        low=1,
        metavar="COUNT",
        unset="as many as --memory requires",
    )
    external: bool = option(
        False,
        "Keep the state of the walks on disk, too, so that memory does not grow with the graph.",
        flag="--out-of-core",
        unset="only if --memory is below 26.5 bytes a node",
    )
    meeting_weight: Any = option(
        None,
        "What a meeting of walks is worth, where a question does not say; for measures of walks "
        "(see: cocite related --help). It is kept with the index; its samples are the same.",
        metavar="FILE|hitting|EXPR",
    )
    refine: bool = option(
        False,
        "Prepare refined answers now (simrank only), in 24 bytes a node. Otherwise every command "
        "that refines prepares them itself.",
    )
    numbers: range | None = option(
        None,
        "Draw the samples with these numbers only, such as 100..199. cocite merge joins indexes of "
        "different numbers, wherever they were built. Each of them can be asked, too.",
        kind=Sample,
        flag="--sample-range",
        metavar="FIRST..LAST",
        unset="0..99, or as --samples says",
    )
    staging_url: str | None = option(
        None,
        "With --cluster: the folder (s3://..., gs://..., file://...) by which samples come from "
        "nodes that do not see the output.",
        flag="--staging-url",
        metavar="URL",
        unset="nodes see GRAPH and output by the same paths",
    )
    overwrite: bool = option(
        False,
        "Replace the index that is there, if nothing else is in it. It stays until the new one is "
        "complete.",
    )
    restart: bool = option(
        False,
        "Begin again: throw away an unfinished build, which had other settings.",
        flag="--no-resume",
    )


@dataclass(frozen=True)
class PlanOptions(MeasureOptions):
    """What ``cocite plan`` takes: what an index is made of, and what is asked of it."""

    samples: int | None = option(None, "So many samples.", low=1, fronts=PYTHON)
    delta: float | None = option(
        None,
        "Take samples enough to tell scores apart, which differ by so much, such as 0.05.",
        low=0,
        high=1,
        open=True,
    )
    disk: Any = option(
        None,
        "Take as many samples as fit into so much disk, such as 5GB.",
        kind=str,
        metavar="SIZE",
    )
    time: Any = option(
        None, "Take as many samples as can be made in that time: 90s, 10min or 2h.", metavar="TIME"
    )
    failure: float = option(
        0.01, "The probability that a promise is not kept.", low=0, high=1, open=True
    )
    guarantee: str | None = option(
        None,
        "What --delta promises. error: a score is off by no more than it. order: two nodes whose "
        "scores differ by it stand in the right order. recall: nodes whose scores are that far "
        "above a threshold are listed. precision: nodes whose scores are that far below it are "
        "not.",
        choices=("error", "order", "recall", "precision"),
        unset="all of them",
    )
    listed: int | None = option(
        None,
        "How many nodes a list is to find: its precision depends on them.",
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
        "How many hits related-all writes a node; of an INDEX only.",
        low=1,
        flag="-k",
        fronts=CLI,
    )


@dataclass(frozen=True)
class RefreshOptions(Options):
    """What ``cocite refresh`` takes."""

    fraction: float = option(
        0.1, "The fraction of the samples to replace, above 0, at most 1.", metavar="SHARE"
    )
    date: str | None = option(
        None,
        "The date of GRAPH, such as 2026-11-21; cocite info shows it.",
        metavar="DAY",
        unset="today",
    )
    texts: Any = option(
        None,
        "The texts of the pages as they are now, for an index that compares them (see: cocite "
        "index).",
        kind=ExistingPath,
        metavar="FOLDER|FILE",
        unset="pages keep the words that the index has of them, and new ones have none",
    )
    staging_url: str | None = option(
        None,
        "With --cluster: the folder by which samples come from nodes that do not see the output.",
        flag="--staging-url",
        metavar="URL",
        unset="nodes see GRAPH and INDEX by the same paths",
    )
    restart: bool = option(
        False, "Throw away an unfinished refresh or build, and begin again.", flag="--no-resume"
    )
    local: bool = option(
        False,
        "Of an index of fusion or ppr-pmi: compute again only the nodes whose links changed, and "
        "their neighbors, and say how stale the others are. The graph that INDEX is of must still "
        "be where it was.",
        unset="compute all nodes again",
    )
    force: bool = option(
        False, "Refresh INDEX also from the GRAPH that its newest samples are of already."
    )
    add_links: bool = option(
        False,
        "First add the links to GRAPH that cocite serve --accept-links took for INDEX. GRAPH is "
        "replaced, when the new one is complete.",
    )
