"""Meeting weights: any function of the step at which two walks first meet.

    score(u, v) = E f(tau),      f(0) = 1,  f(t) in [0, 1] for t = 1, 2, ...,  f(never) = 0

    decay**t                    the default, which makes simrank SimRank
    0.8**t, 1/t, t<=3           an expression in t, length and decay: + - * / // % **, comparisons,
                                and, or, not, if, abs, exp, log, max, min, sqrt
    0.9, 0.5, 0.1               one weight for each step of a walk
    hitting                     1 - t / (length + 1): if E is the mean number of steps, cut off at
                                length + 1, E = (1 - score) (length + 1)

f need not decrease. Walks stop after ``length`` steps. To bound the weight of later meetings
(``MeetingWeights.beyond``), expressions are evaluated up to step 1000 and clipped to [0, 1].

Python's ``ast`` parses the text, which is evaluated here and never executed: only numbers, and
the names and operations above, are accepted. All numbers are floats, so integers cannot grow
without bound.
Source: Fogaras, Racz, *Scaling link-based similarity search*, section 1.3, Definition 1.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cocite.constants import MAX_LENGTH, PARSING
from cocite.errors import UsageError
from cocite.measures.settings import DECAY, LENGTH, PartSettings, Setting
from cocite.options import Value

By = str | Sequence[float] | Callable[[int], float]
"""A ``meeting_weight``: an expression, a list of numbers, or (in Python) a function of t."""
AskValue = Value | By

HORIZON = 1000
"""The last step at which an expression is evaluated."""
_LONGEST = 200
_NAMED = {"hitting": "1 - t / (length + 1)"}
_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "exp": math.exp,
    "log": math.log,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
_VARIABLES = ("t", "length", "decay")


class MeetingSetting(Setting[str]):
    """The setting ``meeting_weight``, stored as canonical text."""

    def checked(self, value: object) -> str:
        """Return the canonical text of ``value``; raises :class:`UsageError` for invalid text."""
        if isinstance(value, str):
            return _canonical(value)
        try:
            numbers = [float(number) for number in value]  # type: ignore[attr-defined]
        except (TypeError, ValueError) as error:
            raise UsageError(f"{self.name} is {value!r}; it must be {self.allowed}") from error
        return _joined(numbers)

    @property
    def allowed(self) -> str:
        """Describe the allowed values."""
        return (
            ", ".join(map(repr, _NAMED)) + ", an expression in t (such as 0.8**t or t<=3), or one "
            "number per step (such as 0.9, 0.5, 0.1)"
        )


MEETING_WEIGHT = MeetingSetting(
    "meeting_weight",
    "decay ** t",
    "the weight of a meeting after t steps, from 0 to 1: an expression such as 0.8**t, 1/t or "
    "t<=3; or hitting, which is 1 - t / (length + 1)",
)


@dataclass(frozen=True)
class MeetingWeights:
    """Weights of meetings, for walks of one length.

    ``values`` are f(0) to f(15) in [0, 1], and 0 beyond the length; ``beyond`` bounds the weight
    of later meetings.
    """

    values: tuple[float, ...]
    beyond: float

    @property
    def most(self) -> float:
        """Return the largest weight of a meeting between different nodes."""
        return max(self.values[1:])


def weights_of(asked: PartSettings, built: PartSettings) -> MeetingWeights:
    """Return a component's meeting weights; raises :class:`UsageError` for an invalid function."""
    return _weight(asked.get(MEETING_WEIGHT, MEETING_WEIGHT.default), asked[DECAY], built[LENGTH])


def heeds_decay(by: str) -> bool:
    """Return whether the meeting weight ``by`` depends on the decay."""
    return any(isinstance(n, ast.Name) and n.id == "decay" for n in ast.walk(_tree(by)))


def numbers_in(by: str) -> int | None:
    """Return the length of a list of numbers, or None for an expression."""
    tree = _tree(by)
    return len(tree.elts) if isinstance(tree, ast.Tuple) else None


def sampled(by: object, length: int) -> object:
    """Return a function's values at steps 1 to ``length``; return other arguments unchanged.

    Raises :class:`UsageError` if the function fails or does not return numbers.
    """
    if not callable(by):
        return by
    try:
        return [float(by(t)) for t in range(1, length + 1)]
    except Exception as error:
        raise UsageError(
            f"the function meeting_weight failed for a step from 1 to {length}: {error}"
        ) from error


