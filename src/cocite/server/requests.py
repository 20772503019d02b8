"""What each operation of the API takes: the one table that questions are read by and that the
OpenAPI document is made of.

Names, defaults and words are those of the command line; settings of measures are the measures' own
tables. A query has texts and a body of JSON has values: both come out the same, checked, or as a
:class:`UsageError` that says what was found and what is allowed. Nothing that is not in the table
is taken.

Answers: a document for a question to an index, as the command line gives it. Nothing here knows
of HTTP, of threads or of load.

Names are those of a ``side`` of what is bipartite, if one is said, as with ``--side``.

A name that is no node is told before anything is computed, with suggestions. Of an index of very
many names these are found without a pass over all of them, which would take as long as hundreds of
answers.

Cost: that of the documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from cocite.errors import UsageError
from cocite.graph.names import Resolver
from cocite.measures import MEASURES, MEETING_WEIGHT
from cocite.options.core import NodeNames, Options, spelled
from cocite.options.query import DEFAULT_ORDER, DEFAULT_REASONS, QueryOptions, ScoreOptions
from cocite.results import Document
from cocite.search import Index
from cocite.search.results import (
    RelatedDocument,
    SimilarityDocument,
    WhyDocument,
    WhyTogetherDocument,
)
from cocite.server.results import SEARCHED, CompleteDocument, Limits

_YES, _NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_BOUNDS = {
    "target_error": (1e-4, 1.0),
    "max_edges": (1, 10_000_000),
    "min_results": (1, 100_000),
    "max_degree": (0, 10_000),
    "tolerance": (1e-8, 1.0),
}
"""What options and settings may be by which a question can be made to take any time or memory."""


class TooMany(UsageError):
    """More of something than the server gives at once."""


@dataclass(frozen=True)
class Parameter:
    """One thing that an operation takes. ``kind`` is str, int, float or bool; ``many`` values are
    a list, which a query writes by repeating the name. ``low`` and ``high`` bound numbers,
    ``longest`` the characters of a text, ``most`` how many there may be.
    """

    name: str
    kind: type
    text: str
    default: Any = None
    required: bool = False
    many: bool = False
    nested: bool = False
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    longest: int = 0
    most: int = 0

    def read(self, texts: Sequence[str]) -> Any:
        """The value that a query gives; raises :class:`UsageError`."""
        if self.many:
            self._count(len(texts))
            return [self._one(text) for text in texts]
        if len(texts) > 1:
            raise UsageError(f"{self.name} is given {len(texts)} times; give it once")
        return self._one(texts[0])

    def checked(self, value: Any) -> Any:
        """The value that a body gives; raises :class:`UsageError`."""
        if not self.many:
            return self._allowed(value)
        if not isinstance(value, list):
            raise UsageError(f"{self.name} is {_shown(value)}; it is a list of texts")
        self._count(len(value))
        return [self._item(each) for each in value]

    def _item(self, value: Any) -> Any:
        if not (self.nested and isinstance(value, list)):
            return self._allowed(value)
        if not value:
            raise UsageError(f"{self.name} has an empty list; several nodes are asked together")
        return [self._allowed(each) for each in value]

    def _count(self, count: int) -> None:
        if count > self.most:
            raise TooMany(
                f"{self.name} has {count:,} values; this server takes {self.most:,} at once"
            )
        if not count:
            raise UsageError(f"{self.name} has no values; give one or more")

    def _one(self, text: str) -> Any:
        """The value of a text."""
        if self.kind is str:
            return self._allowed(text)
        if self.kind is bool:
            lower = text.lower()
            if lower in _YES or lower in _NO:
                return lower in _YES
            raise self._wrong(text)
        try:
            value = self.kind(text)
        except ValueError as error:
            raise self._wrong(text) from error
        return self._allowed(value)

    def _allowed(self, value: Any) -> Any:
        if self.kind is float and type(value) is int and abs(value) < 1 << 53:
            value = float(value)
        if type(value) is not self.kind:
            raise self._wrong(value)
        if isinstance(value, str):
            if self.choices:
                if value not in self.choices:
                    raise self._wrong(value)
            elif len(value) > self.longest:
                raise UsageError(
                    f"{self.name} has {len(value):,} characters; {self.longest:,} are allowed"
                )
            return value
        if isinstance(value, int | float) and not self.low <= value <= self.high:
            raise self._wrong(value)
        return value

    def _wrong(self, value: Any) -> UsageError:
        return UsageError(f"{self.name} is {_shown(value)}; it is {self.allowed}")

    @property
    def allowed(self) -> str:
        """What may stand there, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return " or ".join(self.choices) or "a text"
        what = "a whole number" if self.kind is int else "a number"
        if math.isinf(self.high):
            return what if math.isinf(self.low) else f"{what}, {self.low:g} or more"
        return f"{what} from {self.low:g} to {self.high:g}"

    @property
    def schema(self) -> dict[str, Any]:
        """What may stand there, as JSON Schema."""
        kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
        found: dict[str, Any] = {"type": kinds[self.kind]}
        if self.choices:
            found["enum"] = list(self.choices)
        elif self.kind is str:
            found["maxLength"] = self.longest
        if not math.isinf(self.low):
            found["minimum"] = self.low
        if not math.isinf(self.high):
            found["maximum"] = self.high
        if self.many:
            if self.nested:
                several = {"type": "array", "items": found, "minItems": 1}
                found = {"oneOf": [found, several]}
            found = {"type": "array", "items": found, "minItems": 1, "maxItems": self.most}
        if self.default is not None:
            found["default"] = self.default
        return found


