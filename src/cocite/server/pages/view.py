"""Convert answers to page content: state, rows with bars, the map, form fields, and templates.

A page's URL is its state: the parameters of ``GET /v1/related``, and ``why=OTHER`` for reasons.
Pages can therefore be shared, and ``/v1/related`` answers the same query as JSON.

Names and titles are untrusted. Templates escape all text. Links are ``/?`` and an encoded query; a
name becomes a link only if it is an http or https URL. The content security policy allows only the
server's scripts, and nothing from other hosts. Names of styles and scripts change with the content,
so browsers may cache them.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote, urlencode, urlsplit

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cocite.deadline import limited
from cocite.errors import QueryTimeout
from cocite.graph.spelling import refused_in
from cocite.options import DIRECTIONS
from cocite.options.query import DEFAULT_INTERVAL, DEFAULT_ORDER
from cocite.search import Index
from cocite.search.results import RelatedDocument
from cocite.search.source import in_links_of, out_links_of
from cocite.server.pages import graph_map
from cocite.server.replies import Endpoint, coding, packed
from cocite.server.requests import SETTINGS, Parameter

if TYPE_CHECKING:
    from cocite.server.service import Service


_LONGEST = 2048
"""Maximum length of a name shown as a link."""
TRAIL = 8
"""Maximum number of pages in the trail."""


@dataclass(frozen=True)
class PageState:
    """A page's state: ``nodes``, the hit whose reasons are shown (``why``), all ``others`` as
    texts, and the ``trail`` of visited pages.
    """

    nodes: tuple[str, ...] = ()
    why: str | None = None
    others: tuple[tuple[str, str], ...] = ()
    trail: tuple[str, ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Parse query fields."""
        nodes, why, others, trail = [], None, [], []
        for name, value in pairs:
            if name == "node" and value:
                nodes.append(value)
            elif name == "why":
                why = value or None
            elif name == "from":
                trail.append(value)
            elif value and name != "node":
                others.append((name, value))
        return cls(tuple(dict.fromkeys(nodes)), why, tuple(others), tuple(filter(None, trail)))

    def get(self, name: str) -> str | None:
        """Return a parameter as text, or None."""
        return next((value for other, value in self.others if other == name), None)

    @property
    def named(self) -> dict[str, str]:
        """Return the ``index`` parameter; {} for the default index."""
        return {name: value for name, value in self.others if name == "index"}

    @property
    def question(self) -> list[tuple[str, str]]:
        """Return the fields for the API."""
        return [*(("node", node) for node in self.nodes), *self.others]

    def plus(self, name: str, value: str) -> PageState:
        """Return the state with another parameter."""
        return replace(self, others=(*self.others, (name, value)))

    def without(self, *names: str) -> PageState:
        """Return the state without these parameters."""
        return replace(self, others=tuple(pair for pair in self.others if pair[0] not in names))

    def for_nodes(self, *nodes: str) -> PageState:
        """Return the state for other ``nodes`` (stored names); reset offset, side and reasons."""
        return replace(self.without("offset", "side"), nodes=nodes, why=None)

    def onward(self) -> PageState:
        """Return the state for links to other pages, with this page at the end of the trail."""
        if len(self.nodes) != 1 or self.trail[-1:] == self.nodes:
            return self
        return replace(self, trail=(*self.trail, *self.nodes)[-TRAIL:])

    def back(self, place: int) -> PageState:
        """Return the state for a page in the trail; the new trail ends before the page."""
        return replace(self.for_nodes(self.trail[place]), trail=self.trail[:place])

    def reasons(self, node: str | None) -> PageState:
        """Return the state that shows the reasons for ``node``, or no reasons if None."""
        return replace(self, why=node)

    def at(self, offset: int) -> PageState:
        """Return the state at another offset."""
        found = replace(self.without("offset"), why=None)
        return found.plus("offset", str(offset)) if offset else found

    def href(self, path: str = "/", *, reasons: bool = True) -> str:
        """Return the URL path and query."""
        pairs = self.question
        if reasons:
            pairs += [("why", self.why)] if self.why is not None else []
            pairs += [("from", each) for each in self.trail]
        query = urlencode(pairs, quote_via=quote, errors="surrogateescape")
        return f"{path}?{query}" if query else path


def outward(name: str) -> str | None:
    """Return the name if, as written, it is an http or https URL to link to; else None."""
    if not name.lower().startswith(("http://", "https://")) or len(name) > _LONGEST:
        return None
    if not name.isprintable() or any(sign.isspace() or sign in '"<>\\^`{|}' for sign in name):
        return None
    try:
        return name if urlsplit(name).hostname else None
    except ValueError:
        return None


