"""Options of a question: which nodes are listed, in what order, and how surely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.options import CLI, NodeNames, Options, option

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
    """Kind of an option that is a file of PageRanks, or in Python an array of them."""


@dataclass(frozen=True)
class ScoreOptions(Options):
    """How exact a score is, and how it is bounded: of one pair, of many, of a list.

    ``settings`` are those of the measure that the question chooses, by name.
    """

    refine: bool = option(
        False,
        "Improve the scores of samples. simrank computes them to a certified error; other "
        "measures with samples draw more of them for the best hits. This reads the graph.",
        label="refined (more exact, slower)",
    )
    target_error: float | None = option(
        None,
        "The largest error of a refined score. If it is not reached, the answer says so. Turns on "
        "--refine.",
        low=1e-6,
        high=1,
        unset="0.001",
        served=(1e-4, 1.0),
    )
    confidence: float = option(
        DEFAULT_CONFIDENCE,
        "The probability that low to high contains the true score.",
        label="confidence of intervals",
        low=0,
        high=1,
        open=True,
    )
    interval: str = option(
        "betting",
        "How to compute the interval of a score. betting is the narrowest. bernstein uses the "
        "variance of the samples, hoeffding only their number.",
        choices=INTERVALS,
    )

    settings: Mapping[str, Any] = field(default_factory=dict)

    def keywords(self) -> dict[str, Any]:
        """Return the fields that are chosen, but ``k``, with the settings of the measure."""
        chosen = self.changed()
        chosen.pop("k", None)
        return chosen | dict(self.settings)

    @property
    def refined(self) -> bool:
        """Whether scores are refined."""
        return self.refine or self.target_error is not None


@dataclass(frozen=True)
class FilterOptions(Options):
    """Which nodes may be hits: every field is a filter."""

    min_score: float = option(0.0, "Leave out hits with a lower score.", low=0, label="least score")
    min_confidence: float | None = option(
        None,
        "List only hits above --min-score, with this probability, such as 0.95.",
        low=0,
        high=1,
        open=True,
    )
    prefix: str | None = option(
        None,
        "List only nodes whose name begins with this.",
        metavar="TEXT",
        label="only names that begin with",
    )
    exclude_prefix: str | None = option(
        None,
        "Leave out nodes whose name begins with this.",
        metavar="TEXT",
        label="no names that begin with",
    )
    only: Any = option(
        None,
        "List only nodes that are named in this file, one a line.",
        kind=NodeNames,
        many=True,
        flag="--only",
        metavar="FILE",
        limit="only",
    )
    exclude_same_site: bool = option(
        False,
        "Leave out pages of the same site as the node, by the host in its URL.",
        flag="--exclude-same-site",
        label="other sites only",
    )

    @property
    def filters(self) -> bool:
        """Whether something decides which nodes may be hits."""
        return not self.changed().keys().isdisjoint(FilterOptions.declared())


@dataclass(frozen=True)
class OrderOptions(Options):
    """What comes first."""

    order: str = option(
        "score",
        "What comes first. The orders by PageRank take the best by score, see --candidates.",
        choices=ORDERS,
    )
    candidates: int | None = option(
        None,
        "How many of the best hits by score to order by PageRank.",
        low=1,
        unset="four times as many as are asked for, at least 100",
        limit="candidates",
    )
    ranks: Any = option(
        None,
        "The PageRanks for --order, as cocite rank -o wrote them (.npy is fastest); in Python also "
        "float64[nodes] by id.",
        kind=RanksFile,
        metavar="FILE",
        unset="computed from the graph, which takes seconds for some million links",
        fronts=frozenset({"cli", "python"}),
    )


@dataclass(frozen=True)
class ListOptions(Options):
    """How long a list is, and where it begins; how several nodes are asked together."""

    k: int = option(
        DEFAULT_K,
        "How many hits to list.",
        low=1,
        flag="-k",
        limit="k",
        fronts=frozenset({"cli", "http"}),
        label="how many",
    )
    aggregate: str = option(
        "mean",
        "How to combine the scores of several nodes: their mean, or the smallest of them.",
        choices=AGGREGATES,
    )
    offset: int = option(0, "How many hits to skip first.", low=0, limit="offset")
    total: bool = option(False, "Also count all hits, listed or not.")


@dataclass(frozen=True)
class QueryOptions(ScoreOptions, OrderOptions, FilterOptions, ListOptions):
    """What a question for the nodes most related to one, or to several, takes."""


@dataclass(frozen=True)
class UnseenOptions(Options, fronts=CLI):
    """A node that is not in the graph yet, by its links."""

    draft: Path | None = option(
        None,
        "Ask for a page that is not in the graph yet, instead of NODE. FILE lists the pages that "
        "it links to, one a line, with '<- ' before those that link to it, and a weight behind a "
        "tab if links have weights. - reads standard input. A Markdown note (.md) is read for its "
        "links.",
        metavar="FILE|-",
    )
    draft_format: str = option(
        "auto",
        "What the draft is: names, one a line, or a Markdown note. auto decides by the name of "
        "FILE, such as .md.",
        choices=("auto", "names", "note"),
    )
    draft_name: str | None = option(
        None,
        "The name of the draft in the answer. Use a URL for --exclude-same-site, and for a note "
        "its path in the folder, without suffix.",
        metavar="NAME",
        unset="draft",
    )
    skip_unknown: bool = option(False, "Ignore the draft's links with unknown pages.")


@dataclass(frozen=True)
class BatchOptions(QueryOptions):
    """What a question for every node takes: that of one, and what its rows hold."""

    nodes: Any = option(
        None,
        "Ask for the nodes in this file: names, one a line.",
        kind=NodeNames,
        many=True,
        metavar="FILE",
        unset="all",
    )
    intervals: Any = option(
        None,
        "Also write low and high, which contain the true score with the probability P; or no. "
        "Samples are read once more for this.",
        kind=str,
        metavar="P|no",
        unset="0.95 for measures without samples and with --refine; else no",
        fronts=CLI,
    )
    ids: bool = option(False, "Write the numbers of nodes, from 0 on, instead of their names.")
    resume: bool = option(
        True,
        "Resume an interrupted batch.",
        flag="--no-resume",
        negated="Begin again, without what an unfinished batch has done.",
        fronts=CLI,
    )

    def keywords(self) -> dict[str, Any]:
        """Return the fields that a batch takes by name."""
        own = "intervals", "resume"
        return {name: value for name, value in super().keywords().items() if name not in own}
