"""Settings: what may be chosen, and what was chosen, checked once and read by its kind.

A *setting* has a name that means the same in every measure, a default, and what is allowed. Its
kind is that of its default, and values are read by setting, not by name:

    settings[DECAY]        a float; to mypy, too

The settings of a *whole*, an index or a question to it, are what was chosen for all that it is made
of. Those of a *part* are the ones that its measure takes, with what is fixed for it in a blend.
They are two types, so that whoever answers for one part cannot be handed those of the whole: only
:class:`~cocite.measures.measure.Component` makes the latter of the former.

Where names are typed or stored (Python's keywords, the command line, JSON) they are plain
dictionaries: ``to_json`` on the way out, ``checked`` on the way in.
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
    """An option of a measure. Numbers are 0 or more unless ``low`` says otherwise.

    One that is ``late`` came after indexes without it: manifests and answers name it only where it
    is not its default, so that what was written before stays as it is.

    ``by_links`` says what 0 stands for, the default then, in a graph of so many links. So many
    times the value makes intervals ``narrower``.
    """

    low: float = 0
    late: bool = False
    by_links: Callable[[int], int] | None = None
    narrower: float = 0

    def listed(self, value: Value) -> bool:
        """Return whether a value is named where settings are listed."""
        return not (self.late and value == self.default)


@dataclass(frozen=True)
class Settings:
    """Values by their settings; as :class:`WholeSettings` or :class:`PartSettings`."""

    _values: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def checked(cls, settings: Iterable[Setting[Value]], given: Mapping[str, object]) -> Self:
        """All of ``settings``, as they are given by name or else by default.

        Raises :class:`UsageError` for a value that is not allowed; other names are left aside.
        """
        found = {s: s.checked(given.get(s.name, s.default)) for s in settings}
        return cls({s.name: value for s, value in found.items() if s.listed(value)})

    def __getitem__(self, setting: Setting[Kind]) -> Kind:
        if setting.late and setting.name not in self._values:
            return setting.default
        return self._values[setting.name]  # type: ignore[return-value]  # as it was checked

    def __contains__(self, setting: Setting[Value]) -> bool:
        return setting.name in self._values

    def get(self, setting: Setting[Kind], default: Other) -> Kind | Other:
        """The value, or ``default`` if the setting is not among them."""
        if setting not in self:
            return default
        return self[setting]

    def changed(self, setting: Setting[Kind], value: object) -> Self:
        """The same with another value; raises :class:`UsageError` if it is not allowed."""
        found = {**self._values, setting.name: setting.checked(value)}
        if not setting.listed(found[setting.name]):
            del found[setting.name]
        return type(self)(found)

    def of_graph(self, settings: Iterable[Setting[Value]], links: int) -> Self:
        """The same for a graph of so many links: with what 0 stands for there, where it does."""
        found = {
            s.name: s.by_links(links)
            for s in settings
            if s.by_links is not None and self._values.get(s.name) == 0
        }
        return type(self)({**self._values, **found}) if found else self

    def only(self, settings: Iterable[Setting[Value]]) -> Self:
        """Those of ``settings`` that are among them."""
        return type(self)({s.name: self[s] for s in settings if s in self})

    def to_json(self) -> dict[str, Value]:
        """By name, as manifests hold them and users see them."""
        return dict(self._values)


class WholeSettings(Settings):
    """What was chosen for a whole: for all components of an index, or of a question to it.

    Of a blend: what is given, and the defaults on which its components agree.
    """


class PartSettings(Settings):
    """What one measure takes, as a whole or as a component of a blend."""


MAX_SAMPLES = 65_535

SAMPLES = Setting(
    "samples", 100, "how many samples to draw; four times as many halve the error", 1, MAX_SAMPLES
)
LENGTH = Setting("length", 10, "how many steps a walk takes at most", 1, MAX_LENGTH)
SEED = Setting(
    "seed", 0, "where the random numbers start; equal seeds give equal samples", 0, 2**64 - 1
)
DECAY = Setting(
    "decay", 0.6, "how much a step counts, compared with the step before it", 0, 1, open=True
)
HUBS = Setting(
    "hubs",
    "plain",
    "plain: every link counts the same; idf: a link counts less if its page has many links; rare: "
    "much less",
    choices=("plain", "idf", "rare"),
)
IN_SHARE = Setting(
    "in_share",
    0.5,
    "the share of steps, in both directions, that go along in-links; the others go along out-links",
    0,
    1,
)
EVIDENCE = Setting(
    "evidence",
    "none",
    "multiply scores by how much it tells that two pages share n neighbors, for which the graph "
    "is read: geometric is 1 - 2^-n, exponential is 1 - e^-n; none leaves them as they are",
    choices=("none", "geometric", "exponential"),
    late=True,
)
