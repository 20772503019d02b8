"""The parameters of the API's operations, and the functions that answer queries.

Options are the same as on the command line (``options/``), with the server's limits; query settings
depend on the measure. The same options check texts in query strings and values in JSON bodies, and
raise :class:`UsageError`. Answers are the documents of the command line. This module is independent
of HTTP, threads and load.
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

from cocite.errors import InputError, UsageError
from cocite.graph.names import Resolver
from cocite.measures import MEASURES, MEETING_WEIGHT
from cocite.options import NodeNames, Option, Options, shown, spelled
from cocite.options.query import DEFAULT_ORDER, DEFAULT_REASONS, QueryOptions, ScoreOptions
from cocite.results import Document
from cocite.search import Index
from cocite.search.results import RelatedDocument, SimilarityDocument, WhyDocument
from cocite.search.unseen import DRAFT, UnseenNode
from cocite.server.results import DEFAULT_NAMES, SEARCHED, CompleteDocument, DraftDocument, Limits

_DRAFT_TEXT = (
    "Links, one per line: a name that the page links to, or `<- ` and a name that links to it, "
    "followed by a tab and the weight if the index uses weights. Or a note in Markdown"
)
_BOOLEANS = dict.fromkeys(("true", "1", "yes", "on"), True)
_BOOLEANS |= dict.fromkeys(("false", "0", "no", "off"), False)


class TooMany(UsageError):
    """A request exceeds one of the server's limits."""


@dataclass(frozen=True)
class Parameter:
    """An option of an operation. ``longest`` limits a text's characters, ``most`` the number of
    values; if ``nested``, values may be lists.
    """

    option: Option[Any]
    longest: int
    required: bool = False
    nested: bool = False
    most: int = 0

    @property
    def name(self) -> str:
        """Return the option's name."""
        return self.option.name

    def read(self, texts: Sequence[str]) -> Any:
        """Parse the texts in a query string; raises :class:`UsageError`."""
        if self.option.many:
            return self.checked(texts)
        if len(texts) > 1:
            raise UsageError(f"{self.name} is given {len(texts)} times; pass it once")
        (text,) = texts
        try:
            value = _BOOLEANS[text.lower()] if self.option.type is bool else self.option.type(text)
        except (KeyError, ValueError) as error:
            raise self.option.wrong(text) from error
        return self._value(value)

    def checked(self, value: Any) -> Any:
        """Check the value in a body; raises :class:`UsageError`."""
        if not self.option.many:
            return self._value(value)
        if not isinstance(value, list):
            raise UsageError(f"{self.name} is {shown(value)}; it must be a list of strings")
        if len(value) > self.most:
            raise TooMany(
                f"{self.name} has {len(value):,} values; this server accepts {self.most:,} at once"
            )
        if not value:
            raise UsageError(f"{self.name} has no values; pass one or more")
        return [self._item(each) for each in value]

    def _item(self, value: Any) -> Any:
        if self.nested and isinstance(value, list):
            if not value:
                raise UsageError(f"{self.name} has an empty list; pass at least one node")
            return [self._value(each) for each in value]
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if value is None:
            raise UsageError(f"{self.name} is null; it must be {self.option.allowed}")
        if isinstance(value, str) and not self.option.choices and len(value) > self.longest:
            raise UsageError(
                f"{self.name} has {len(value):,} characters; the maximum is {self.longest:,}"
            )
        return self.option.checked(value)

    @property
    def allowed(self) -> str:
        """Describe the allowed values."""
        return f"a list of up to {self.most:,}" if self.option.many else self.option.allowed

    @property
    def schema(self) -> dict[str, Any]:
        """Return the allowed values as JSON Schema."""
        kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
        option = self.option
        found: dict[str, Any] = {"type": kinds[option.type]}
        if option.choices:
            found["enum"] = list(option.choices)
        elif option.type is str:
            found["maxLength"] = self.longest
        for name, bound in (("minimum", option.low), ("maximum", option.high)):
            if not math.isinf(bound):
                found[name] = bound
        if self.nested:
            found = {"oneOf": [found, {"type": "array", "items": found, "minItems": 1}]}
        if option.many:
            found = {"type": "array", "items": found, "minItems": 1, "maxItems": self.most}
        if option.default is not None:
            found["default"] = option.default
        return found


