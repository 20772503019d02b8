"""Settings of measures: names, defaults, allowed values and chosen values.

A *setting* has the same name and meaning in every measure. Values are looked up by setting, so they
have types: ``settings[DECAY]`` is a float for mypy.

:class:`WholeSettings` are the settings of an index or a query; :class:`PartSettings` are those of
one component, including values fixed by a blend. Separate types prevent mix-ups: only
:class:`~cocite.measures.measure.Component` converts between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeVar

from cocite.constants import MAX_LENGTH
from cocite.options import Option, Value

Kind = TypeVar("Kind", bound=Value)
Kind_co = TypeVar("Kind_co", bound=Value, covariant=True)
Other = TypeVar("Other")


@dataclass(frozen=True)
class Setting(Option[Kind_co]):
    """An option of a measure. Numbers are at least 0 by default.

    A ``late`` setting is newer than some indexes. Manifests and answers list it only if it differs
    from the default, so older files remain valid. With ``by_links``, 0 selects ``by_links(number of
    links)``. Multiplying the value by ``narrower`` narrows intervals.
    """

    low: float = 0
    late: bool = False
    by_links: Callable[[int], int] | None = None
    narrower: float = 0

    def listed(self, value: Value) -> bool:
        """Return whether manifests and answers list this value."""
        return not (self.late and value == self.default)


@dataclass(frozen=True)
class Settings:
    """Values of settings; see :class:`WholeSettings` and :class:`PartSettings`."""

    _values: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def checked(cls, settings: Iterable[Setting[Value]], given: Mapping[str, object]) -> Self:
        """Return ``settings`` with ``given`` values or defaults; raises :class:`UsageError`."""
        found = {s: s.checked(given.get(s.name, s.default)) for s in settings}
        return cls({s.name: value for s, value in found.items() if s.listed(value)})

    def __getitem__(self, setting: Setting[Kind]) -> Kind:
        if setting.late and setting.name not in self._values:
            return setting.default
        return self._values[setting.name]  # type: ignore[return-value]  # as it was checked

    def __contains__(self, setting: Setting[Value]) -> bool:
        return setting.name in self._values

    def get(self, setting: Setting[Kind], default: Other) -> Kind | Other:
        """Return the value, or ``default`` if absent."""
        if setting not in self:
            return default
        return self[setting]

    def changed(self, setting: Setting[Kind], value: object) -> Self:
        """Return a copy with one value changed; raises :class:`UsageError` for an invalid value."""
        found = {**self._values, setting.name: setting.checked(value)}
        if not setting.listed(found[setting.name]):
            del found[setting.name]
        return type(self)(found)

    def of_graph(self, settings: Iterable[Setting[Value]], links: int) -> Self:
        """Return a copy for a graph with this many ``links``: ``by_links`` replaces values of 0."""
        found = {
            s.name: s.by_links(links)
            for s in settings
            if s.by_links is not None and self._values.get(s.name) == 0
        }
        return type(self)({**self._values, **found}) if found else self

    def only(self, settings: Iterable[Setting[Value]]) -> Self:
        """Return a copy restricted to ``settings``."""
        return type(self)({s.name: self[s] for s in settings if s in self})

    def to_json(self) -> dict[str, Value]:
        """Return the values by name, as stored in manifests."""
        return dict(self._values)


class WholeSettings(Settings):
    """Settings of an index or query; for a blend, those given and defaults that all parts share."""


class PartSettings(Settings):
    """Settings of one component: the only measure, or one of a blend."""


MAX_SAMPLES = 65_535

SAMPLES = Setting(
    "samples", 100, "number of samples; four times as many halve the error", 1, MAX_SAMPLES
)
LENGTH = Setting("length", 10, "maximum number of steps of a walk", 1, MAX_LENGTH)
SEED = Setting("seed", 0, "random seed; the same seed gives the same samples", 0, 2**64 - 1)
DECAY = Setting("decay", 0.6, "factor per step: later meetings count less", 0, 1, open=True)
HUBS = Setting(
    "hubs",
    "plain",
    "plain: all links have equal weight. idf: links of pages with many links weigh less. rare: "
    "much less",
    choices=("plain", "idf", "rare"),
)
IN_SHARE = Setting(
    "in_share",
    0.5,
    "for direction both: the share of steps along in-links; the others follow out-links",
    0,
    1,
)
EVIDENCE = Setting(
    "evidence",
    "none",
    "multiply scores by a factor for n common neighbors: geometric is 1 - 2^-n, exponential is "
    "1 - e^-n, none is 1. Queries then read the graph",
    choices=("none", "geometric", "exponential"),
    late=True,
)
