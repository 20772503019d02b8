"""Options for the settings of measures, made from the measures' own tables.

Measures share the names of their settings; an option says which measures take it, and what they
take by default. What is not given is left to the measure, and what a measure does not have it
refuses itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from cocite.cli.options import Sectioned
from cocite.graph.links import DIRECTIONS
from cocite.measures import MEASURES, Measure, Setting, Value
from cocite.measures.measure import Takes

__all__ = ["SETTINGS", "all_options", "ask_options", "build_options", "given", "measure_options"]

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
_SETTING = "setting_"
"""What the commands' parameters begin with: a setting may be called what an option is called."""
SETTINGS = "Settings of the measure"
"""The title under which they stand in a verb's help."""


def given(parameters: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given on the command line; the rest is the measure's to choose."""
    return {
        name.removeprefix(_SETTING): value
        for name, value in parameters.items()
        if name.startswith(_SETTING) and value is not None
    }


_MEASURE: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "--measure",
        metavar="NAME",
        default="psimrank",
        show_default=True,
        help="What similar means: "
        + ", ".join(MEASURES)
        + "; or a weighted mean, such as blend:psimrank+cocitation (see: cocite measures).",
    ),
    click.option(
        "--direction",
        metavar=f"[{'|'.join(DIRECTIONS)}]",
        help="Pages are similar if similar pages link to them (in), if they link to similar pages "
        "(out: the measure of the graph turned round), or the mean of both.  [default: in"
        + "".join(f", {m.name} {m.direction}" for m in MEASURES.values() if m.direction != "in")
        + "]",
    ),
    click.option(
        "--layout",
        metavar="NAME",
        help="How the index lies on disk, where a measure has a choice (see: cocite measures).",
    ),
)


def measure_options(command: Command) -> Command:
    """Add ``--measure``, ``--direction`` and ``--layout``: what an index is of."""
    for option in reversed(_MEASURE):
        command = option(command)
    return command


def build_options(command: Command) -> Command:
    """Add ``--samples``, ``--length``, ...: what an index is built with."""
    return _add(command, lambda measure: measure.build, SETTINGS)


def ask_options(command: Command) -> Command:
    """Add ``--decay``, ...: what is chosen when asking."""
    return _add(command, lambda measure: measure.ask, SETTINGS)


def all_options(asked: bool, title: str) -> Decorator:
    """Add either those of all settings that any measure takes when asking, or the others."""
    names = {setting.name for measure in MEASURES.values() for setting in measure.ask}

    def chosen(measure: Measure) -> Takes:
        return tuple(s for s in measure.build + measure.ask if (s.name in names) == asked)

    return lambda command: _add(command, chosen, title)


def _add(command: Command, settings: Callable[[Measure], Takes], title: str) -> Command:
    takers: dict[str, list[tuple[str, Setting[Value]]]] = {}
    for measure in MEASURES.values():
        for setting in settings(measure):
            takers.setdefault(setting.name, []).append((measure.name, setting))
    for name, found in reversed(takers.items()):
        command = _option(name, found, title)(command)
    return command


def _option(name: str, takers: list[tuple[str, Setting[Value]]], section: str) -> Decorator:
    setting = takers[0][1]
    flag = "--" + name.replace("_", "-")
    sentence = setting.text[0].upper() + setting.text[1:] + "."
    if len(takers) < len(MEASURES):
        sentence += " For " + ", ".join(measure for measure, _ in takers) + "."
    for measure, other in takers:
        if set(other.choices) != set(setting.choices):
            sentence += f" {measure} takes {' or '.join(other.choices)}."
    if type(setting.default) is bool:
        return click.option(
            flag,
            _SETTING + name,
            cls=Sectioned,
            section=section,
            is_flag=True,
            default=None,
            help=sentence,
        )
    kind: Any = click.Choice(setting.choices) if setting.choices else type(setting.default)
    defaults = {str(s.default): measure for measure, s in reversed(takers)}
    usual = str(setting.default)
    others = [f"{measure} {value}" for value, measure in defaults.items() if value != usual]
    help_text = f"{sentence}  [default: {', '.join([usual, *others])}]"
    return click.option(
        flag,
        _SETTING + name,
        cls=Sectioned,
        section=section,
        type=kind,
        default=None,
        help=help_text,
    )