@dataclass(frozen=True)
class Operation:
    """An operation, with a summary, a description and parameters."""

    name: str
    summary: str
    text: str
    takes: tuple[Parameter, ...]
    posted: str = ""
    """The path to post a body to; "" for ``GET /v1/NAME``."""

    @property
    def path(self) -> str:
        """Return the URL path."""
        return self.posted or f"/v1/{self.name}"

    def from_query(self, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Parse a query string; raises :class:`UsageError`."""
        given: dict[str, list[str]] = {}
        for name, value in pairs:
            given.setdefault(name, []).append(value)
        return self._checked(given, Parameter.read)

    def from_body(self, body: Any) -> dict[str, Any]:
        """Parse a JSON body; raises :class:`UsageError`."""
        if not isinstance(body, dict):
            raise UsageError(f"the body is {shown(body)}; it must be a JSON object")
        return self._checked(body, Parameter.checked)

    @cached_property
    def _known(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.takes}

    def _checked(
        self, given: Mapping[str, Any], read: Callable[[Parameter, Any], Any]
    ) -> dict[str, Any]:
        for name in (name for name in given if name not in self._known):
            near = get_close_matches(name[:64], self._known)
            like = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(
                f"{self.name} has no parameter {shown(name)}; its parameters are "
                f"{', '.join(self._known)}.{like}"
            )
        for parameter in self.takes:
            if parameter.required and parameter.name not in given:
                raise UsageError(f"{parameter.name} is required: {parameter.option.text}")
        return {name: read(self._known[name], value) for name, value in given.items()}


def pairs_of(query: bytes) -> list[tuple[str, str]]:
    """Parse a query string; raises :class:`UsageError`."""
    try:
        text = query.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2000)
    except UnicodeDecodeError as error:
        raise UsageError("the query string is not UTF-8; percent-encode it as UTF-8") from error
    except ValueError as error:
        raise UsageError("the query has more than 2,000 fields") from error


def texts_in(value: Any) -> list[str]:
    """Return all texts in a JSON value, including field names."""
    found, left = [], [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            left += [*each, *each.values()]
    return found


def _settings() -> dict[str, Option[Any]]:
    """Return the query settings of all measures; an index accepts those of its own measure."""
    takers: dict[str, list[tuple[str, Option[Any]]]] = {}
    for measure in MEASURES.values():
        for taken in measure.ask:
            takers.setdefault(taken.name, []).append((measure.name, taken))
    found = {}
    for name, each in takers.items():
        _, setting = each[0]  # the first measure's description
        text = setting.text[0].upper() + setting.text[1:]
        found[name] = Option[Any](
            name,
            None,
            f"{text}. For indexes of: {', '.join(measure for measure, _ in each)}",
            *(setting.served or (-math.inf, math.inf)),
            choices=() if name == MEETING_WEIGHT.name else setting.choices,
            kind=setting.type,
        )
    return found


_OF_MEASURES = _settings()
SETTINGS = tuple(_OF_MEASURES)
"""The names of all measures' query settings."""


def operations_of(limits: Limits, names: Sequence[str]) -> dict[str, Operation]:
    """Return the operations of a server with these limits and index ``names``."""

    def text(name: str, what: str, default: str | None = None, **more: Any) -> Parameter:
        many = "most" in more
        return Parameter(Option(name, default, what, kind=str, many=many), limits.name, **more)

    def parameters(
        kind: type[Options],
        only: Sequence[str] = (),
        changes: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> tuple[Parameter, ...]:
        """Return the parameters for options of class ``kind``, and for query settings."""
        highest = {"k": limits.k, "offset": limits.offset, "candidates": 10 * limits.k}
        found = []
        for each in kind.declared().values():
            if "http" not in each.fronts or (only and each.name not in only):
                continue
            low, high = each.served or (each.low, each.high)
            option = replace(
                each,
                kind=str if each.type is NodeNames else each.type,
                text=spelled(each.text, str).rstrip("."),
                low=low,
                high=highest.get(each.limit, high),
            )
            option = replace(option, **changes.get(each.name, {}))
            most = limits.only if each.limit == "only" else 0
            found.append(Parameter(option, limits.name, most=most))
        return (*found, *(Parameter(each, limits.name) for each in _OF_MEASURES.values()))

    served = "The index to query: " + ", ".join(names)

    def own(*option: Any, **more: Any) -> Parameter:
        return Parameter(Option(*option, **more), 0)

    index = text("index", served, names[0] if names else None)
    side = text(
        "side",
        "Bipartite indexes only: the side of all names, such as user; names then have no prefix",
    )
    b = text("b", "Another node", required=True)
    several: dict[str, Any] = {"required": True, "most": limits.together}
    reasons = {"k": {"default": DEFAULT_REASONS, "text": "How many pages to list"}}
    hits = parameters(QueryOptions)
    every = (
        Operation(
            "related",
            "The nodes most related to a node",
            "Repeat `node` to query several nodes together.",
            (index, text("node", "The node; several are queried together", **several), side, *hits),
        ),
        Operation(
            "similarity",
            "How similar two nodes are",
            "With an interval for the true score.",
            (index, text("a", "A node", required=True), b, side, *parameters(ScoreOptions)),
        ),
        Operation(
            "why",
            "The pages that make two nodes similar",
            "Each page contributes a part of the score; the parts add up to it.",
            (
                index,
                text("a", "A node; several are queried together", **several),
                b,
                side,
                *parameters(QueryOptions, ("k", "aggregate"), reasons),
            ),
        ),
        Operation(
            "complete",
            "Nodes by a part of their names or titles",
            "First the nodes whose name or title is the text, then those whose name or title "
            "begins with it, has a word that begins with it, or contains it. Equivalent spellings "
            "match, too. Ties are ordered by in-links, most first.",
            (
                index,
                text("text", "The text to search for", required=True),
                own("k", DEFAULT_NAMES, "How many names to list", 1, min(limits.k, 100)),
                own("matches", True, "Search within names and titles; false: only at the start"),
                text("side", "Bipartite indexes only: list names of this side, such as user"),
            ),
        ),
        Operation(
            "batch",
            "The nodes most related to each of many nodes",
            "A list for each node; nodes in a nested list are queried together. An unknown node "
            "gets an `error`, a problem document, instead of its list.",
            (
                index,
                text("nodes", "The nodes", required=True, nested=True, most=limits.batch),
                side,
                *hits,
            ),
            posted="/v1/batch",
        ),
        Operation(
            "draft",
            "The nodes most related to a page that is not stored yet",
            "Describe its links by `out`, `into`, `text`, or several of them. The answer lists "
            "names that are not in the index as `unknown`. Requires the graph of the index.",
            (
                index,
                text("out", "Nodes that the page links to", most=limits.links),
                text("into", "Nodes that link to the page", most=limits.links),
                Parameter(Option("text", None, _DRAFT_TEXT, kind=str), limits.body),
                own("format", "names", "Format of `text`", choices=("names", "note")),
                text("name", "Name of the page", DRAFT),
                own("skip_unknown", False, "Skip links with names not in the index"),
                *hits,
            ),
            posted="/v1/related",
        ),
        Operation("indexes", "The indexes that are served", "With measure and settings.", ()),
    )
    return {operation.name: operation for operation in every}


# -- answers -----------------------------------------------------------------------------


Values = Mapping[str, Any]
"""A query's values, by name."""
_ADDRESS = frozenset({"index", "side", "node", "a", "b"})
_LINKS = frozenset({"out", "into", "text", "format", "name", "skip_unknown"})
"""Parameters that select a query's nodes or links."""


def sampled(operation: str) -> bool:
    """Return whether an operation may use fewer samples; reasons always use all."""
    return operation in ("related", "similarity", "batch")


def heavy(asked: Values) -> bool:
    """Return whether a query's cost is dominated by work that fewer samples would not reduce."""
    ordered = asked.get("order", DEFAULT_ORDER) != DEFAULT_ORDER
    return bool(asked.get("refine")) or "target_error" in asked or ordered


def stored(index: Index, asked: Values, names: Sequence[str]) -> list[str]:
    """Return names as stored in the index, on the query's side; raises :class:`UsageError`."""
    return [name for name, _ in _resolved(index, asked, names)]


def _resolved(index: Index, asked: Values, names: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the names, and whether each is a node; only other spellings take a pass over names."""
    nodes, side = index.nodes, asked.get("side")
    if side is not None:
        if nodes.sides is None:
            raise UsageError("the index is not bipartite: omit the parameter side")
        names = [nodes.sides.name(side, name) for name in names]
    found = []
    for name in names:
        node = nodes.find(name)
        if node is None:
            node = Resolver(nodes).find(name, passes=len(nodes) <= SEARCHED)
        found.append((name, False) if node is None else (str(nodes.name(node)), True))
    return found


def _known(index: Index, asked: Values, names: Sequence[str]) -> list[str]:
    """Return names as stored; raises :class:`UnknownNode`, with suggestions in smaller indexes."""
    nodes, found = index.nodes, _resolved(index, asked, names)
    only = ((name, nodes.find(name) is not None) for name in asked.get("only", ()))
    for name, given in (*found, *only):
        if not given:
            raise nodes.unknown(name, name, passes=len(nodes) <= SEARCHED)
    return [name for name, _ in found]


def checked_settings(index: Index, asked: Values) -> None:
    """Raise :class:`UsageError` for query settings that the index does not support."""
    index.stored.ask_settings({name: asked[name] for name in SETTINGS if name in asked})


def _options(asked: Values) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name not in _ADDRESS | _LINKS}


def _related(index: Index, asked: Values) -> Document:
    nodes = _known(index, asked, asked["node"])
    return RelatedDocument.of(index, nodes, **_options(asked))


def _similarity(index: Index, asked: Values) -> Document:
    a, b = _known(index, asked, (asked["a"], asked["b"]))
    return SimilarityDocument.of(index, a, b, **_options(asked))


def _why(index: Index, asked: Values) -> Document:
    *nodes, b = _known(index, asked, (*dict.fromkeys(asked["a"]), asked["b"]))
    return WhyDocument.of(index, nodes, b, **_options(asked))


def _complete(index: Index, asked: Values) -> Document:
    chosen = {name: asked[name] for name in ("k", "matches", "side") if name in asked}
    return CompleteDocument.of(index, asked["text"], **chosen)


def _draft(index: Index, asked: Values) -> Document:
    """Answer for an unseen node; raises :class:`UnknownNode` unless unknown links are skipped."""
    unseen, lost = UnseenNode.of(asked.get("out", ()), asked.get("into", ())), list[str]()
    if asked.get("format") == "note":
        if len(index.nodes) > SEARCHED:
            raise UsageError(
                f"the index has {len(index.nodes):,} names; links of notes can be resolved only "
                f"in up to {SEARCHED:,} names: pass the names of the linked pages as out"
            )
        from cocite.io.readers.notes.reader import draft_links

        content, at = asked.get("text", "").encode(), asked.get("name", DRAFT)
        named, lost = draft_links(content, index.nodes.stored, at)
        unseen.out.extend((name, None) for name in named)
    else:
        try:
            read = UnseenNode.read(asked.get("text", "").encode(), "text")
        except InputError as error:
            raise UsageError(str(error)) from error
        unseen = UnseenNode(unseen.out + read.out, unseen.into + read.into)
    names = list(dict.fromkeys(name for side in unseen for name, _ in side))
    known = dict(zip(names, stored(index, {}, names), strict=True))
    lost += [name for name in names if index.nodes.find(known[name]) is None]
    if lost and not asked.get("skip_unknown"):
        raise index.nodes.unknown(lost[0], lost[0], passes=len(index.nodes) <= SEARCHED)
    gone = set(lost)
    links = UnseenNode(
        *([(known[name], weight) for name, weight in side if name not in gone] for side in unseen)
    )
    drafted = index.with_unseen(links, name=asked.get("name"), skip_unknown=True)
    called = drafted.nodes.name(len(drafted.nodes) - 1)
    return DraftDocument(RelatedDocument.of(drafted, called, **_options(asked)), lost)


ANSWERS: dict[str, Callable[[Index, Values], Document]] = {
    "related": _related,
    "similarity": _similarity,
    "why": _why,
    "complete": _complete,
    "draft": _draft,
}
"""The functions that answer operations; they raise :class:`CociteError`."""
