"""PageRank: the fraction of time that a random surfer spends on each page.

    x = damping * (sum over in-neighbors u of x[u] / out-degree(u)) + (1 - damping) * p
        + damping * (rank of dangling nodes) * q                                     sum of x = 1

On a weighted graph, u passes x[u] w(u, v) / (sum of w over u's out-links) to v. p is the
personalization, uniform by default. q distributes the rank of dangling nodes: it is p (the default,
as in NetworkX) or uniform. Alternatively, dangling nodes are removed first, as in Haveliwala's
paper. With q = p, x = y / sum(y) for the solution of (I - damping P') y = p
(``ranking/solver.py``). Any other q requires a second solution.

With trusted nodes, a second walk jumps only to these nodes (TrustRank). Let y and t be the
solutions for uniform jumps and for jumps to trusted nodes. The *spam mass* of v is
1 - good_fraction * t[v] / y[v], the fraction of its rank that does not come from good nodes, of
which the trusted ones are a sample.

Let G x be the right-hand side. G contracts vectors of sum 0 by the damping, so
||x - x*||_1 <= ||G x - x||_1 / (1 - damping).
Source: Haveliwala, *Efficient computation of PageRank*, sections 2 and 5; Del Corso, Gulli, Romani
2005 (the linear system); Gyöngyi, Garcia-Molina, Pedersen 2004 (trust); Gyöngyi, Berkhin,
Garcia-Molina, Pedersen 2006, section 3.4 (spam mass).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cocite.errors import InputError, UsageError
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.io.opening import open_graph
from cocite.io.readers import read_values
from cocite.kernels import rank
from cocite.options import accepts
from cocite.options.rank import RankOptions
from cocite.progress import shows
from cocite.ranking.core import Lumped
from cocite.ranking.numbers import NodeNumbers
from cocite.ranking.solver import System
from cocite.ranking.stopping import Convergence, stopping_rule
from cocite.ranking.vectors import Vector, divide, order_of, pieces, plan_ranks, total
from cocite.resources import Resources

_LOOKED_UP = 1 << 14
"""Names to look up before memory is released."""


class Weighted(Protocol):
    """Node names with weights, such as a mapping."""

    def items(self) -> Iterable[tuple[str, float]]:
        """Yield names and weights."""


Personalization = Mapping[str, float] | Weighted | Iterable[str] | Vector


class WeightsFile:
    """A file with node and weight columns, as written by ``rank -o``: text (tabs, or commas in
    ``.csv``) or Parquet. A first row whose weight is not a number is a header.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.path = Path(file)

    def __repr__(self) -> str:
        return f"WeightsFile({str(self.path)!r})"

    def items(self) -> Iterator[tuple[str, float]]:
        """Yield names and weights. Raises :class:`InputError`."""
        for row, (name, text) in enumerate(read_values(self.path)):
            weight = _weight(text)
            if weight is not None:
                yield name, weight
            elif row > 0:
                raise InputError(
                    f"{self.path}: the weight of {name!r} is {text!r}; it must be a finite "
                    "number, 0 or more"
                )


class _Toward:
    """Weights from arguments, then from files."""

    def __init__(self, pairs: Sequence[tuple[str, float]], files: Sequence[WeightsFile]) -> None:
        self._pairs, self._files = pairs, files

    def items(self) -> Iterator[tuple[str, float]]:
        """Yield names and weights."""
        return chain(self._pairs, *(file.items() for file in self._files))


def toward_of(
    graph: Graph, texts: Sequence[str], files: Sequence[str | os.PathLike[str]] = ()
) -> Weighted | None:
    """Return the personalization from texts and weight files; None if there are none.

    A text is a node name, or ``NAME=WEIGHT``. A text that equals a node's name is always a name.
    """
    if not texts and not files:
        return None
    return _Toward([_pair(graph.names, text) for text in texts], [WeightsFile(f) for f in files])


def _weight(text: str) -> float | None:
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0 <= weight < math.inf else None


def _pair(names: Names, text: str) -> tuple[str, float]:
    name, equals, end = text.rpartition("=")
    weight = _weight(end)
    if equals and weight is not None and text not in names:
        return name, weight
    return text, 1.0