@dataclass(frozen=True)
class Operation:
    """An operation: what it takes, and what it is for in a line, and in a few."""

    name: str
    summary: str
    text: str
    takes: tuple[Parameter, ...]

    def from_query(self, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """The question in a query; raises :class:`UsageError`."""
        given: dict[str, list[str]] = {}
        for name, value in pairs:
            given.setdefault(name, []).append(value)
        return self._checked(given, Parameter.read)

    def from_body(self, body: Any) -> dict[str, Any]:
        """The question in a body of JSON; raises :class:`UsageError`."""
        if not isinstance(body, dict):
            raise UsageError(f"the body is {_shown(body)}; it is a JSON object")
        return self._checked(body, Parameter.checked)

    @cached_property
    def _known(self) -> tuple[dict[str, Parameter], tuple[Parameter, ...]]:
        """What it takes by name, and what it cannot do without."""
        named = {parameter.name: parameter for parameter in self.takes}
        return named, tuple(parameter for parameter in self.takes if parameter.required)

    def _checked(
        self, given: Mapping[str, Any], read: Callable[[Parameter, Any], Any]
    ) -> dict[str, Any]:
        known, required = self._known
        for name in given:
            if name not in known:
                near = get_close_matches(name[:64], known)
                like = f" Did you mean {' or '.join(near)}?" if near else ""
                raise UsageError(
                    f"{self.name} takes no {_shown(name)}; it takes {', '.join(known)}.{like}"
                )
        for parameter in required:
            if parameter.name not in given:
                raise UsageError(f"{parameter.name} is missing: {parameter.text}")
        return {name: read(known[name], value) for name, value in given.items()}


def listed(related: Operation) -> Operation:
    """What a list as CSV takes: what ``related`` does, and whether it is for a spreadsheet."""
    text = "Write cells that a spreadsheet would take for a formula with an apostrophe before them"
    return Operation(
        "csv", related.summary, "", (*related.takes, Parameter("safe", bool, text, False))
    )


def pairs_of(query: bytes) -> list[tuple[str, str]]:
    """The fields of a query; raises :class:`UsageError`."""
    try:
        text = query.decode("ascii")
        if "%" not in text and "+" not in text and text.count("&") < 2000:
            fields = (field.partition("=") for field in text.split("&") if field)
            return [(name, value) for name, _, value in fields]
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2000)
    except UnicodeDecodeError as error:
        raise UsageError("the query is not UTF-8, written with % signs as URLs are") from error
    except ValueError as error:
        raise UsageError("the query has more than 2,000 fields") from error


