"""Blends: the weighted mean of several measures, each with its own settings.

    score(u, v) = sum over components i of  w_i * s_i(u, v),      w_i > 0, sum of the w_i = 1

    blend:psimrank+cocitation                           equal weights
    blend:0.6*psimrank+0.4*coupling                     any weights, divided by their sum
    blend:psimrank(hubs=rare,direction=both)+cocitation(idf=true)

Parentheses contain settings, ``direction`` and ``layout`` for one component. All other settings
apply to every component that accepts them. A measure that is itself a blend is expanded into its
components, which share its weight.

Convention: scores are not rescaled, because a pair's score would then depend on other pages.
Components based on walks use the same number of independent samples; sample i of the blend is the
weighted sum of their samples i. Costs add up. Related: P-Rank (Zhao, Han, Sun 2009) mixes two
directions within its recursion.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from cocite.constants import added
from cocite.errors import UsageError
from cocite.measures.measure import PREFIX, Component, Measure, Takes, overall_direction
from cocite.measures.settings import PartSettings, Setting
from cocite.options import DIRECTIONS, NO_LINKS, Value

_TERM = re.compile(
    r"(?:(?P<share>\d+(?:\.\d*)?|\.\d+)\*)?(?P<name>[a-z][a-z-]*)(?:\((?P<own>[^()]*)\))?"
)


def parse_blend(text: str, measures: Mapping[str, Measure]) -> Measure:
    """Return the blend of ``measures`` described by ``text``; raises :class:`UsageError`."""
    terms = [
        _TERM.fullmatch(term) for term in text.removeprefix(PREFIX).replace(" ", "").split("+")
    ]
    if not all(terms) or len(terms) < 2:
        raise UsageError(
            f"{text!r} is not a blend; write two or more components, such as "
            "blend:psimrank+cocitation or blend:0.6*psimrank(hubs=rare)+0.4*cocitation(idf=true)"
        )
    shares = [term["share"] for term in terms if term]
    if any(shares) and not all(shares):
        raise UsageError(
            f"{text!r} has weights for some components; give every component a weight, or none"
        )
    values = [float(share or 1) for share in shares]
    total, named = added(values), Counter[str]()
    if not all(0 < value / total <= 1 for value in values):
        raise UsageError(f"{text!r} has a weight that is 0 or too large; weights must be above 0")
    parts: list[Component] = []
    written: list[str] = []
    tops: list[Measure] = []
    for term, value in zip(terms, values, strict=True):
        assert term is not None
        found, own = _components(term, value / total, named, measures)
        parts += found
        # Without an exponent, because ``_TERM`` accepts none.
        share = f"{np.format_float_positional(value, trim='0')}*" if any(shares) else ""
        written.append(share + term["name"] + own)
        tops.append(measures[term["name"]])
    blend = _blend(PREFIX + "+".join(written), tuple(parts))
    lenient = all(measure.weighted or measure.lenient or measure.texts for measure in tops)
    return replace(blend, lenient=lenient and any(measure.lenient for measure in tops))


def _blend(name: str, parts: tuple[Component, ...]) -> Measure:
    measures = [part.measure for part in parts]
    ways = {part.direction or part.measure.direction for part in parts}
    return Measure(
        name=name,
        summary="the weighted mean of " + ", ".join(measure.name for measure in measures),
        layouts=tuple(dict.fromkeys(layout for m in measures for layout in m.layouts)),
        build=_union(part.free(part.measure.build) for part in parts),
        ask=_union(part.free(part.measure.ask) for part in parts),
        symmetric=all(measure.symmetric for measure in measures),
        unit=all(measure.unit for measure in measures),
        monotone=all(measure.monotone for measure in measures),
        weighted=all(measure.weighted for measure in measures if not measure.texts),
        texts=any(measure.texts for measure in measures),
        direction=overall_direction(ways),
        directions=tuple(
            way
            for way in DIRECTIONS
            if all(way in part.measure.directions for part in parts if part.direction is None)
        ),
        parts=parts,
    )


def _union(settings: Iterable[Takes]) -> Takes:
    found: dict[str, Setting[Value]] = {}
    for several in settings:
        for setting in several:
            found.setdefault(setting.name, setting)
    return tuple(found.values())


def _components(
    term: re.Match[str], weight: float, named: Counter[str], measures: Mapping[str, Measure]
) -> tuple[list[Component], str]:
    """Return a term's components, numbered after those in ``named``, and its settings as text."""
    name = term["name"]
    if name not in measures:
        raise UsageError(
            f"no measure is called {name!r}; the measures are " + ", ".join(sorted(measures))
        )
    measure = measures[name]
    own = dict(_assignment(name, item) for item in (term["own"] or "").split(",") if item)
    direction, layout = own.pop("direction", None), own.pop("layout", None)
    for what, value, allowed in (
        ("direction", direction, measure.directions),
        ("layout", layout, measure.layouts),
    ):
        if value is not None and value not in allowed:
            raise UsageError(f"{what} of {name} is {value!r}; it must be " + " or ".join(allowed))
    settings = {setting.name: setting for setting in measure.build + measure.ask}
    for stranger in own.keys() - settings.keys():
        raise UsageError(
            f"{name} has no setting {stranger!r}; its settings in a blend are "
            + ", ".join([*settings, "direction", "layout"])
        )
    fixed = {key: settings[key].checked(_read(settings[key], value)) for key, value in own.items()}
    found: list[Component] = []
    for inner in measure.components:
        made = inner.measure
        free = {setting.name for setting in inner.free(made.build + made.ask)}
        taken = {key: value for key, value in fixed.items() if key in free}
        number, same = named.total(), named[made.name]
        named[made.name] += 1
        way = inner.direction or (NO_LINKS if made.texts else direction)
        found.append(
            Component(
                made,
                weight * inner.weight,
                f"{made.name}-{same + 1}" if same else made.name,
                number,
                PartSettings({**inner.fixed.to_json(), **taken}),
                way,
                inner.layout or (layout if layout in made.layouts else None),
            )
        )
    return found, _written({"direction": direction, "layout": layout, **fixed})


def _assignment(name: str, item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals:
        raise UsageError(f"{name}({item}): a setting is written name=value, such as hubs=rare")
    return key.replace("-", "_"), value


def _read(setting: Setting[Value], text: str) -> object:
    """Parse a value; return invalid text unchanged, for the setting to reject."""
    try:
        if type(setting.default) is bool:
            return {"true": True, "false": False}.get(text, text)
        return type(setting.default)(text)
    except ValueError:
        return text


def _written(own: Mapping[str, Value | None]) -> str:
    """Return the settings that are not None, in parentheses; "" if there are none."""
    items = ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in own.items()
        if value is not None
    )
    return f"({items})" if items else ""
