"""Plans of suites: values with defaults, one class per table of a suite file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.studies.points import Suite
from cocite.evaluation.points import DataPlan, JudgePlan

_ALL = "*"


@dataclass(frozen=True)
class SuiteData(DataPlan):
    """Where the graph comes from, too; ``folder`` is where a suite's data lies in the folder of all
    data, where several run; its name by default.
    """

    links: str = ""
    graph: str = ""
    web: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[int, ...] = ()
    undirected: bool = False
    folder: str = ""


@dataclass(frozen=True)
class SuiteJudge(JudgePlan):
    """``sweep_queries`` are those of sweeps, 0 for all. ``quick``: sweeps look at the largest
    cutoff of a list and no further, for precision and the like only.
    """

    sweep_queries: int = 0
    quick: bool = False


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


@dataclass(frozen=True)
class BestPlan:
    """Each measure at its best setting, by this figure."""

    by: str = "precision@10"


@dataclass(frozen=True)
class StudySuite(Suite):
    """A whole study."""

    name: str = ""
    about: str = ""
    baseline: str = ""
    data: SuiteData = field(default_factory=SuiteData)
    judge: SuiteJudge = field(default_factory=SuiteJudge)
    embedding: tuple[EmbeddingPlan, ...] = ()
    blend: tuple[BlendPlan, ...] = ()
    accuracy: AccuracyPlan | None = None
    structure: StructurePlan | None = None
    best: BestPlan | None = None