def _shown(value: Any) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _settings(limits: Limits) -> tuple[Parameter, ...]:
    """What measures take when they are asked, each once; the index says which are its own."""
    kinds: dict[str, tuple[Any, list[str]]] = {}
    for measure in MEASURES.values():
        for setting in measure.ask:
            kinds.setdefault(setting.name, (setting, []))[1].append(measure.name)
    found = []
    for name, (setting, takers) in kinds.items():
        text = setting.text[0].upper() + setting.text[1:]
        choices = () if name == MEETING_WEIGHT.name else tuple(setting.choices)
        low, high = _BOUNDS.get(name, (-math.inf, math.inf))
        found.append(
            Parameter(
                name,
                type(setting.default),
                f"{text}. For indexes of: {', '.join(takers)}.",
                low=low,
                high=high,
                choices=choices,
                longest=limits.name,
            )
        )
    return tuple(found)


def _parameters(
    kind: type[Options],
    limits: Limits,
    only: Sequence[str] = (),
    changes: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> tuple[Parameter, ...]:
    """What a query takes of the options of a ``kind``, as much as the server gives."""
    most = {"k": limits.k, "offset": limits.offset, "candidates": 10 * limits.k}
    found = []
    for each in kind.declared().values():
        if "http" not in each.fronts or (only and each.name not in only):
            continue
        low, high = _BOUNDS.get(each.name, (each.low, each.high))
        parameter = Parameter(
            each.name,
            str if each.type is NodeNames else each.type,
            spelled(each.text, str).rstrip("."),
            each.default,
            many=each.many,
            low=low,
            high=most.get(each.limit, high),
            choices=each.choices,
            longest=limits.name,
            most=limits.only if each.limit == "only" else 0,
        )
        found.append(replace(parameter, **changes.get(each.name, {})))
    return tuple(found)


SETTINGS = tuple(parameter.name for parameter in _settings(Limits()))
"""The names of what measures take when asked."""


def operations_of(limits: Limits, names: Sequence[str]) -> dict[str, Operation]:
    """All operations, for a server with these limits that serves indexes of these ``names``."""

    def text(name: str, what: str, **more: Any) -> Parameter:
        return Parameter(name, str, what, longest=limits.name, **more)

    def number(name: str, most: int, default: int | None, what: str, least: int = 1) -> Parameter:
        return Parameter(name, int, what, default, low=least, high=most)

    index = text(
        "index",
        "Which of the indexes answers: " + ", ".join(names),
        default=names[0] if names else None,
    )
    side = text(
        "side",
        "Of a bipartite index: nodes are named as on this side, such as user, without the mark",
    )
    settings = _settings(limits)
    level = (*_parameters(ScoreOptions, limits), *settings)
    hits = (*_parameters(QueryOptions, limits), *settings)
    reasons = {"k": {"default": DEFAULT_REASONS, "text": "How many pages to list"}}
    several = {"many": True, "most": limits.together}
    nodes = text("node", "The node; several are asked together", required=True, **several)
    every = (
        Operation(
            "related",
            "The nodes most related to a node",
            "Or to several together.",
            (index, nodes, side, *hits),
        ),
        Operation(
            "similarity",
            "How similar two nodes are",
            "With the interval that holds the true score.",
            (
                index,
                text("a", "A node", required=True),
                text("b", "Another node", required=True),
                side,
                *level,
            ),
        ),
        Operation(
            "why",
            "The pages that make two nodes similar",
            "Each page has its share of the score, and the shares add up to it.",
            (
                index,
                text("a", "A node; several are asked together", required=True, **several),
                text("b", "Another node", required=True),
                side,
                *_parameters(QueryOptions, limits, ("k", "aggregate"), reasons),
                *settings,
            ),
        ),
        Operation(
            "complete",
            "Nodes by a part of their names or titles",
            "First the nodes whose name or title is the text, then those where it begins so, or "
            "a word of it, or contains it, in any spelling that means the same. Of equals, those "
            "with more in-links come first.",
            (
                index,
                text("text", "The beginning, or the part", required=True),
                number("k", min(limits.k, 100), 10, "How many names to list"),
                Parameter("matches", bool, "Look within names and titles; false: begin only", True),
                text("side", "Of a bipartite index: only names of this side, such as user"),
            ),
        ),
        Operation(
            "batch",
            "The nodes most related to each of many",
            "A list for each node; a list of nodes in the place of one is asked together. What is "
            "no node has an `error` in its place.",
            (
                index,
                text(
                    "nodes",
                    "The nodes",
                    required=True,
                    many=True,
                    nested=True,
                    most=limits.batch,
                ),
                side,
                *hits,
            ),
        ),
        Operation("indexes", "The indexes that are served", "With what they are made of.", ()),
    )
    return {operation.name: operation for operation in every}


# -- answers -----------------------------------------------------------------------------


Values = Mapping[str, Any]
"""What a question gives, by name (``server/requests.py``)."""

_LEVEL = tuple(ScoreOptions.declared())
_HOW = tuple(QueryOptions.declared())


def sampled(operation: str) -> bool:
    """Whether the answer of an operation has intervals, and may be of fewer samples. Reasons are
    always those of all samples, so that their shares are the same under load.
    """
    return operation in ("related", "similarity", "batch")


def heavy(asked: Values) -> bool:
    """Whether a question takes much beside its samples, so that fewer of these would not help: it
    is answered from all of them, by an index that keeps what it makes for such questions.
    """
    return bool(asked.get("refine")) or "target_error" in asked or _ordered(asked)


def _ordered(asked: Values) -> bool:
    return bool(asked.get("order", DEFAULT_ORDER) != DEFAULT_ORDER)


def known(index: Index, names: Iterable[str]) -> None:
    """Raise :class:`UnknownNode` for the first name that no node has."""
    nodes = index.nodes
    for name in names:
        if nodes.find(name) is None:
            raise nodes.unknown(name, name, passes=len(nodes) <= SEARCHED)


def stored(index: Index, asked: Values, names: Sequence[str]) -> list[str]:
    """Names as the index has them: of the nodes that are meant without doubt, those of a side if
    the question says one. Raises :class:`UsageError`.
    """
    side, sides = asked.get("side"), index.nodes.sides
    if side is not None and sides is None:
        raise UsageError("the index is not bipartite: leave side out")
    called = names if sides is None or side is None else [sides.name(side, n) for n in names]
    resolver, passes = Resolver(index.nodes), len(index.nodes) <= SEARCHED
    found = ((name, resolver.find(name, passes=passes)) for name in called)
    return [name if node is None else str(index.nodes.name(node)) for name, node in found]


def checked_settings(index: Index, asked: Values) -> None:
    """Raise :class:`UsageError` for settings that the index does not take."""
    index.stored.ask_settings(_some(asked, SETTINGS))


def _related(index: Index, asked: Values) -> Document:
    nodes = stored(index, asked, asked["node"])
    known(index, (*nodes, *asked.get("only", ())))
    return RelatedDocument.of(
        index,
        nodes,
        **_some(asked, _HOW),
        **_some(asked, SETTINGS),
    )


def _similarity(index: Index, asked: Values) -> Document:
    a, b = stored(index, asked, (asked["a"], asked["b"]))
    known(index, (a, b))
    return SimilarityDocument.of(index, a, b, **_some(asked, (*_LEVEL, *SETTINGS)))


def _why(index: Index, asked: Values) -> Document:
    *nodes, b = stored(index, asked, (*dict.fromkeys(asked["a"]), asked["b"]))
    known(index, (*nodes, b))
    chosen = _some(asked, ("k", *SETTINGS))
    if len(nodes) == 1:  # clients send the default of together
        return WhyDocument.of(index, nodes[0], b, **chosen)
    return WhyTogetherDocument.of(index, nodes, b, **_some(asked, ("aggregate",)), **chosen)


def _complete(index: Index, asked: Values) -> Document:
    return CompleteDocument.of(index, asked["text"], **_some(asked, ("k", "matches", "side")))


def _some(asked: Values, names: Iterable[str]) -> dict[str, Any]:
    return {name: asked[name] for name in names if name in asked}


ANSWERS: dict[str, Callable[[Index, Values], Document]] = {
    "related": _related,
    "similarity": _similarity,
    "why": _why,
    "complete": _complete,
}
"""An operation, and what answers it: raises what the index raises (:class:`CociteError`)."""
