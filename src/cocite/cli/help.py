"""Help of a command: on one screen (``--help``), or in full (``--help-all``).

Help that does not fit on a screen shows one line per option, with the first sentence of its
description. It lists only the settings of one measure: the measure of the given index (``cocite
related web.index --help``), the one given by ``--measure`` or, for links, graphs and commands that
build, the default.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from cocite.errors import CociteError

if TYPE_CHECKING:
    from cocite.measures import Measure


SETTING = "setting_"
"""Prefix of parameters for settings, because an option may have the same name."""
_SCREEN = 46
"""Number of lines from which help is shortened."""
_NAMED = 24
"""Maximum width of option names; wider ones have their values after the description."""
_SHORT = 12
"""Maximum length of a default at the end of a line."""
_PART = 15
"""Minimum length of a clause that may replace its sentence."""
_ARGUMENTS = "cocite.arguments"
_WHOLE = "cocite.help.whole"
_Line = tuple[str, str, str]
"""An option's names, its description, and its values or default."""


class Sectioned(click.Option):
    """An option in a titled section of a :class:`SectionedCommand`'s help."""

    def __init__(self, *declarations: Any, section: str, brief: bool = True, **more: Any) -> None:
        """Create the option; ``brief`` adds it to the short help."""
        super().__init__(*declarations, **more)
        self.section, self.brief = section, brief


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_WHOLE] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _titled(option: click.Option) -> str:
    return option.section if isinstance(option, Sectioned) else "Options"


class SectionedCommand(click.Command):
    """A command whose help lists untitled options first, then titled sections."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the arguments for the help, which depends on them."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters, including ``--help-all``."""
        *others, last = super().get_params(ctx)
        whole = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show all options, each with its full help.",
        )
        return [*others, whole, last]

    def get_help(self, ctx: click.Context) -> str:
        """Return the full help if requested or if it fits the screen, otherwise the short one."""
        whole = super().get_help(ctx)
        if ctx.meta.get(_WHOLE) or whole.count("\n") < _SCREEN:
            return whole
        return self._short(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all options by section."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = _record(ctx, parameter)
            if isinstance(parameter, click.Option) and record is not None:
                sections.setdefault(_titled(parameter), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    # -- on one screen ---------------------------------------------------------------------

    def _short(self, ctx: click.Context) -> str:
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join((self.help or "").split("\n\n", 1)[0].split()))
        measure, indexed = _measure_of(ctx)
        sections: dict[str, list[_Line]] = {"Options": []}
        settled = False
        for option in self.get_params(ctx):
            if not isinstance(option, click.Option) or option.hidden:
                continue
            settled |= str(option.name).startswith(SETTING)
            eager = option.is_eager and option.is_flag and not option.expose_value
            if eager or (isinstance(option, Sectioned) and not option.brief):
                continue  # --help needs no line, and --help-all is named below
            name = str(option.name)
            if name.startswith(SETTING):
                line = _of_measure(option, name.removeprefix(SETTING), measure, indexed)
                if line is not None and measure is not None:
                    sections.setdefault(f"Settings of {measure.name}", []).append(line)
            elif not (indexed and "GRAPH" in _titled(option)):
                sections.setdefault(_titled(option), []).append(_line_of(ctx, option))
        room = (formatter.width or 80) - 2
        for title, lines in sections.items():
            width = min(_NAMED, max((len(names) for names, _, _ in lines), default=0))
            with formatter.section(title):
                for names, sentence, values in lines:
                    start = f"{names:<{width}}  "
                    text = _cut(sentence, max(room - len(start) - len(values), 0)) + values
                    if "..." in text:  # the description matters more than the values
                        text = _cut(sentence, room - len(start))
                    formatter.write(f"  {start}{text}".rstrip() + "\n")
        formatter.write_paragraph()
        formatter.write(f"Full help: {ctx.command_path} --help-all")
        if settled:
            formatter.write(" (settings: cocite measures NAME)")
            if measure is None:
                formatter.write(f"\nSettings of an index: {ctx.command_path} INDEX --help")
        return formatter.getvalue().rstrip("\n")


def _measure_of(ctx: click.Context) -> tuple[Measure | None, bool]:
    """Return the measure whose settings apply, or None, and whether an index fixes it."""
    from cocite.measures import DEFAULT, find_measure
    from cocite.storage import Manifest, kind_of

    given: tuple[str, ...] = ctx.meta.get(_ARGUMENTS, ())
    try:
        for path in given:
            if kind_of(path) == "index":
                from pathlib import Path

                return find_measure(Manifest.read(Path(path), "index").facts["measure"]), True
        named = re.search(r"(?:^|\n)--measure[=\n]([^\n]+)", "\n".join(given))
        if named:
            return find_measure(named[1]), False
    except (CociteError, KeyError):
        return None, False
    links = any(os.path.isfile(path) or kind_of(path) == "graph" for path in given)
    asks = any(p.name == "index" and isinstance(p, click.Argument) for p in ctx.command.params)
    return (find_measure(DEFAULT) if links or not asks else None), False


def _of_measure(
    option: click.Option, name: str, measure: Measure | None, indexed: bool
) -> _Line | None:
    takes = () if measure is None else measure.ask if indexed else (*measure.build, *measure.ask)
    for setting in takes:
        if setting.name == name:
            text = setting.text[0].upper() + setting.text[1:]
            if option.is_flag:
                return option.opts[0], text, ""
            values = " or ".join(setting.choices) or setting.default
            return f"{option.opts[0]} VALUE", text, f"  [{values}]"
    return None


def _line_of(ctx: click.Context, option: click.Option) -> _Line:
    names, text = _record(ctx, option) or ("", "")
    found = re.search(r"\[default: ([^\];]+)\]", text)
    values = f"  [{found[1]}]" if found and len(found[1]) <= _SHORT else ""
    if len(names) > _NAMED:
        words = re.search(r"\[(.+)\]$", names)
        names = ", ".join(option.opts)
        values = f"  [{words[1]}]" if words else values
    sentence = text.partition(". ")[0].partition("  [default")[0].rstrip(".")
    return names, sentence, values


def _record(ctx: click.Context, parameter: click.Parameter) -> tuple[str, str] | None:
    """Return click's names and description of an option, with short names for number types."""
    record = parameter.get_help_record(ctx)
    if record is None:
        return None
    names = re.sub(r" INTEGER( RANGE)?$", " N", record[0])
    names = re.sub(r" FLOAT( RANGE)?$", " X", names)
    text = re.sub(r"(; )?[0-9]*(<=|<)?x(>=|<=)[0-9]+\]$", "]", record[1]).replace("  []", "")
    return names, text


def _cut(text: str, width: int) -> str:
    """Cut a text to ``width`` columns, after a clause or else after a word."""
    if len(text) <= width:
        return text
    for sign in ("; ", ": ", " (", ", "):
        if (end := text.rfind(sign, _PART, width + len(sign))) > 0:
            return text[:end]
    return text[: max(width - 3, 10)].rsplit(" ", 1)[0].rstrip(",;:") + "..."