def teleport(
    lumped: Lumped, personalization: Personalization | None, option: str = "personalization"
) -> Vector:
    """Return the teleport vector, float64[nodes], with sum 1, and 0 for removed nodes.

    Raises :class:`UsageError` (which mentions ``option``), :class:`~cocite.errors.UnknownNode` or
    :class:`InputError`.
    """
    where = lumped.vector()
    fine = True
    if isinstance(personalization, str):
        raise UsageError(f"{option} is a single string; pass a list of names, or a mapping")
    if isinstance(personalization, np.ndarray):
        fine = personalization.shape == where.shape
    elif personalization is not None:
        names = lumped.graph.names
        for number, (name, weight) in enumerate(_pairs(personalization), 1):
            where[names.id(name)] += weight
            if number % _LOOKED_UP == 0:
                names.evict()
                lumped.rest(where)
    for part in lumped.pieces(lumped.degrees, where) if fine else ():
        piece = where[part]
        if personalization is None:
            piece[:] = 1
        elif isinstance(personalization, np.ndarray):
            piece[:] = personalization[part]
        fine = fine and bool(np.isfinite(piece).all()) and bool((piece >= 0).all())
        piece[lumped.degrees[part] == rank.GONE] = 0
    whole = total(where) if fine else 0.0
    if not 0 < whole < np.inf:
        raise UsageError(
            f"{option} must have finite weights, 0 or more (an array has one for each of "
            f"{lumped.nodes:,} nodes), with a positive, finite sum over the ranked nodes"
        )
    divide(where, whole)
    return where


def _pairs(personalization: Weighted | Iterable[str]) -> Iterable[tuple[str, float]]:
    if isinstance(personalization, Mapping) or hasattr(personalization, "items"):
        return personalization.items()
    return ((name, 1.0) for name in personalization)


# -- pagerank ----------------------------------------------------------------------------


class Dangling(StrEnum):
    """How the rank of nodes without out-links is handled."""

    SPREAD = "spread"
    """Distribute it like the personalization."""
    UNIFORM = "uniform"
    """Distribute it equally over all nodes."""
    REMOVE = "remove"
    """Remove dangling nodes first, with rank 0. Nodes that become dangling are treated as for
    SPREAD.
    """


def rank_columns(trust: bool) -> tuple[str, ...]:
    """Return the names of the result columns."""
    return ("rank", "trust", "spam_mass") if trust else ("rank",)


@dataclass(frozen=True)
class Ranks(NodeNumbers):
    """Ranks of all nodes, and how they were computed.

    ``values`` float64[nodes], by id, has sum 1; ``removed`` nodes have rank 0. ``blocks`` is the
    number of blocks in which the graph was read, ``weighted`` whether link weights were used,
    ``sent`` the bytes of values that partitions exchanged, and ``started`` the number of nodes with
    an initial value. With trusted nodes, ``trust`` float64[nodes] has the ranks of the walk that
    jumps to them. ``spam_mass`` float64[nodes], at most 1, is the fraction of each rank that does
    not come from good nodes, and 0 for removed nodes.

    If memory is short, ``values`` maps an unnamed file, which disappears with its last reference.
    """

    values: Vector
    convergence: Convergence
    names: Names
    removed: int = 0
    blocks: int = 1
    weighted: bool = False
    sent: int | None = None
    started: int | None = None
    trust: Vector | None = None
    spam_mass: Vector | None = None

    def _numbers(self) -> dict[str, Any]:
        columns = zip(rank_columns(True), (self.values, self.trust, self.spam_mass), strict=True)
        return {title: values for title, values in columns if values is not None}

    def top(self, k: int = 20, side: str | None = None) -> list[tuple[str, float]]:
        """Return (name, rank) of the k highest ranks, highest first, ties by id. ``side`` selects
        a side of a bipartite graph by its name.
        """
        within = range(self.values.size)
        if side is not None:
            if self.names.sides is None:
                raise UsageError("the graph is not bipartite: omit --side (side=...)")
            within = self.names.sides.named(side)
        order = order_of(self.values[within.start : within.stop], k) + within.start
        return list(zip(self.names.names(order), self.values[order].tolist(), strict=True))


Start = Vector | Mapping[Any, float] | Weighted | Ranks | str | os.PathLike[str]