def readable(name: str, most: int) -> str:
    """Shorten a name to ``most`` characters by omitting its middle; URLs also lose the scheme."""
    text = decoded(name)
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    if outward(name) is not None:
        text = text.split("://", 1)[1].rstrip("/")
    if len(text) <= most:
        return text
    head = (most - 1) // 3 if outward(name) is not None else (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


# -- shown -------------------------------------------------------------------------------


_LABEL = 22
"""Maximum length of labels on the map."""
_SAME = 8
"""Minimum length of a common prefix that labels omit."""


def own_settings(index: Index) -> dict[str, Any]:
    """Return the index's query settings, with defaults."""
    given = index.stored.ask_settings({}).to_json()
    takes = (each.name for part in index.stored.parts for each in part.measure.ask)
    return {name: given.get(name, "") for name in takes}


def fields_of(index: Index, takes: Sequence[Parameter], state: PageState) -> list[dict[str, Any]]:
    """Return the form fields, own settings first; ``kind`` is number, text, yes or choice."""
    own = own_settings(index)
    known = {parameter.name: parameter.option for parameter in takes}
    found = []
    for name in (*own, *(name for name, taken in known.items() if taken.label)):
        taken = known[name]
        default, choices = own.get(name, taken.default), taken.choices
        kind = {bool: "yes", str: "text"}.get(taken.type, "number")
        if name in own and taken.type is bool:
            choices = ("true", "false")
        if choices:
            kind, default = "choice", str(default).lower()
        found.append(
            {
                "name": name,
                "label": taken.label or name,
                "help": taken.text.partition(" For indexes of:")[0],
                "kind": kind,
                "value": state.get(name) or "",
                "default": "" if default is None else f"{default}",
                "choices": choices,
                "least": "" if math.isinf(taken.low) else f"{taken.low:g}",
                "most": "" if math.isinf(taken.high) else f"{taken.high:g}",
            }
        )
    return found


_PRESETS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("As served", "The settings of the index, and the first hits.", {}),
    ("Long list", "The first 100 hits.", {"k": "100"}),
    ("Important first", "Related pages, by similarity × PageRank.", {"order": "score*pagerank"}),
)


def presets_of(state: PageState, linked: bool) -> list[dict[str, Any]]:
    """Return the presets, including an order by PageRank if pages are ``linked``."""
    mine = {name: value for name, value in state.others if name not in ("index", "side")}
    kept = state.without(*mine).reasons(None)
    return [
        {
            "name": name,
            "text": text,
            "href": replace(kept, others=(*kept.others, *chosen.items())).href(),
            "on": mine == chosen,
        }
        for name, text, chosen in _PRESETS
        if linked or "order" not in chosen
    ]


def foreign(index: Index, state: PageState) -> list[str]:
    """Return the names of settings in the URL that the index does not support."""
    own = own_settings(index)
    return [name for name, _ in state.others if name in SETTINGS and name not in own]


_BOUNDED = 1 / 3
"""Width relative to the score above which an interval counts as wide."""


def sharpen_of(index: Index, document: RelatedDocument, state: PageState) -> str | None:
    """Return the URL of the refined list if intervals are wide and can be refined, else None."""
    wide = any(hit.high - hit.low > _BOUNDED * hit.score for hit in document.hits)
    single = len(document.nodes) == 1 and document.interval == DEFAULT_INTERVAL
    possible = single and not document.refined and index.refiner is not None
    return state.plus("refine", "true").href() if wide and possible else None


def rows_of(document: RelatedDocument, state: PageState, most: int) -> list[dict[str, Any]]:
    """Return a row per hit, with bars in percent; ``most`` limits the nodes in a query."""
    ends = [max(hit.score, hit.high) for hit in document.hits if math.isfinite(hit.high)]
    best = max([*ends, *(hit.score for hit in document.hits)], default=0.0) or 1.0
    digits = digits_of(best)

    def width(score: float) -> float:
        return round(100 * min(1.0, max(0.0, score / best)), 1)

    found = []
    for rank, hit in enumerate(document.hits, document.offset + 1):
        node, add = str(hit.node), state.for_nodes(*state.nodes, str(hit.node)).href()
        known = math.isfinite(hit.low) and math.isfinite(hit.high)
        low, high = (hit.low, hit.high) if known else (hit.score, hit.score)
        found.append(
            {
                "rank": rank,
                "node": node,
                "title": hit.title,
                "score": f"{hit.score:.{digits}f}",
                "low": f"{low:.{digits}f}" if known else "?",
                "high": f"{high:.{digits}f}" if known else "?",
                "bar": width(hit.score),
                "bar_low": width(low),
                "bar_high": width(high),
                "exact": low == high,
                "walk": state.onward().for_nodes(node).href(),
                "why": state.reasons(node).href() + "#why",
                "add": add if len(state.nodes) < most else None,
                "seen": node == state.why,
            }
        )
    return found


