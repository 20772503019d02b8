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
        "The share of texts in a score; links are the rest. Not with a --measure that sets the "
        "share of texts.",
        metavar="SHARE",
        unset="0.5",
    )
    only_nodes: Any = option(
        None,
        "Keep only the pages named in this file, one a line. Scores among them are those of the "
        "whole graph, the index is smaller in proportion, and other pages cannot be asked.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        unset="all",
    )
    only_prefix: Any = option(
        None,
        "Keep only the pages whose names begin with this, and those of --only-nodes. Repeatable.",
        kind=str,
        many=True,
        metavar="TEXT",
    )
    only_range: str | None = option(
        None,
        "Keep only the pages of one of several ranges of equal size, such as 2/8 for the second of "
        "eight. By fusion, ppr-pmi and snn, cocite merge joins the indexes of all ranges into that "
        "of the whole graph, wherever they were built.",
        metavar="NUMBER/COUNT",
        unset="all",
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
        "Take measure, direction and settings from this file, as cocite tune writes it. Other "
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
        "The default of --meeting-weight for questions to this index, for measures of walks (see: "
        "cocite related --help). It changes no samples.",
        metavar="FILE|hitting|EXPR",
    )
    refine: bool = option(
        False,
        "Prepare refined answers now (simrank only), in 24 bytes a node. Otherwise every command "
        "that refines prepares them itself.",
    )
    numbers: range | None = option(
        None,
        "Draw only the samples with these numbers, such as 100..199. cocite merge joins indexes "
        "of different numbers, wherever they were built.",
        kind=Sample,
        flag="--sample-range",
        metavar="FIRST..LAST",
        unset="0..99, or as --samples says",
    )
    staging_url: str | None = option(
        None,
        "With --cluster, the folder (s3://..., gs://..., file://...) through which nodes that do "
        "not see the output send samples.",
        flag="--staging-url",
        metavar="URL",
        unset="nodes see GRAPH and output by the same paths",
    )
    overwrite: bool = option(
        False,
        "Replace an existing index once the new one is complete. Its directory must hold nothing "
        "else.",
    )
    restart: bool = option(
        False,
        "Begin again, without what an unfinished build has done.",
        flag="--no-resume",
    )


@dataclass(frozen=True)
class PlanOptions(MeasureOptions):
    """What ``cocite plan`` takes: what an index is made of, and what is asked of it."""

    samples: int | None = option(None, "The number of samples.", low=1, fronts=PYTHON)
    delta: float | None = option(
        None,
        "Take enough samples to tell scores apart that differ by this much, such as 0.05.",
        low=0,
        high=1,
        open=True,
    )
    disk: Any = option(
        None,
        "Take as many samples as fit on this much disk, such as 5GB.",
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
        "How many nodes a list should find, on which its precision depends.",
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
        "The current texts of the pages, for an index that compares texts (see: cocite index).",
        kind=ExistingPath,
        metavar="FOLDER|FILE",
        unset="pages keep the words that the index has of them, and new ones have none",
    )
    staging_url: str | None = option(
        None,
        "With --cluster, the folder through which nodes that do not see the output send samples.",
        flag="--staging-url",
        metavar="URL",
        unset="nodes see GRAPH and INDEX by the same paths",
    )
    restart: bool = option(
        False, "Throw away an unfinished refresh or build, and begin again.", flag="--no-resume"
    )
    local: bool = option(
        False,
        "Compute only nodes whose links changed and their neighbors again, and say how stale the "
        "others are. For indexes of fusion or ppr-pmi, whose old graph must still be in place.",
        unset="compute all nodes again",
    )
    force: bool = option(
        False, "Refresh INDEX also from the GRAPH that its newest samples are of already."
    )
    add_links: bool = option(
        False,
        "First add the links that cocite serve --accept-links stored for INDEX to GRAPH, which is "
        "replaced when the new one is complete.",
    )
