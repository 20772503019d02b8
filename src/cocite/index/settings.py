"""Settings files: an index's measure, direction, and settings as editable TOML.

    measure = "psimrank"
    direction = "both"              optional, as are layout and unweighted

    [settings]
    samples = 200                   a build setting
    decay = 0.8                     a query setting, stored in the index as the default

``cocite tune`` writes such a file and adds its results as comments; ``cocite index --settings``
reads it. Command-line options override every value except the measure and
``unweighted = true``. Unknown keys are errors.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.errors import InputError, UsageError
from cocite.index.plan import BuildOptions
from cocite.measures import DEFAULT, MEETING_WEIGHT, By, Value, find_measure
from cocite.options import DIRECTIONS

if TYPE_CHECKING:
    from cocite.options.build import IndexOptions

_TEXTS = ("measure", "direction", "layout")
_KEYS = (*_TEXTS, "unweighted", "settings")


@dataclass(frozen=True)
class IndexSettings:
    """The content of a settings file; ``settings`` are build and query settings by name."""

    measure: str = DEFAULT
    direction: str | None = None
    layout: str | None = None
    unweighted: bool = False
    settings: Mapping[str, Value] = field(default_factory=dict)

    @property
    def _split(self) -> tuple[dict[str, Value], dict[str, Value], By | None]:
        """Return the build settings, the query settings, and the meeting weight or None."""
        measure, settings = find_measure(self.measure), dict(self.settings)
        by = settings.get(MEETING_WEIGHT.name)
        asking = {s.name for s in measure.ask} - {s.name for s in measure.build}
        building = {name: value for name, value in settings.items() if name not in asking}
        asked = {n: settings[n] for n in settings if n in asking - {MEETING_WEIGHT.name}}
        return building, asked, None if by is None else str(by)

    def check(self) -> IndexSettings:
        """Return ``self``; raises :class:`UsageError` if a setting is invalid."""
        found = find_measure(self.measure)
        known = {s.name for s in (*found.build, *found.ask)}
        strangers = [name for name in self.settings if name not in known]
        if strangers:
            raise UsageError(
                f"{found.name} has no setting {strangers[0]!r}; its settings are "
                + (", ".join(sorted(known)) or "none")
            )
        building, asked, by = self._split
        texts = "" if found.texts else None  # the file does not contain their path
        chosen: dict[str, Any] = {"meeting_weight": by, "query_defaults": asked, "texts": texts}
        BuildOptions.checked(self.measure, self.direction, self.layout, building, **chosen)
        return self

    def text(self, remarks: Sequence[str] = ()) -> str:
        """Return the file's content, with ``remarks`` as comments at the top."""
        lines = [f"# {remark}".rstrip() for remark in remarks] + [""] * bool(remarks)
        named = {name: getattr(self, name) for name in _TEXTS}
        lines += [f"{name} = {_written(text)}" for name, text in named.items() if text is not None]
        if self.unweighted:
            lines.append("unweighted = true")
        if self.settings:
            lines += ["", "[settings]"]
            lines += [f"{name} = {_written(value)}" for name, value in self.settings.items()]
        return "\n".join(lines) + "\n"


SettingsLike = IndexSettings | str | os.PathLike[str]
"""Settings, or a settings file's path."""


def chosen_options(settings: SettingsLike | None, options: IndexOptions) -> BuildOptions:
    """Return the build options from ``settings``, overridden by ``options``.

    Raises :class:`UsageError` if the two specify different measures.
    """
    measure, given, by = options.measure, options.settings, options.meeting_weight
    chosen = IndexSettings(measure or DEFAULT)
    if isinstance(settings, IndexSettings):
        chosen = settings.check()
    elif settings is not None:
        chosen = read_settings(settings)
    if measure is not None and find_measure(measure).name != find_measure(chosen.measure).name:
        raise UsageError(
            f"the settings are for {chosen.measure}, but the measure is {measure}: omit one of "
            "the two"
        )
    building, asked, weight = chosen._split
    unweighted = options.unweighted or chosen.unweighted
    return BuildOptions.checked(
        chosen.measure,
        options.direction or chosen.direction,
        options.layout or chosen.layout,
        {**building, **given},
        query_defaults={name: value for name, value in asked.items() if name not in given},
        options=replace(
            options, unweighted=unweighted, meeting_weight=weight if by is None else by
        ),
    )


def read_settings(path: str | os.PathLike[str]) -> IndexSettings:
    """Read a settings file.

    Raises :class:`~cocite.errors.InputError` if the file cannot be read or is not TOML, and
    :class:`~cocite.errors.UsageError` if a key, setting or value is invalid.
    """
    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{os.fspath(path)} cannot be read as a settings file: {error}") from error
    try:
        return _checked_settings(content).check()
    except UsageError as error:
        raise UsageError(f"{os.fspath(path)}: {error}") from error


def _checked_settings(content: Mapping[str, object]) -> IndexSettings:
    for key in content:
        if key not in _KEYS:
            raise UsageError(f"unknown key {key!r}; the keys are {', '.join(_KEYS)}")
    if "measure" not in content:
        raise UsageError('measure is missing; add a line such as measure = "psimrank"')
    for key in _TEXTS:
        if not isinstance(content.get(key, ""), str):
            such = {"measure": DEFAULT, "direction": " or ".join(DIRECTIONS)}.get(key, "trees")
            raise UsageError(f"{key} is {content[key]!r}; it must be a string, such as {such}")
    settings, unweighted = content.get("settings", {}), content.get("unweighted", False)
    if not isinstance(unweighted, bool):
        raise UsageError(f"unweighted is {unweighted!r}; it must be true or false")
    if not isinstance(settings, dict):
        raise UsageError("settings is not a table; write [settings], then one setting per line")
    for name, value in settings.items():
        if not isinstance(value, bool | int | float | str):
            raise UsageError(f"{name} is {value!r}; it must be a number, a string, true or false")
    texts = {key: str(content[key]) for key in _TEXTS if key in content}
    return IndexSettings(**texts, unweighted=unweighted, settings=settings)


def _written(value: Value) -> str:
    """Format a value as TOML, which equals JSON for these types."""
    return json.dumps(value, ensure_ascii=False)
