"""Options of evaluation and of tuning: by what answers are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cocite.options import DIRECTIONS, Options, option
from cocite.options.build import ExistingPath


@dataclass(frozen=True)
class LabelOptions(Options):
    """A table of names and categories, and how it is read."""

    labels: Any = option(
        None,
        "A table of names and categories: text (tabs, commas, semicolons, bars or blanks) or "
        "Parquet.",
        kind=ExistingPath,
        metavar="FILE",
    )
    label_columns: Any = option(
        (1, 2),
        "The columns of name and category, by their names or by numbers from 1.",
        metavar="A,B",
    )
    delimiter: str = option(
        "auto",
        "Between columns, in the table of labels.",
        choices=("auto", "tab", "comma", "semicolon", "pipe", "space"),
    )
    header: str = option(
        "auto",
        "Whether the first row names the columns, in the table of labels.",
        choices=("auto", "yes", "no"),
    )
    bad_rows: str = option(
        "stop",
        "What becomes of malformed rows of the labels: stop at the first; leave them out if they "
        "are few, half of them at most; or all of them, however many they are.",
        choices=("stop", "few", "all"),
    )
    separator: str = option(
        ".",
        'What separates the parts of a category, the most general first; "" for nothing.',
        metavar="TEXT",
    )


@dataclass(frozen=True)
class EvaluateOptions(LabelOptions):
    """What ``cocite evaluate`` takes. ``settings`` are of the measures, by name."""

    depth: int | None = option(
        None,
        "How many parts of a category make a class, for sibling Gamma.",
        low=1,
        unset="as many as most have",
    )
    gamma_least: float | None = option(
        None,
        "Compare only nodes that score more than this, for sibling Gamma.",
        low=0,
        metavar="SCORE",
        unset="0",
    )
    texts: Any = option(
        None, "The texts of the nodes: a folder, a tar archive, or a table.", metavar="PATH"
    )
    queries: int | None = option(
        None,
        "Ask for so many nodes only, drawn by --seed.",
        low=1,
        unset="all that have a label or a text",
    )
    cutoffs: Any = option(
        None, "The values of k in precision@k and the like, such as 1,5,10.", metavar="LIST"
    )
    seed: int = option(0, "Where the random numbers start. Equal seeds give equal figures.")
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TuneOptions(LabelOptions):
    """What ``cocite tune`` takes."""

    figure: str | None = option(
        None,
        "What decides: company@10, company@50, links@10 or links@50; with labels a figure of "
        "cocite evaluate, such as precision@20 or gamma.",
        metavar="NAME",
        unset="company@50, company@10 for fewer than 500 nodes, precision@10 with labels",
    )
    measures: tuple[str, ...] = option(
        (), "Try this measure only. Repeatable.", flag="--measure", metavar="NAME", unset="all"
    )
    directions: tuple[str, ...] = option(
        (),
        "Try this direction only, for measures that take it. Repeatable.",
        flag="--direction",
        metavar=f"[{'|'.join(DIRECTIONS)}]",
        unset="all",
    )
    fraction: float = option(
        0.1, "The fraction of the links to hide, at most 0.5. Every page keeps one."
    )
    queries: int = option(
        1000, "How many pages choose and judge, half of them each; 0 for all.", low=0
    )
    samples: int = option(100, "Samples of the last round, and of the settings.", low=1)
    seed: int = option(
        0,
        "Where the random numbers start. Equal seeds give equal choices, unless time was up.",
        low=0,
    )
    time: Any = option(
        "10min",
        "How long it may take, such as 90s or 2h; in Python None for no limit. What it has not "
        "come to then is left out, and told.",
        metavar="TIME",
    )
    unweighted: bool = option(
        False,
        "Ignore the weights of links.",
        unset="use them, if there are any, and leave out measures that cannot",
    )
    side: str | None = option(
        None,
        "Of a bipartite graph the side that is chosen for, such as user.",
        metavar="NAME",
        unset="the side of the targets, item",
    )
    overwrite: bool = option(
        False, "Replace the file when the new one is complete. A symbolic link is refused."
    )
    restart: bool = option(
        False,
        "Begin again: throw away what is unfinished, which had other options.",
        flag="--no-resume",
    )
    best: bool = option(
        False,
        "Choose the best by the pages that choose, even if the default is not told apart from it.",
    )
