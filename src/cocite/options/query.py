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
        "Give better scores than the samples alone. With simrank, scores are computed, and the "
        "intervals always hold. With other measures that have samples, the best hits get more of "
        "them. This reads the graph.",
        label="refined (more exact, slower)",
    )
    target_error: float | None = option(
        None,
        "How far off a refined score may be. If that is not met, the answer says how far off it "
        "may be. Turns on --refine.",
        low=1e-6,
        high=1,
        unset="0.001",
        served=(1e-4, 1.0),
    )
    confidence: float = option(
        DEFAULT_CONFIDENCE,
        "How surely low to high holds the true score: the probability of it.",
        label="confidence of intervals",
        low=0,
        high=1,
        open=True,
    )
    interval: str = option(
        "betting",
        "How to compute the interval of a score. betting is the narrowest: it weighs one sample "
        "after another. bernstein looks at how much the samples differ, hoeffding only at how many "
        "there are.",
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
        "List only nodes whose name begins like this.",
        metavar="TEXT",
        label="only names that begin with",
    )
    exclude_prefix: str | None = option(
        None,
        "List no nodes whose name begins like this.",
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
        "List no pages of the same site as the node, the host in its URL.",
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
        "How many hits to order by PageRank, the best by score.",
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
        "How several nodes are asked together: by the mean of what they score with another node, "
        "or by the least of it.",
        choices=AGGREGATES,
    )
    offset: int = option(0, "How many hits to skip first.", low=0, limit="offset")


@dataclass(frozen=True)
class QueryOptions(ScoreOptions, OrderOptions, FilterOptions, ListOptions):
    """What a question for the nodes most related to one, or to several, takes."""


@dataclass(frozen=True)
class UnseenOptions(Options, fronts=CLI):
    """A node that is not in the graph yet, by its links."""

    draft: Path | None = option(
        None,
        "Ask for a page that is not in the graph yet, in the place of NODE, as if it had been "
        "there. FILE has the pages that it links to, one a line; '<- ' before those that link to "
        "it; behind a tab the weight of the link, if the index goes by weights. - reads standard "
        "input. A Markdown note (.md) has its links in its text.",
        metavar="FILE|-",
    )
    draft_format: str = option(
        "auto",
        "What the draft is: names, one a line, or a Markdown note, whose links are found among the "
        "notes of the graph. auto takes a FILE for a note that is called so, such as .md.",
        choices=("auto", "names", "note"),
    )
    draft_name: str | None = option(
        None,
        "What the draft is called in the answer; an URL, for --exclude-same-site; of a note its "
        "path in the folder, without suffix.",
        metavar="NAME",
        unset="draft",
    )
    skip_unknown: bool = option(False, "Leave out the draft's links with unknown pages.")


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
        "Write low and high, too, which hold the true score with the probability P; or no. Where "
        "there are samples, they are read once more.",
        kind=str,
        metavar="P|no",
        unset="0.95 for measures without samples and with --refine; else no",
        fronts=CLI,
    )
    ids: bool = option(False, "Write the numbers of nodes, from 0 on, instead of their names.")
    resume: bool = option(
        True,
        "Go on with a batch that was interrupted.",
        flag="--no-resume",
        negated="Begin again: throw away an unfinished batch, which had other options.",
        fronts=CLI,
    )

    def keywords(self) -> dict[str, Any]:
        """Return the fields that a batch takes by name."""
        own = "intervals", "resume"
        return {name: value for name, value in super().keywords().items() if name not in own}