_RANKED = 5_000_000
"""Maximum number of links for which maps show PageRanks, computed once in about a second; larger
graphs show in-degrees.
"""


def map_of(
    index: Index,
    document: RelatedDocument,
    state: PageState,
    settings: Mapping[str, Any],
    lines: bool,
    most: float,
) -> dict[str, Any] | None:
    """Return the map, with ``lines`` if they take at most ``most`` seconds; None without hits."""
    hits = list(document.hits[: graph_map.MOST])
    if not hits:
        return None
    names = [str(hit.node) for hit in hits]
    near = np.zeros((len(hits), len(hits)))
    if lines:
        try:
            with limited(most):
                near = graph_map.closeness(index, names, settings)
        except QueryTimeout:
            lines = False
    called = " + ".join(map(str, document.nodes))
    if document.titles is not None and len(document.nodes) == 1:
        called = document.titles[0] or called
    middle = readable(called, _LABEL)
    labels = _labels([hit.title or str(hit.node) for hit in hits])
    digits = digits_of(hits[0].score)
    degrees, ranks = weights_of(index, names)
    spots = graph_map.plot_map(hits, labels, near, document.offset + 1, middle, degrees, ranks)
    titles = [hit.title or decoded(name) for hit, name in zip(hits, names, strict=True)]
    groups = [spot.group for spot in spots]
    return {
        "rings": graph_map.scale_circles(spots, hits, digits),
        "wide": graph_map.WIDTH,
        "tall": graph_map.HEIGHT,
        "spots": [
            {
                "spot": spot,
                "href": state.for_nodes(name).href(),
                "name": titles[place],
                "score": f"{hits[place].score:.{digits}f}",
                "in_links": None if degrees is None else int(degrees[place]),
            }
            for place, (spot, name) in enumerate(zip(spots, names, strict=True))
        ],
        "groups": [
            {"group": group, "name": title, "size": groups.count(group)}
            for group, title in sorted(
                (spot.group, title)
                for spot, title in zip(spots, titles, strict=True)
                if spot.central
            )
        ],
        "lines": graph_map.lines_of(spots, near),
        "hulls": graph_map.hulls_of(spots),
        "below": graph_map.BELOW,
        "ranked": ranks is not None,
        "middle": middle,
        "left_out": not lines and len(hits) > 1,
        "first": len(hits),
        "all": len(document.hits),
    }


