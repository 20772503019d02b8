"""Measures as values: their names, settings, layouts and properties.

Settings (``measures/settings.py``) are fixed when an index is built (``build``) or chosen per query
(``ask``). Layouts compute the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from cocite.constants import Step
from cocite.errors import UsageError
from cocite.measures.meeting_weight import MEETING_WEIGHT, heeds_decay
from cocite.measures.settings import DECAY, PartSettings, Setting, WholeSettings
from cocite.options import DIRECTIONS, NO_LINKS, Value, checked_direction, opposite

Takes = tuple[Setting[Value], ...]
"""The build or query settings of a measure."""

PREFIX = "blend:"
"""Prefix of the names of blends (``measures/blend.py``)."""


Choice = Callable[[str | None, Mapping[str, object], WholeSettings], tuple[str, WholeSettings]]
"""A function that chooses an index's layout and the settings that depend on it, from the given
layout, the given settings, and all settings with their defaults.
"""


@dataclass(frozen=True)
class Measure:
    """A measure: its name, settings, layouts and properties.

    The first of ``layouts`` is the default. ``step`` is the kind of step that the measure's walks
    take, ``weighted_step`` the kind with link weights or ``hubs``; either is None if unsupported.

    Scores are ``symmetric`` if s(u, v) = s(v, u), ``unit`` if they are in [0, 1], and ``monotone``
    if a larger decay lowers no score. In the ``noisy`` layouts, scores of unrelated nodes scatter
    around 0.

    ``weighted`` measures use link weights; ``lenient`` blends have components that may ignore them.
    ``direction`` is the default among ``directions``. A ``turned`` measure uses out-links in the
    direction ``in``. For a ``joint`` measure, ``both`` is one score instead of the mean of two.
    With ``own_links``, a page without links in the query's direction has no hits. A measure of
    ``texts`` uses no links; its direction is NO_LINKS.

    ``reader`` is the class for the ``links`` layout, as ``module:class``. ``chooses`` selects
    interdependent layouts and settings. A blend is the weighted mean of its ``parts``
    (``measures/blend.py``).
    """

    name: str
    summary: str
    layouts: tuple[str, ...]
    build: Takes = ()
    ask: Takes = ()
    step: Step | None = None
    weighted_step: Step | None = None
    symmetric: bool = True
    unit: bool = True
    monotone: bool = True
    weighted: bool = False
    lenient: bool = False
    direction: str = "in"
    directions: tuple[str, ...] = tuple(DIRECTIONS)
    turned: bool = False
    joint: bool = False
    noisy: tuple[str, ...] = ()
    reader: str = ""
    own_links: bool = False
    chooses: Choice | None = None
    texts: bool = False
    parts: tuple[Component, ...] = ()

    @property
    def components(self) -> tuple[Component, ...]:
        """Return a blend's components, or the measure itself as the only one."""
        return self.parts or (Component(self),)

    def looks_at(self, direction: str) -> str:
        """Return which links the measure uses for a query in this direction."""
        return opposite(direction) if self.turned else direction

    def checked_way(self, direction: str) -> str:
        """Return ``direction`` if the measure supports it; raises :class:`UsageError`."""
        if self.texts and direction != NO_LINKS:
            raise UsageError(
                f"direction is {direction!r}; {self.name} uses no links: omit direction"
            )
        if direction not in self.directions:
            checked_direction(direction)
            raise UsageError(
                f"direction is {direction!r}; for {self.name} it must be "
                + " or ".join(self.directions)
            )
        return direction

    def build_settings(self, given: Mapping[str, object]) -> WholeSettings:
        """Return all settings of an index, with defaults; raises :class:`UsageError`."""
        return self._filled("building", self.build, given)

    def choose(self, layout: str | None, given: Mapping[str, object]) -> tuple[str, WholeSettings]:
        """Return the layout of an index and all its settings; raises :class:`UsageError`."""
        if layout is not None and layout not in self.layouts:
            raise UsageError(
                f"layout is {layout!r}; for {self.name} it must be " + " or ".join(self.layouts)
            )
        settings = self.build_settings(given)
        if self.chooses is not None:
            return self.chooses(layout, given, settings)
        return layout or self.layouts[0], settings

    def ask_settings(self, given: Mapping[str, object]) -> WholeSettings:
        """Return all settings of a query, with defaults; raises :class:`UsageError`.

        Omits settings without effect: ``meeting_weight`` if it is decay**t, and the decay if no
        component uses it.
        """
        found = self._filled("asking", self.ask, given)
        if not any(MEETING_WEIGHT in component.measure.ask for component in self.components):
            return found
        by = found.get(MEETING_WEIGHT, MEETING_WEIGHT.default)
        left_out = {MEETING_WEIGHT.name} if by == MEETING_WEIGHT.default else set()
        if DECAY in found and not any(c.heeds_decay(by) for c in self.components):
            if DECAY.name in given:
                raise UsageError(
                    f"decay is {found[DECAY]:g}, but meeting_weight does not use it. Omit one of "
                    "the two, or use decay in the expression"
                )
            left_out.add(DECAY.name)
        return found.only(s for s in self.ask if s.name not in left_out)

    def _filled(self, when: str, settings: Takes, given: Mapping[str, object]) -> WholeSettings:
        """Return the settings with defaults; a blend has only defaults that all parts share."""
        known = {setting.name for setting in settings}
        for name in given:
            if name not in known:
                raise UsageError(self._is_unknown(name, when, settings))
        if not self.parts:
            return WholeSettings.checked(settings, given)
        found: dict[str, Value] = {}
        for setting in settings:
            name = setting.name
            values = [
                own.checked(given.get(name, own.default))
                for part in self.parts
                for own in part.free(
                    part.measure.ask if settings is self.ask else part.measure.build
                )
                if own.name == name
            ]
            if all(value == values[0] for value in values) and setting.listed(values[0]):
                found[name] = values[0]
        return WholeSettings(found)

    def _is_unknown(self, name: str, when: str, settings: Takes) -> str:
        if any(setting.name == name for setting in (*self.build, *self.ask)):
            elsewhere = "asking" if when == "building" else "building its index"
            return f"{self.name} takes {name} when {elsewhere}, not here"
        names = ", ".join(setting.name for setting in settings) or "no settings"
        return f"{self.name} has no setting {name!r} when {when}; it takes {names}"


