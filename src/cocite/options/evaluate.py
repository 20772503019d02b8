"""Options of evaluation and of tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cocite.options import DIRECTIONS, Options, option, option_of, side_option
from cocite.options.build import ExistingPath, MeasureOptions
from cocite.options.ingest import ReadingOptions


@dataclass(frozen=True)
class LabelOptions(Options):
    """Options for reading a table of names and categories."""

    labels: Any = option(
        None,
        "A table of names and categories: text (tabs, commas, semicolons, bars or blanks) or "
        "Parquet.",
        kind=ExistingPath,
        metavar="FILE",
    )
    label_columns: Any = option(
        (1, 2),
        "The node and category columns, by name or by number (from 1).",
        metavar="A,B",
    )
    delimiter: str = option_of(
        ReadingOptions, "delimiter", text="The character between columns of the labels."
    )
    header: str = option_of(
        ReadingOptions, "header", text="Whether the first row of the labels names the columns."
    )
    bad_rows: str = option_of(
        ReadingOptions,
        "bad_rows",
        text="How to handle malformed rows of the labels. stop: fail at the first. few: skip up "
        "to half of the rows. all: skip them without limit.",
    )
    separator: str = option(
        ".",
        'The separator between levels of a category, from general to specific; "" for one level.',
        metavar="TEXT",
    )


@dataclass(frozen=True)
class EvaluateOptions(LabelOptions):
    """Options of ``cocite evaluate``. ``settings`` are the measures' settings, by name."""

    depth: int | None = option(
        None,
        "For sibling Gamma, the number of category levels that form a class.",
        low=1,
        unset="the most common number of levels",
    )
    gamma_least: float | None = option(
        None,
        "For sibling Gamma, compare only nodes with a score above this.",
        low=0,
        metavar="SCORE",
        unset="0",
    )
    texts: Any = option(
        None, "The texts of the nodes: a folder, a tar archive, or a table.", metavar="PATH"
    )
    queries: int | None = option(
        None,
        "Evaluate only this many nodes, drawn at random by --seed.",
        low=1,
        unset="all nodes with a label or a text",
    )
    cutoffs: Any = option(
        None, "The values of k for precision@k and similar figures, such as 1,5,10.", metavar="LIST"
    )
    seed: int = option(0, "The random seed. The same seed gives the same figures.")
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TuneOptions(LabelOptions):
    """Options of ``cocite tune``."""

    figure: str | None = option(
        None,
        "The figure to maximize: coneighbors@10, coneighbors@50, links@10 or links@50; with "
        "labels, a figure of cocite evaluate, such as precision@20 or gamma.",
        metavar="NAME",
        unset="precision@10 with labels; otherwise coneighbors@50, or @10 for fewer than 500 nodes",
    )
    measures: tuple[str, ...] = option(
        (), "Try only this measure. Repeatable.", flag="--measure", metavar="NAME", unset="all"
    )
    directions: tuple[str, ...] = option(
        (),
        "Try only this direction, for measures that support it. Repeatable.",
        flag="--direction",
        metavar=f"[{'|'.join(DIRECTIONS)}]",
        unset="all",
    )
    fraction: float = option(
        0.1, "The fraction of the links to hide, at most 0.5. Every page keeps at least one link."
    )
    queries: int = option(
        1000,
        "The number of test pages; 0 for all. One half selects the candidate; the other half is "
        "held out.",
        low=0,
    )
    samples: int = option(
        100, "The number of samples in the last round and in the resulting settings.", low=1
    )
    seed: int = option(
        0,
        "The random seed. The same seed gives the same choice, unless --time runs out.",
        low=0,
    )
    time: Any = option(
        "10min",
        "The time limit, such as 90s or 2h; in Python None for no limit. The report lists "
        "candidates that were not tried.",
        metavar="TIME",
    )
    unweighted: bool = option_of(
        MeasureOptions,
        "unweighted",
        unset="use weights if the graph has them, and skip measures that cannot use them",
    )
    side: str | None = side_option("the test pages")
    overwrite: bool = option(
        False, "Replace the file once the new one is complete. Symbolic links are refused."
    )
    restart: bool = option(
        False,
        "Start over, and discard an unfinished run.",
        flag="--no-resume",
    )
    best: bool = option(
        False,
        "Choose the candidate with the best figure, even if it is not significantly better than "
        "the default.",
    )
