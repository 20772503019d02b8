"""What a run is asked for, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass

from cocite.errors import UsageError

__all__ = ["DIRECTIONS", "MEASURES", "METHODS", "Options"]

MEASURES = ("simrank", "psimrank")
DIRECTIONS = ("in", "out", "any")
METHODS = ("gauss-seidel", "plain", "sor", "psum", "svd")
_PRECISIONS = ("auto", "single", "double")
_ORDERS = ("stored", "rcm")
_PRODUCTS = ("auto", "sparse", "dense")
_OMEGA, _RANK = 1.3, 100


@dataclass(frozen=True)
class Options:
    """Checked options; the meaning of each is :func:`cocite.exact_simrank`'s."""

    decay: float
    measure: str
    method: str
    omega: float
    epsilon: float
    sweeps: int
    prune: float | None
    teleport: float | None
    order: str
    precision: str
    products: str
    rank: int
    direction: str

    @classmethod
    def checked(
        cls,
        *,
        decay: float = 0.6,
        measure: str = "simrank",
        method: str | None = None,
        omega: float | None = None,
        epsilon: float = 1e-3,
        sweeps: int = 1000,
        prune: float | None = None,
        teleport: float | None = None,
        order: str = "stored",
        precision: str = "auto",
        products: str = "auto",
        rank: int | None = None,
        direction: str = "in",
    ) -> Options:
        """Raises :class:`UsageError` for what is not allowed, alone or together."""
        _choice("measure", measure, MEASURES)
        if method is None:
            method = "gauss-seidel" if measure == "simrank" else "plain"
        _choice("method", method, METHODS)
        _choice("order", order, _ORDERS)
        _choice("precision", precision, _PRECISIONS)
        _choice("products", products, _PRODUCTS)
        _choice("direction", direction, DIRECTIONS)
        if direction == "any":
            _only("direction any", method, "gauss-seidel", "plain", "sor", "svd")
        _within("decay", decay, 0, 1)
        _within("epsilon", epsilon, 0, 1)
        if sweeps < 1:
            raise UsageError(f"sweeps is {sweeps!r}; it is a whole number, 1 or more")
        if omega is not None:
            _within("omega", omega, 0, 2)
            _only("omega", method, "sor")
        if rank is not None:
            _only("rank", method, "svd")
            if rank < 1:
                raise UsageError(f"rank is {rank!r}; it is a whole number, 1 or more")
        if prune is not None:
            _within("prune", prune, 0, 1)
            _only("prune", method, "gauss-seidel", "plain", "sor")
        if teleport is not None:
            if not 0 < teleport <= 1:
                raise UsageError(f"teleport is {teleport!r}; it is above 0 and at most 1")
            _only("teleport", method, "gauss-seidel", "plain", "sor")
        if products == "dense" and (prune is not None or method in ("psum", "svd")):
            raise UsageError("dense products go with plain, gauss-seidel or sor, and no pruning")
        if measure == "psimrank" and (
            method != "plain" or products == "dense" or not prune is teleport is None
        ):
            raise UsageError(
                "psimrank has one method, plain, with sparse products, and neither pruning nor "
                "teleportation"
            )
        return cls(
            decay,
            measure,
            method,
            (omega or _OMEGA) if method == "sor" else 1.0,
            epsilon,
            sweeps,
            prune,
            teleport,
            order,
            precision,
            products,
            rank or _RANK,
            direction,
        )

    @property
    def title(self) -> str:
        """The method in words."""
        return f"sor, omega {self.omega:g}" if self.method == "sor" else self.method


def _choice(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{what} is {value!r}; it is one of {', '.join(allowed)}")


def _within(what: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise UsageError(f"{what} is {value!r}; it is a number between {low} and {high}, excluded")


def _only(what: str, method: str, *methods: str) -> None:
    if method not in methods:
        raise UsageError(f"{what} is for the method {' or '.join(methods)}; this one is {method}")