@dataclass(frozen=True)
class Component:
    """A component of an index: the only measure, or one of a blend.

    ``weight`` is its share of the scores, ``label`` the prefix of its files (empty for the only
    component), ``number`` its position. Users cannot change the ``fixed`` settings, nor a
    ``direction`` or ``layout`` that is not None.
    """

    measure: Measure
    weight: float = 1.0
    label: str = ""
    number: int = 0
    fixed: PartSettings = field(default_factory=PartSettings)
    direction: str | None = None
    layout: str | None = None

    def choose(self, layout: str | None, given: Mapping[str, object]) -> tuple[str, PartSettings]:
        """Return the component's layout and build settings, from those of the whole index."""
        found = {**given, **self.fixed.to_json()}
        mine = {s.name: found[s.name] for s in self.measure.build if s.name in found}
        shared = layout if layout in self.measure.layouts else None
        chosen, settings = self.measure.choose(self.layout or shared, mine)
        return chosen, PartSettings(settings.to_json())

    def ask_settings(self, asked: WholeSettings) -> PartSettings:
        """Return the component's query settings, from those of the whole query."""
        found = {**asked.to_json(), **self.fixed.to_json()}
        return PartSettings.checked(self.measure.ask, found)

    def heeds_decay(self, by: str) -> bool:
        """Return whether scores with the meeting weight ``by`` depend on the decay."""
        if DECAY not in self.free(self.measure.ask):
            return False
        return MEETING_WEIGHT not in self.measure.ask or heeds_decay(
            self.fixed.get(MEETING_WEIGHT, by)
        )

    def free(self, settings: Takes) -> Takes:
        """Return the ``settings`` that users can change."""
        return tuple(setting for setting in settings if setting not in self.fixed)


def overall_direction(ways: Set[str]) -> str:
    """Return the direction that all ``ways`` share, ignoring any and NO_LINKS, or ``mixed``."""
    found = ways - {"any", NO_LINKS} or ways - {NO_LINKS} or ways
    return next(iter(found)) if len(found) == 1 else "mixed"
