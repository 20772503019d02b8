"""The plans that a suite is made of: values with defaults, one class a table of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cocite.evaluation.judge import CUTOFFS, TOP
from cocite.measures import Value

__all__ = [
    "AccuracyPlan",
    "BestPlan",
    "BlendPlan",
    "DataPlan",
    "EmbeddingPlan",
    "JudgePlan",
    "MethodPlan",
    "Settings",
    "StructurePlan",
    "SweepPlan",
]

Settings = Mapping[str, Value]
Column = int | str
_ALL = "*"


@dataclass(frozen=True)
class DataPlan:
    """Where the graph, the labels and the texts come from; ``unlabelled`` says that there are
    neither, and answers are only counted. ``folder`` is where a suite's data lies in the folder of
    all data, where several run; its name by default. ``delimiter``, ``header`` and
    ``skip_bad_rows`` are for the labels.
    """

    links: str = ""
    graph: str = ""
    web: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[int, ...] = ()
    undirected: bool = False
    labels: str = ""
    label_columns: tuple[Column, ...] = (1, 2)
    delimiter: str = "auto"
    header: str = "auto"
    skip_bad_rows: Value = False
    separator: str = "."
    depth: int = 0
    texts: str = ""
    unlabelled: bool = False
    folder: str = ""


@dataclass(frozen=True)
class JudgePlan:
    """How lists are judged; Gamma by nodes that score more than ``gamma_least``. ``queries`` 0
    stands for all nodes that can be, ``sweep_queries`` (those of sweeps) 0 for the same. ``quick``:
    sweeps look at the largest cutoff of a list and no further, for precision and the like only.
    """

    queries: int = 0
    sweep_queries: int = 0
    top: int = TOP
    gamma_least: float = 0.0
    cutoffs: tuple[int, ...] = CUTOFFS
    content: int = 50
    resamples: int = 1000
    confidence: float = 0.95
    quick: bool = False


@dataclass(frozen=True)
class MethodPlan:
    """Measures and directions with some settings: every combination is a method."""

    measures: tuple[str, ...] = (_ALL,)
    without: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class EmbeddingPlan:
    """A baseline of vectors."""

    name: str
    kind: str = "spectral"
    dimensions: int = 128


@dataclass(frozen=True)
class BlendPlan:
    """A weighted sum of methods."""

    name: str
    of: tuple[str, ...]
    weights: tuple[float, ...] = ()
    scale: str = "best"
    depth: int = 0


@dataclass(frozen=True)
class SweepPlan:
    """One setting varied, the others as in [settings]."""

    setting: str
    values: tuple[Value, ...]
    measures: tuple[str, ...] = (_ALL,)
    without: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class BestPlan:
    """Each measure at its best setting, by this figure."""

    by: str = "precision@10"


@dataclass(frozen=True)
class AccuracyPlan:
    """Estimates against exact scores, for several numbers of samples."""

    measures: tuple[str, ...] = ("simrank", "psimrank", "xjaccard")
    samples: tuple[int, ...] = (10, 25, 50, 100, 200, 400)
    queries: int = 500
    ks: tuple[int, ...] = (10, 20)
    decay: float = 0.6
    epsilon: float = 1e-3


@dataclass(frozen=True)
class StructurePlan:
    """Sizes of trees, and tokens, by length."""

    measures: tuple[str, ...] = (_ALL,)
    directions: tuple[str, ...] = ("in",)
    samples: int = 20
    length: int = 10
