"""Options of queries: filters, order and accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.options import BETWEEN_0_AND_1, CLI, NodeNames, Options, option

AGGREGATES = ("mean", "min")
ORDERS = ("score", "score*pagerank", "pagerank")
INTERVALS = ("betting", "bernstein", "hoeffding")
DEFAULT_ORDER = "score"
DEFAULT_AGGREGATE = "mean"
DEFAULT_INTERVAL = "betting"
DEFAULT_K = 20
DEFAULT_REASONS = 10
DEFAULT_CONFIDENCE = 0.95


class RanksFile:
    """Kind of an option that is a file of PageRanks; in Python also an array."""


@dataclass(frozen=True)
class ScoreOptions(Options):
    """Accuracy of scores. ``settings`` are the measure's query settings, by name."""

    refine: bool = option(
        False,
        "Improve sampled scores. simrank computes them to a certified error; other measures draw "
        "more samples for the best hits. This reads the graph.",
        label="refined (more exact, slower)",
    )
    target_error: float | None = option(
        None,
        "The largest error of a refined score; the answer reports whether it was achieved. Implies "
        "--refine.",
        low=1e-6,
        high=1,
        unset="0.001",
        served=(1e-4, 1.0),
    )
    confidence: float = option(
        DEFAULT_CONFIDENCE,
        "The probability that the interval from low to high contains the exact score.",
        label="confidence of intervals",
        **BETWEEN_0_AND_1,
    )
    interval: str = option(
        "betting",
        "How to compute the confidence interval of a score. betting is the narrowest. bernstein "
        "uses the variance of the samples, hoeffding only their number.",
        choices=INTERVALS,
    )

    settings: Mapping[str, Any] = field(default_factory=dict)

    def keywords(self) -> dict[str, Any]:
        """Return the changed fields except ``k``, and the settings, by name."""
        chosen = self.changed()
        chosen.pop("k", None)
        return chosen | dict(self.settings)

    @property
    def refined(self) -> bool:
        """Return whether scores are refined."""
        return self.refine or self.target_error is not None


@dataclass(frozen=True)
class FilterOptions(Options):
    """Which nodes may be hits: every field is a filter."""

    min_score: float = option(0.0, "Omit hits with a lower score.", low=0, label="minimum score")
    min_confidence: float | None = option(
        None,
        "List only hits whose exact scores are above --min-score with this probability, such as "
        "0.95.",
        **BETWEEN_0_AND_1,
    )
    prefix: str | None = option(
        None,
        "List only nodes whose names begin with this text.",
        metavar="TEXT",
        label="only names that begin with",
    )
    exclude_prefix: str | None = option(
        None,
        "Omit nodes whose names begin with this text.",
        metavar="TEXT",
        label="no names that begin with",
    )
    only: Any = option(
        None,
        "List only nodes named in this file, one per line.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        limit="only",
    )
    exclude_same_site: bool = option(
        False,
        "Omit pages with the same host in their URLs as the query node.",
        label="other sites only",
    )

    @property
    def filters(self) -> bool:
        """Return whether any filter is set."""
        return not self.changed().keys().isdisjoint(FilterOptions.declared())


@dataclass(frozen=True)
class OrderOptions(Options):
    """The order of hits."""

    order: str = option(
        "score",
        "The order of hits. PageRank reorders only the best hits by score; see --candidates.",
        choices=ORDERS,
    )
    candidates: int | None = option(
        None,
        "The number of best hits by score to reorder by PageRank.",
        low=1,
        unset="four times the requested number of hits, at least 100",
        limit="candidates",
    )
    ranks: Any = option(
        None,
        "The file of PageRanks for --order, written by cocite rank -o (.npy loads fastest); in "
        "Python also float64[nodes] by id.",
        kind=RanksFile,
        metavar="FILE",
        unset="computed from the graph, in seconds for a few million links",
        fronts=frozenset({"cli", "python"}),
    )


@dataclass(frozen=True)
class ListOptions(Options):
    """The list's length and start, and the aggregation of several nodes' scores."""

    k: int = option(
        DEFAULT_K,
        "The number of hits to list.",
        low=1,
        flag="-k",
        limit="k",
        fronts=frozenset({"cli", "http"}),
        label="how many",
    )
    aggregate: str = option(
        "mean",
        "How to combine the scores of several nodes: by mean or minimum.",
        choices=AGGREGATES,
    )
    offset: int = option(0, "The number of hits to skip first.", low=0, limit="offset")
    total: bool = option(False, "Also report the total number of hits.")


@dataclass(frozen=True)
class QueryOptions(ScoreOptions, OrderOptions, FilterOptions, ListOptions):
    """Options of a query for related nodes."""


@dataclass(frozen=True)
class UnseenOptions(Options, fronts=CLI):
    """Options for a node that is not in the graph yet, given by its links."""

    draft: Path | None = option(
        None,
        "Query a page that is not in the graph yet, instead of NODE. FILE lists the pages that it "
        "links to, one per line; '<- ' precedes pages that link to it. A tab and a weight may "
        "follow. FILE may also be a Markdown note (.md). - reads standard input.",
        metavar="FILE|-",
    )
    draft_format: str = option(
        "auto",
        "The format of the draft: names, one per line, or a Markdown note. auto: by the extension "
        "of FILE.",
        choices=("auto", "names", "note"),
    )
    draft_name: str | None = option(
        None,
        "The name of the draft in the answer: a URL for --exclude-same-site; for a note its path "
        "in the folder, without extension.",
        metavar="NAME",
        unset="draft",
    )
    skip_unknown: bool = option(False, "Ignore links between the draft and unknown pages.")


@dataclass(frozen=True)
class BatchOptions(QueryOptions):
    """Options of a batch of queries."""

    nodes: Any = option(
        None,
        "Query only the nodes named in this file, one per line.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        unset="all",
    )
    intervals: Any = option(
        None,
        "Also write low and high, an interval that contains the exact score with probability P; "
        "with 'no', omit them. Intervals require a second pass over the samples.",
        kind=str,
        metavar="P|no",
        unset="0.95 for measures without samples or with --refine; otherwise no",
        fronts=CLI,
    )
    ids: bool = option(False, "Write node ids, which start at 0, instead of names.")
    resume: bool = option(
        True,
        "Resume an interrupted batch.",
        flag="--no-resume",
        negated="Start over, and discard an unfinished batch.",
        fronts=CLI,
    )

    def keywords(self) -> dict[str, Any]:
        """Return the options that a batch takes by name."""
        own = "intervals", "resume"
        return {name: value for name, value in super().keywords().items() if name not in own}


@dataclass(frozen=True)
class ShardOptions(Options, section="Cluster"):
    """How the samples of an index are divided among the nodes of a cluster."""

    cluster: str | None = option(
        None,
        "Distribute the work over several machines that can all read INDEX: HOST:PORT of the head "
        "of a Ray cluster, auto for the running one, or local:N for N nodes on this machine.",
        metavar="ADDRESS",
        fronts=CLI,
    )
    shards: int | None = option(
        None,
        "The number of shards to divide the samples into.",
        low=1,
        unset="two per node",
    )
    replicas: int = option(1, "The number of nodes that hold each shard.", low=1)
    deadline: float = option(
        200.0,
        "The time limit of shards in milliseconds. Answers combine the shards that met the limit, "
        "and report their number.",
        low=1,
        metavar="MS",
    )