@shows("computing PageRank", "sweep {:,}, residual {:.1e}")
@accepts(RankOptions)
def pagerank(
    graph: Any,
    *,
    personalization: Personalization | None = None,
    start: Start | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Callable[[int, float], None] = lambda sweeps, residual: None,
    options: RankOptions | None = None,
    **given: Any,
) -> Ranks:
    """Compute the PageRank of every node.

    Parameters
    ----------
    graph
        A stored graph, or anything else that holds links (:func:`cocite.open_graph`).
    personalization
        Targets of the jumps: node names with weights (a mapping, or a
        :class:`~cocite.ranking.WeightsFile`), names alone (equal weights), or float64[nodes] by id.
        Weights are non-negative, with any positive sum. By default, jumps go to all nodes equally.
    start
        Initial ranks, such as a result for this or an older version of the graph: :class:`Ranks`, a
        file of ranks, names with values, or float64[nodes] by id. Nodes are matched by name. Nodes
        without a value start with their share of the jumps.
    threads
        Number of threads, by default all cores. More than two threads do not help. Ranks are
        bit-identical for any number of threads.
    memory
        Memory of the whole process, in bytes or as text such as ``"600MB"``, at least 61 MB, of
        which Python takes 52 MB. By default half of the available memory. Data that does not fit is
        read from disk in blocks; ranks are bit-identical.
    progress
        Called after every sweep with (sweeps, bound on the L1 residual).
    options, given
        The options below, as one object or by name.
    {options}

    Raises
    ------
    UsageError, UnknownNode, ResourceError, Damaged

    Notes
    -----
    The total error of all ranks is at most ``tolerance / (1 - damping)``. If ``max_sweeps`` stops
    the iteration earlier, ``convergence.converged`` is False.
    """
    options = RankOptions.of(options, given)
    graph = open_graph(graph, memory=memory)
    if options.trust is not None and personalization is not None:
        raise UsageError(
            "trust is compared with the ranks for jumps to all nodes: omit personalization"
        )
    means = Resources.checked(threads, memory)
    system, where, mode = set_up(graph, options, personalization, means.memory, means.threads)
    start = options.start if start is None else start
    guess, started = _guess(system.lumped, start, where, options.damping)
    rule = stopping_rule(options)
    values, sweeps, reason = system.solve(where, rule, guess, progress)
    del guess
    share, converged = where, rule.accurate
    trust, spam_mass, seeds = None, None, where
    if options.trust is not None:
        seeds = teleport(system.lumped, options.trust, "trust")
        trust, more, _ = system.solve(seeds, rule, None, progress)
        spam_mass = _spam_mass(system, values, trust, options.good_fraction)
        if mode is Dangling.UNIFORM:
            _combine(system, options.damping, trust, values)
        divide(trust, total(trust))
        sweeps += more
        converged = converged and rule.accurate
    if mode is Dangling.UNIFORM and personalization is not None:
        share = teleport(system.lumped, None)
        other, more, _ = system.solve(share, rule, None, progress)
        _combine(system, options.damping, values, other)
        sweeps += more
        converged = converged and rule.accurate
    divide(values, total(values))
    residual = system.residual(values, where, share)
    if trust is not None:
        share = where if mode is Dangling.UNIFORM else seeds
        residual = max(residual, system.residual(trust, seeds, share))
    return Ranks(
        values,
        Convergence(sweeps, residual, residual / (1 - options.damping), reason, converged),
        graph.names,
        system.lumped.removed(),
        system.links.blocks,
        system.lumped.weighted,
        system.links.sent,
        started,
        trust,
        spam_mass,
    )


def set_up(
    graph: Graph,
    options: RankOptions,
    personalization: Personalization | None,
    memory: int,
    threads: int = 1,
) -> tuple[System, Vector, Dangling]:
    """Return the system, the teleport vector (sum 1), and the handling of dangling nodes."""
    mode = Dangling(options.dangling)
    weighted = options.weighted and graph.in_weights is not None
    room = plan_ranks(graph, memory, weighted, options.blocks, options.trust is not None)
    graph.check()
    system = System(
        graph,
        options.damping,
        room=room,
        removals=options.removals if mode is Dangling.REMOVE else 0,
        precision=options.precision,
        weighted=weighted,
        threads=threads,
    )
    return system, teleport(system.lumped, personalization), mode


def _combine(system: System, d: float, solved: Vector, uniform: Vector) -> None:
    """Turn ``solved`` into ranks whose dangling mass is spread uniformly.

    These are x = (1 - d) y_p + d m y_q, where m is the dangling mass of x itself.
    """
    here, there = system.dangling_sum(solved), system.dangling_sum(uniform)
    mass = (1 - d) * here / (1 - d * there)
    for part in pieces(0, solved.size, solved, uniform):
        solved[part] = (1 - d) * solved[part] + d * mass * uniform[part]


