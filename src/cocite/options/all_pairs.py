"""Options of all-pairs scores."""

from __future__ import annotations

from dataclasses import dataclass

from cocite.errors import UsageError
from cocite.options import BETWEEN_0_AND_1, CLI, Options, option

_OMEGA, _RANK = 1.3, 100
METHODS = ("gauss-seidel", "plain", "sor", "svd")


@dataclass(frozen=True)
class AllPairsOptions(Options):
    """Options of ``cocite all-pairs``."""

    measure: str = option(
        "simrank",
        "The measure of similarity. psimrank uses the plain method, for graphs of a few "
        "thousand nodes.",
        choices=("simrank", "psimrank"),
    )
    method: str | None = option(
        None,
        "The iteration. gauss-seidel: one matrix. plain: two matrices (the paper's eq. 6). sor: "
        "over-relaxation. svd: a low-rank closed form, checked by one plain step.",
        choices=METHODS,
        unset="gauss-seidel; plain for psimrank",
    )
    omega: float | None = option(
        None,
        "The relaxation of --method sor, between 0 and 2; above 2 / (1 + decay) it diverges on "
        "some graphs.",
        low=0,
        high=2,
        open=True,
        unset="1.3",
    )
    rank: int | None = option(None, "The rank of --method svd.", low=1, unset="100")
    decay: float = option(
        0.6,
        "The weight of a step relative to the step before it, between 0 and 1.",
        **BETWEEN_0_AND_1,
    )
    direction: str = option(
        "in", "Which links count; any ignores their direction.", choices=("in", "out", "any")
    )
    side: str | None = option(
        None,
        "In a bipartite graph, the side whose nodes are compared, such as user.",
        metavar="NAME",
        unset="the side of the targets, item",
    )
    weighted: bool = option(
        True,
        "Use link weights, if the graph has weights.",
        flag="--unweighted",
        negated="Ignore the weights of links.",
    )
    epsilon: float = option(1e-3, "The largest allowed error of a score.", **BETWEEN_0_AND_1)
    max_sweeps: int = option(1000, "The largest number of sweeps.", low=1)
    prune: float | None = option(
        None,
        "Drop scores below DELTA after each sweep, to keep the matrix small. This adds an error "
        "of up to DELTA / (1 - decay).",
        **BETWEEN_0_AND_1,
        metavar="DELTA",
    )
    teleport: float | None = option(
        None,
        "Compute a different measure (the paper's eq. 7): links have weight LAMBDA, and a node "
        "without in-links gets a link from every node, with a total weight of 1 - LAMBDA.",
        metavar="LAMBDA",
    )
    order: str = option(
        "stored",
        "The order of rows during the computation; rcm is reverse Cuthill-McKee.",
        choices=("stored", "rcm"),
    )
    precision: str = option(
        "auto",
        "The floating-point precision of the computation. auto: single, if its rounding error is "
        "at most a quarter of --epsilon.",
        choices=("auto", "single", "double"),
    )
    products: str = option(
        "auto",
        "How to multiply matrices. auto: dense, if at least a quarter of all possible links exist.",
        choices=("auto", "sparse", "dense"),
    )
    min_score: float = option(
        0.01, "Omit pairs with a lower score from a table.", low=0, high=1, fronts=CLI
    )
    top: int | None = option(
        None,
        "Write only the K best pairs of each node, as a table.",
        low=1,
        metavar="K",
        fronts=CLI,
    )

    def resolved(self) -> AllPairsRun:
        """Fill in method, omega and rank; raises :class:`UsageError` for conflicting options."""
        method = self.method or ("gauss-seidel" if self.measure == "simrank" else "plain")
        whole = "gauss-seidel", "plain", "sor"
        for what, given, methods in (
            ("direction any", self.direction == "any", (*whole, "svd")),
            ("omega", self.omega is not None, ("sor",)),
            ("rank", self.rank is not None, ("svd",)),
            ("prune", self.prune is not None, whole),
            ("teleport", self.teleport is not None, whole),
        ):
            if given and method not in methods:
                raise UsageError(
                    f"{what} requires the {' or '.join(methods)} method; the method is {method}"
                )
        if self.teleport is not None and not 0 < self.teleport <= 1:
            raise UsageError(f"teleport is {self.teleport!r}; it must be above 0 and at most 1")
        if self.products == "dense" and (self.prune is not None or method == "svd"):
            raise UsageError(
                "dense products require the plain, gauss-seidel or sor method, without pruning"
            )
        if self.measure == "psimrank" and (
            method != "plain" or self.products == "dense" or not self.prune is self.teleport is None
        ):
            raise UsageError(
                "psimrank requires the plain method and sparse products, without pruning or "
                "teleportation"
            )
        omega = (self.omega or _OMEGA) if method == "sor" else 1.0
        chosen = self.changed() | {"method": method, "omega": omega, "rank": self.rank or _RANK}
        return AllPairsRun(**chosen)


@dataclass(frozen=True)
class AllPairsRun(AllPairsOptions):
    """Options with method, omega (1 for methods without it) and rank filled in."""

    method: str = "gauss-seidel"
    omega: float = 1.0
    rank: int = _RANK

    @property
    def title(self) -> str:
        """Return the method in words."""
        return f"sor, omega {self.omega:g}" if self.method == "sor" else self.method