def weights_of(
    index: Index, names: list[str]
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Return the nodes' in-degrees and PageRanks; None if unknown."""
    ids = [place for name in names if (place := index.nodes.find(name)) is not None]
    if len(ids) < len(names):
        return None, None
    degrees = in_links_of(index.stored, index.given, np.array(ids, np.int64))
    if not degrees.any():
        return None, None
    small = (index.stored.graph.get("edges") or 0) <= _RANKED
    return degrees, np.array(index.pageranks(names)) if small else None


def _labels(names: list[str]) -> list[str]:
    pairs = zip(min(names), max(names), strict=False)
    same = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    while same and (same[-1].isalnum() or same in names):
        same = same[:-1]
    if len(same) < _SAME or len(names) == 1:
        return [readable(name, _LABEL) for name in names]
    return [readable(f"…{name[len(same) :]}", _LABEL) for name in names]


def title_of(document: RelatedDocument) -> str:
    """Return the query nodes' titles, or names of nodes without titles."""
    titles = document.titles or document.nodes
    return " + ".join(t or str(n) for n, t in zip(document.nodes, titles, strict=True))


def about_of(index: Index, name: str) -> dict[str, Any]:
    """Return a page's name, title, and degrees."""
    node = index.nodes.find(name)
    if node is None:
        return {"name": name, "title": None, "links": None, "tiles": []}
    title = (index.titles_of([name]) or [""])[0] or None
    asked = index.stored, index.given, np.array([node], np.uint32)
    links, out = int(in_links_of(*asked)[0]), out_links_of(*asked)
    tiles = [] if out is None else [("in-links", links), ("out-links", int(out[0]))]
    return {"name": name, "title": title, "links": links, "tiles": tiles}


def calls_of(index: str, document: RelatedDocument, state: PageState) -> list[tuple[str, str]]:
    """Return the query as a command, as Python code, and as a URL."""
    nodes = [str(node) for node in document.nodes]
    one = shlex.join(nodes) if all(node.isprintable() for node in nodes) else repr(nodes)
    given = [pair for pair in state.others if pair[0] not in ("index", "side", "offset")]
    flags = "".join(f" --{name.replace('_', '-')} {shlex.quote(value)}" for name, value in given)
    flags = flags.replace(" --k ", " -k ")
    asked = repr(nodes[0]) if len(nodes) == 1 else repr(nodes)
    words = "".join(f", {name}={_literal(value)}" for name, value in given)
    return [
        ("CLI", f"cocite related {shlex.quote(index)}.index {one}{flags}"),
        ("Python", f"cocite.open({f'{index}.index'!r}).related({asked}{words})"),
        ("HTTP", state.href("/v1/related", reasons=False)),
    ]


def _literal(value: str) -> str:
    if value in ("true", "false"):
        return value.capitalize()
    try:
        return f"{float(value):g}"
    except ValueError:
        return repr(value)


_LINKS = {"both": "in- and out-links"}


def how(document: RelatedDocument, samples: int | None) -> list[str]:
    """Describe an answer's measure, direction, samples and order in short phrases."""
    found = [document.measure]
    if document.direction in DIRECTIONS:
        found.append(_LINKS.get(document.direction, DIRECTIONS[document.direction]))
    if samples is not None:
        found.append(f"{samples:,} samples")
    if document.refined:
        found.append("refined")
    if document.order != DEFAULT_ORDER:
        found.append(f"order {document.order.replace('*', ' × ')}")
    return found


def digits_of(best: float) -> int:
    """Return the number of decimals that show three significant digits of the best score."""
    return 3 if best <= 0 else min(12, max(3, 2 - math.floor(math.log10(best))))


# -- made --------------------------------------------------------------------------------


HTML = "text/html; charset=utf-8"
_FOLDER = files("cocite.server.pages") / "static"
_KINDS = {
    "page.css": "text/css; charset=utf-8",
    "embed.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "map.css": "text/css; charset=utf-8",
    "map.js": "text/javascript; charset=utf-8",
    "inter.woff2": "font/woff2",
}
_CONTENT = {name: (_FOLDER / name).read_bytes() for name in _KINDS}
_FONT = "inter.woff2"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; "
    "connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors {}"
)
_ENDING = re.compile(r"\.[a-z0-9]{1,4}$")
_PARTS = re.compile(r"[^/_.,;?&=)\-]*(?:[/_.,;?&=)\-]+|$)", re.S)
_TEMPLATES = Environment(
    loader=PackageLoader("cocite.server.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def asset(name: str) -> str:
    """Return the URL path of a static file."""
    stem, _, ending = name.rpartition(".")
    return f"/assets/{stem}.{sha256(_CONTENT[name]).hexdigest()[:12]}.{ending}"


_CONTENT["page.css"] = _CONTENT["page.css"].replace(_FONT.encode(), asset(_FONT).encode())


def _breaks(name: str) -> Markup:
    return Markup("<wbr>").join(_PARTS.findall(decoded(name)))


def decoded(name: str) -> str:
    """Percent-decode a name for reading, unless the result could mislead."""
    try:
        text = unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name
    if refused_in(text):
        return name
    words = text.split("_")
    titled = all(words) and text[0].isupper() | text[0].isdigit() and not text.isupper()
    titled &= any(map(str.isalpha, text))
    plain = not _ENDING.search(text) and not any(sign.isspace() or sign in "/\\" for sign in text)
    return " ".join(words) if titled and plain else text


KEYS = (
    ("/", "search"),
    ("j k", "next, previous row"),
    ("w", "why"),
    ("a", "add"),
    ("1 … 6", "one group"),
    ("0", "all groups"),
    ("c", "compare"),
    ("l m", "list, map"),
    ("s", "settings"),
)
_TEMPLATES.globals.update(asset=asset, keys=KEYS)
_TEMPLATES.filters.update(breaks=_breaks, plain=decoded)
_TEMPLATES.tests["outward"] = lambda name: outward(name) is not None


def filled(template: str, values: dict[str, Any]) -> bytes:
    """Render a template; undecodable bytes in names become "?"."""
    return _TEMPLATES.get_template(template).render(values).encode("utf-8", "replace")


def policy(service: Service) -> str:
    """Return the content security policy."""
    return _POLICY.format(" ".join(service.config.options.frame_ancestors) or "'none'")


def assets() -> list[Route]:
    """Return the routes to all static files."""
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return [
        Route(asset(name), static_file("asset", _CONTENT[name], {"Content-Type": kind, **kept}))
        for name, kind in _KINDS.items()
    ]


def static_file(operation: str, content: bytes, headers: Mapping[str, str]) -> Endpoint:
    """Return an endpoint that serves ``content``, compressed as the client prefers."""

    async def endpoint(request: Request) -> Response:
        request.scope["state"]["operation"] = operation
        body, coded = packed(content, coding(request))
        encoding = {} if coded is None else {"Content-Encoding": coded}
        return Response(body, headers={"Vary": "Accept-Encoding", **headers, **encoding})

    return endpoint
