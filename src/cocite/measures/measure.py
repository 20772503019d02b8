"""What a measure is to the rest of the system: a value that says what it is and what it takes.

A *setting* has a name that is the same in every measure, a default, and what is allowed. Those of
the index (``build``) are fixed when it is built, those of a question (``ask``) are chosen when
asking. How scores come about is the business of the layout that holds a measure's index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cocite.engine import MAX_LENGTH, Step
from cocite.errors import UsageError
from cocite.graph.links import opposite

__all__ = [
    "DECAY",
    "HUBS",
    "LENGTH",
    "MAX_SAMPLES",
    "SAMPLES",
    "SEED",
    "Component",
    "Measure",
    "Setting",
    "Settings",
    "Value",
]

Value = bool | int | float | str
Settings = dict[str, Value]
Choice = Callable[[str | None, Mapping[str, object], Settings], tuple[str, Settings]]
"""Which layout, with which settings: from the layout and the settings given, and all settings."""
MAX_SAMPLES = 65_535


@dataclass(frozen=True)
class Setting:
    """One setting. ``low`` and ``high`` bound a number; ``choices`` lists the words allowed.

    The kind is that of the default: a whole number, a number (its bounds excluded if ``open``), a
    yes or no, or a word.
    """

    name: str
    default: Value
    text: str
    low: float = 0
    high: float = math.inf
    open: bool = False
    choices: tuple[str, ...] = ()

    def checked(self, value: object) -> Value:
        """The value as it is stored; raises :class:`UsageError` if it is not allowed."""
        if self._allows(value):
            return float(value) if type(self.default) is float else value  # type: ignore[arg-type,return-value]
        raise UsageError(f"{self.name} is {value!r}; it is {self.allowed}")

    def _allows(self, value: object) -> bool:
        if type(self.default) is bool:
            return type(value) is bool
        if type(self.default) is str:
            return value in self.choices
        kinds = (int,) if type(self.default) is int else (int, float)
        if type(value) not in kinds:
            return False
        assert isinstance(value, int | float)
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    @property
    def allowed(self) -> str:
        """What may stand there, in words."""
        if type(self.default) is bool:
            return "true or false"
        if type(self.default) is str:
            return " or ".join(self.choices)
        if type(self.default) is int:
            return f"a whole number from {self.low} to {self.high}"
        if self.high == math.inf:
            return f"a number, {self.low:g} or more"
        if self.open:
            return f"a number between {self.low:g} and {self.high:g}, both excluded"
        return f"a number from {self.low:g} to {self.high:g}"


SAMPLES = Setting(
    "samples", 100, "independent samples; four times as many halve the error", 1, MAX_SAMPLES
)
LENGTH = Setting("length", 10, "steps of a walk", 1, MAX_LENGTH)
SEED = Setting("seed", 0, "equal seeds give equal samples", 0, 2**64 - 1)
DECAY = Setting("decay", 0.6, "what a step further is worth", 0, 1, open=True)
HUBS = Setting(
    "hubs",
    "plain",
    "plain: all links tell the same; idf or rare: the less, the more links their page has",
    choices=("plain", "idf", "rare"),
)


@dataclass(frozen=True)
class Measure:
    """A measure.

    ``name`` as users type it, one line on what it is, the layouts that can hold it (the first one
    by default), its settings, the step its walks take if it walks, the one they take by weights
    (of links, or with ``hubs``; None if the measure has no such), whether s(u, v) = s(v, u),
    whether scores lie in [0, 1] (``unit``), whether no score falls when the decay is raised
    (``monotone``), whether it follows the weights of links, the ``direction`` it takes unless told
    otherwise, whether it is ``turned``: whether its direction ``in`` looks at out-links; whether
    both directions are one score and not the mean of two (``joint``); the layouts whose scores of
    unlike nodes scatter about 0 (``noisy``), and how layout and settings go together, if they do
    not stand apart (``chooses``).
    """

    name: str
    summary: str
    layouts: tuple[str, ...]
    build: tuple[Setting, ...] = ()
    ask: tuple[Setting, ...] = ()
    step: Step | None = None
    weighted_step: Step | None = None
    symmetric: bool = True
    unit: bool = True
    monotone: bool = True
    weighted: bool = False
    direction: str = "in"
    turned: bool = False
    joint: bool = False
    noisy: tuple[str, ...] = ()
    chooses: Choice | None = None

    @property
    def components(self) -> tuple[Component, ...]:
        """What it is the weighted mean of: itself, unless it is a blend."""
        return (Component(self),)

    def looks_at(self, direction: str) -> str:
        """The links that it compares or follows in a direction: ``in``, ``out`` or ``both``."""
        return opposite(direction) if self.turned else direction

    def build_settings(self, given: Mapping[str, object]) -> Settings:
        """All settings of an index, with defaults; raises :class:`UsageError`."""
        return self._filled(self.build, given)

    def choose(self, layout: str | None, given: Mapping[str, object]) -> tuple[str, Settings]:
        """The layout of an index and all its settings; raises :class:`UsageError`."""
        if layout is not None and layout not in self.layouts:
            raise UsageError(
                f"layout is {layout!r}; for {self.name} it is " + " or ".join(self.layouts)
            )
        settings = self.build_settings(given)
        if self.chooses is not None:
            return self.chooses(layout, given, settings)
        return layout or self.layouts[0], settings

    def ask_settings(self, given: Mapping[str, object]) -> Settings:
        """All settings of a question, with defaults; raises :class:`UsageError`."""
        return self._filled(self.ask, given)

    def _filled(self, settings: tuple[Setting, ...], given: Mapping[str, object]) -> Settings:
        known = {setting.name for setting in settings}
        for name in given:
            if name not in known:
                raise UsageError(self._stranger(name, settings))
        return {s.name: s.checked(given.get(s.name, s.default)) for s in settings}

    def _stranger(self, name: str, settings: tuple[Setting, ...]) -> str:
        when, other = "building", self.ask
        if settings is self.ask:
            when, other = "asking", self.build
        if any(setting.name == name for setting in other):
            elsewhere = "asking" if when == "building" else "building its index"
            return f"{self.name} takes {name} when {elsewhere}, not here"
        names = ", ".join(setting.name for setting in settings) or "no settings"
        return f"{self.name} has no setting {name!r} when {when}; it takes {names}"


@dataclass(frozen=True)
class Component:
    """A measure as what an index is made of: the only one, or one of a blend's.

    ``weight`` is its share of the scores, ``label`` what tells its files from the others', empty if
    there are none, ``number`` its place among them. ``fixed`` are settings, of building and of
    asking, that nobody may choose; ``direction`` and ``layout`` likewise, unless None.
    """

    measure: Measure
    weight: float = 1.0
    label: str = ""
    number: int = 0
    fixed: Settings = field(default_factory=dict)
    direction: str | None = None
    layout: str | None = None

    def choose(self, layout: str | None, given: Mapping[str, object]) -> tuple[str, Settings]:
        """Its own layout and settings of an index, out of those of the whole."""
        names = {setting.name for setting in self.measure.build}
        mine = {name: value for name, value in (dict(given) | self.fixed).items() if name in names}
        shared = layout if layout in self.measure.layouts else None
        return self.measure.choose(self.layout or shared, mine)

    def ask_settings(self, given: Mapping[str, object]) -> Settings:
        """Its own settings of a question, out of those of the whole."""
        return self._own(self.measure.ask, given)

    def free(self, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
        """Those of its ``settings`` that are not fixed."""
        return tuple(setting for setting in settings if setting.name not in self.fixed)

    def _own(self, settings: tuple[Setting, ...], given: Mapping[str, object]) -> Settings:
        found = {**given, **self.fixed}
        return {s.name: s.checked(found.get(s.name, s.default)) for s in settings}