def _spam_mass(system: System, uniform: Vector, trusted: Vector, good_fraction: float) -> Vector:
    """Return the spam mass of each node from two solutions before normalization. Each solution
    loses a different amount at dangling nodes, so normalized solutions are not comparable.
    """
    found = system.vector()
    for part in pieces(0, found.size, found, uniform, trusted):
        ranked = uniform[part] > 0
        np.divide(trusted[part], uniform[part], out=found[part], where=ranked)
        found[part][ranked] = 1 - good_fraction * found[part][ranked]
    return found


# -- initial ranks -----------------------------------------------------------------------


def _ranks_in(path: Path) -> Vector | WeightsFile:
    """Read a file written by ``rank -o``: ranks by id in ``.npy``, by name in other formats."""
    if path.suffix in (".jsonl", ".arrow"):
        raise InputError(f"{path}: initial ranks must be in a .parquet, .csv, .tsv or .npy file")
    if path.suffix != ".npy":
        return WeightsFile(path)
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _named(ranks: Ranks) -> Iterator[tuple[Any, float]]:
    """Yield names and ranks."""
    for part in pieces(0, ranks.values.size, ranks.values):
        names = ranks.names.names(np.arange(part.start, part.stop))
        yield from zip(names, ranks.values[part].tolist(), strict=True)


def _guess(
    lumped: Lumped, start: Start | None, where: Vector, damping: float
) -> tuple[Vector | None, int | None]:
    """Return the initial ranks, float64[nodes], and how many nodes have a value in ``start``.
    Both are None without a start. Raises :class:`UsageError`, :class:`InputError`.
    """
    if start is None:
        return None, None
    if isinstance(start, str | os.PathLike):
        start = _ranks_in(Path(start))
    guess, count, fine = lumped.vector(), lumped.nodes, True
    if isinstance(start, Ranks) or hasattr(start, "items"):
        pairs = _named(start) if isinstance(start, Ranks) else start.items()
        count = _match(lumped, pairs, guess)
        _begin_new(guess, where, damping)
    else:
        given = np.asarray(start)
        fine = given.shape == guess.shape
        for part in pieces(0, guess.size, guess) if fine else ():
            guess[part] = given[part]
    for part in pieces(0, guess.size, guess) if fine else ():
        fine = fine and bool(np.isfinite(guess[part]).all()) and bool((guess[part] >= 0).all())
    if not fine or not np.isfinite(total(guess)):
        raise UsageError(
            f"start must be {guess.size:,} values, names with values, or a file of either; "
            "values must be 0 or more, with a finite sum"
        )
    return guess, count


def _match(lumped: Lumped, pairs: Iterable[tuple[Any, float]], guess: Vector) -> int:
    """Fill ``guess`` with the values in ``pairs`` by name, NaN for other nodes; return how many
    nodes have a value. Names without a node are ignored, because the graph may have changed.
    """
    names, rows = lumped.graph.names, iter(pairs)
    for part in pieces(0, guess.size, guess):
        guess[part] = np.nan
    while piece := list(islice(rows, _LOOKED_UP)):
        values = np.array([value for _, value in piece], np.float64)
        if np.isnan(values).any():
            raise UsageError("start has a value that is not a number")
        ids = names.found([name for name, _ in piece])
        guess[ids[ids >= 0]] = values[ids >= 0]
        names.evict()
        lumped.rest(guess)
    count = sum(
        int(np.count_nonzero(~np.isnan(guess[part]))) for part in pieces(0, guess.size, guess)
    )
    if count == 0:
        raise UsageError(
            f"--start (start=...) names no node of {lumped.graph.path}. Pass ranks of this graph, "
            "or of an older version of it"
        )
    return count


def _begin_new(guess: Vector, where: Vector, damping: float) -> None:
    """Set NaN values to the node's share of the teleport."""
    parts = pieces(0, guess.size, guess)
    with np.errstate(over="ignore"):
        whole = float(sum(float(np.nansum(guess[part])) for part in parts))
    for part in pieces(0, guess.size, guess, where):
        piece = guess[part]
        new = np.isnan(piece)
        piece[new] = (1 - damping) * whole * where[part][new]