@lru_cache(maxsize=256)
def _weight(by: str, decay: float, length: int) -> MeetingWeights:
    if by == MEETING_WEIGHT.default:
        values = [decay**t for t in range(length + 1)]
        return _padded(values, decay ** (length + 1))
    numbers = numbers_in(by)
    if numbers is not None and numbers < length:
        raise UsageError(
            f"meeting_weight has {numbers} numbers; walks have {length} steps: pass one number "
            "for each step"
        )
    values = [1.0, *(_at(by, t, decay, length) for t in range(1, length + 1))]
    for t, value in enumerate(values):
        if not 0 <= value <= 1:
            raise UsageError(
                f"meeting_weight {by!r} is {value:g} after {t} step{'s' * (t > 1)}; it must be "
                "from 0 to 1: divide by the largest value, or clip it with max(0, min(1, ...))"
            )
    if not any(values[1:]):
        raise UsageError(
            f"meeting_weight {by!r} is 0 for all meetings of walks of {length} steps: no nodes "
            "would be similar"
        )
    if numbers is not None:
        return _padded(values, 0.0)
    later = (_at(by, t, decay, length) for t in range(length + 1, HORIZON + 1))
    return _padded(values, max(min(1.0, max(0.0, value)) for value in later))


def _padded(values: list[float], beyond: float) -> MeetingWeights:
    return MeetingWeights((*values, *[0.0] * (MAX_LENGTH + 1 - len(values))), beyond)


def _at(by: str, t: int, decay: float, length: int) -> float:
    """Return f(t), a finite number; raises :class:`UsageError`."""
    tree = _tree(_NAMED.get(by, by))
    if isinstance(tree, ast.Tuple):
        tree = tree.elts[t - 1]
    try:
        value = _evaluated(tree, {"t": float(t), "length": float(length), "decay": decay})
        if isinstance(value, float) and math.isfinite(value):
            return value
        found = str(value)
    except (ArithmeticError, ValueError, TypeError) as error:
        found = str(error)
    raise UsageError(
        f"meeting_weight {by!r} is not a number for a meeting after {t} steps: {found}"
    )


def _evaluated(tree: ast.expr, names: dict[str, float]) -> Any:
    match tree:
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]  # a number, as checked
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=op, operand=operand):
            return 1.0 * _OPERATIONS[type(op)](_evaluated(operand, names))
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATIONS[type(op)](_evaluated(left, names), _evaluated(right, names))
        case ast.BoolOp(op=op, values=values):
            every = all if isinstance(op, ast.And) else any
            return float(every(_evaluated(value, names) for value in values))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _evaluated(body if _evaluated(test, names) else orelse, names)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            ends = [_evaluated(each, names) for each in (left, *comparators)]
            pairs = zip(ops, ends, ends[1:], strict=False)
            return float(all(_OPERATIONS[type(op)](one, other) for op, one, other in pairs))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_evaluated(each, names) for each in arguments))
    raise AssertionError(ast.dump(tree))


def _canonical(text: str) -> str:
    text = text.strip()
    if text in _NAMED:
        return text
    tree = _tree(text)
    if isinstance(tree, ast.Tuple):
        return _joined([_evaluated(each, {}) for each in tree.elts])
    return ast.unparse(tree)


def _joined(numbers: list[float]) -> str:
    if not 1 <= len(numbers) <= MAX_LENGTH:
        raise UsageError(
            f"meeting_weight has {len(numbers)} numbers; it must have one for each step of a "
            f"walk, 1 to {MAX_LENGTH}"
        )
    if not all(map(math.isfinite, numbers)):
        raise UsageError(
            "meeting_weight has a number that is not finite; numbers must be from 0 to 1"
        )
    return ", ".join(map(repr, numbers)) + "," * (len(numbers) == 1)


@lru_cache(maxsize=256)
def _tree(text: str) -> ast.expr:
    """Parse an expression or a tuple of numbers; raises :class:`UsageError` for other text."""
    text = _NAMED.get(text, text)
    if len(text) > _LONGEST * (1 + 2 * ("," in text)):
        raise UsageError(f"meeting_weight has {len(text):,} characters; the maximum is {_LONGEST}")
    try:
        with PARSING:
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"meeting_weight is {text!r}; it must be {MEETING_WEIGHT.allowed}"
        ) from error
    for each in tree.elts if isinstance(tree, ast.Tuple) else [tree]:
        _check(each, text, variables=() if isinstance(tree, ast.Tuple) else _VARIABLES)
    if isinstance(tree, ast.Tuple) and not tree.elts:
        raise UsageError(
            f"meeting_weight is {text!r}, without a number; it must be {MEETING_WEIGHT.allowed}"
        )
    return tree


def _check(tree: ast.expr, text: str, variables: tuple[str, ...]) -> None:
    """Raise :class:`UsageError` if the expression contains anything that is not allowed."""
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call) and not n.keywords}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=value):
                fine = type(value) in (int, float) and _is_float(value)
            case ast.Name(id=name):
                fine = name in (_FUNCTIONS if id(node) in called else variables)
            case ast.Call(func=func):
                fine = id(func) in called and isinstance(func, ast.Name)
            case ast.UnaryOp() | ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp():
                fine = True
            case ast.And() | ast.Or() | ast.Load():
                fine = True
            case _:
                fine = type(node) in _OPERATIONS
        if not fine:
            what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__.lower()
            raise UsageError(
                f"meeting_weight is {text!r}, with {what!r} in it; it must be "
                f"{MEETING_WEIGHT.allowed}"
            )


def _is_float(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
