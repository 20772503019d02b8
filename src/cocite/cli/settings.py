"""Options for the settings of measures, made from the measures' own tables.

Measures share the names of their settings; an option says which measures take it, and what they
take by default. What is not given is left to the measure, and what a measure does not have it
refuses itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cocite.cli.help import SETTING, Sectioned
from cocite.cli.options import names_in
from cocite.errors import InputError
from cocite.measures import MEASURES, MEETING_WEIGHT, Measure, Setting, Value
from cocite.measures.measure import Takes

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
SETTINGS = "Settings of the measure"
"""The title under which they stand in a command's help."""


_FROM_FILE = "The name of a FILE stands for what is in it: a number for each step, one a line."


class _MeetingType(click.ParamType):  # type: ignore[type-arg]
    """What a meeting is worth, or the name of a file that says it."""

    name = "meeting_weight"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What stands behind ``--meeting-weight``."""
        return "FILE|hitting|EXPR"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | list[float]:
        """The numbers of a file; else the text, which is looked at where its walks are known."""
        return value if value == "hitting" or not Path(value).is_file() else _numbers_in(value)


def _numbers_in(path: str) -> list[float]:
    try:
        return [float(line) for line in names_in(Path(path))]
    except ValueError as error:
        raise InputError(
            f"{path}: {error}; it is to hold a number from 0 to 1 for each step, one a line"
        ) from error


MEETING = _MeetingType()


def chosen_settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given on the command line; the rest is the measure's to choose."""
    return {
        name.removeprefix(SETTING): value
        for name, value in parameters.items()
        if name.startswith(SETTING) and value is not None
    }


def _default(defaults: dict[str, Any]) -> str:
    """``0.6; 0.5 for pagesim``: what the first measure takes, and those that differ."""
    usual, *others = dict.fromkeys(defaults.values())
    named = [
        f"{value} for {', '.join(name for name in defaults if defaults[name] == value)}"
        for value in others
    ]
    return "; ".join([str(usual), *named])


def with_settings(add: Decorator, into: str = "") -> Decorator:
    """Give a command the settings of measures that ``add`` adds: as ``settings``, by name, or as
    those of the options that the command receives as ``into``.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(*args: Any, **parameters: Any) -> Any:
            names = [name for name in parameters if name.startswith(SETTING)]
            settings = chosen_settings({name: parameters.pop(name) for name in names})
            if into:
                chosen = replace(parameters.pop(into), settings=settings)
                return command(*args, **parameters, **{into: chosen})
            return command(*args, **parameters, settings=settings)

        return add(call)

    return decorate


def build_options(command: Command) -> Command:
    """Add ``--samples``, ``--length``, ...: what an index is built with."""
    return _add(command, lambda measure: measure.build, SETTINGS)


def ask_options(command: Command) -> Command:
    """Add ``--decay``, ...: what is chosen when asking."""
    return _add(command, lambda measure: measure.ask, SETTINGS)


def all_options(command: Command) -> Command:
    """Add all settings: those of an index, and below them those of questions. An option that one
    measure takes when building and another one when asking is among the latter.
    """
    asked = {setting.name for measure in MEASURES.values() for setting in measure.ask}

    def chosen(when_asking: bool) -> Callable[[Measure], Takes]:
        return lambda measure: tuple(
            s for s in measure.build + measure.ask if (s.name in asked) == when_asking
        )

    command = _add(command, chosen(True), f"{SETTINGS} when asking")
    return _add(command, chosen(False), f"{SETTINGS} when building")


def graph_options(title: str) -> Decorator:
    """Add what a graph or a file of links takes that is asked without an index of one's own: how
    its samples are drawn, or how the index is built that is kept of it.
    """
    asked = {setting.name for measure in MEASURES.values() for setting in measure.ask}
    return lambda command: _add(
        command,
        lambda measure: (
            () if measure.texts else tuple(s for s in measure.build if s.name not in asked)
        ),
        title,
    )


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
    sentence = _words(takers)
    if type(setting.default) is bool:
        return click.option(
            flag,
            SETTING + name,
            cls=Sectioned,
            section=section,
            is_flag=True,
            default=None,
            help=sentence,
        )
    choices = list(dict.fromkeys(choice for _, each in takers for choice in each.choices))
    kind: Any = click.Choice(choices, case_sensitive=False) if choices else type(setting.default)
    if name == MEETING_WEIGHT.name:
        kind, sentence = MEETING, f"{sentence} {_FROM_FILE}"
    help_text = f"{sentence}  [default: {_default({m: s.default for m, s in takers})}]"
    return click.option(
        flag,
        SETTING + name,
        cls=Sectioned,
        section=section,
        type=kind,
        default=None,
        help=help_text,
    )


def _words(takers: list[tuple[str, Setting[Value]]]) -> str:
    """What a setting does, in the words of the measures that take it."""
    names: dict[str, list[str]] = {}
    for measure, setting in takers:
        names.setdefault(setting.text, []).append(measure)
    if len(names) > 1:
        return " ".join(f"For {', '.join(those)}: {text}." for text, those in names.items())
    (text,) = names
    sentence = text[0].upper() + text[1:] + "."
    if len(takers) < len(MEASURES):
        sentence += " For " + ", ".join(names[text]) + "."
    return sentence
