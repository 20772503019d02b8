"""The reference of the command line as pages: one for each command, an anchor for each option.

``conf.py`` writes them to ``docs/reference/commands`` before Sphinx reads its sources, from the
same options that ``--help-all`` prints. Git ignores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

_MARKUP = re.compile(r"([\\`*_\[\]<>#|{}])")
_FLAG = re.compile(r"(?<![\w`-])(--?(?:[a-z][-a-z0-9]*)?)(?![\w-])")


class _Recorder(click.HelpFormatter):
    """A formatter that keeps the sections of a help and their options, and prints nothing."""

    def __init__(self) -> None:
        super().__init__(width=100)
        self.sections: list[tuple[str, list[tuple[str, str]]]] = []

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        self.sections.append((name, []))
        yield

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        self.sections[-1][1].extend(rows)


def prose(text: str) -> str:
    """Return text of a help as Markdown: names of options as code, nothing else as markup."""
    parts = _FLAG.split(" ".join(text.split()))
    return "".join(
        f"`{part}`" if n % 2 else _MARKUP.sub(r"\\\1", part) for n, part in enumerate(parts)
    )


def _body(command: click.Command, ctx: click.Context, path: str, level: str) -> Iterator[str]:
    yield f"```text\n{path} {' '.join(command.collect_usage_pieces(ctx))}\n```"
    for paragraph in (command.help or "").replace("\b", "").split("\n\n"):
        yield prose(paragraph)
    recorder = _Recorder()
    command.format_options(ctx, recorder)
    yield f"```{{program}} {path}\n```"
    for title, options in recorder.sections:
        if not options or (title == "Commands"):
            continue
        yield f"{level} {title}"
        for names, text in options:
            yield f"````{{option}} {names}\n{prose(text)}\n````"
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield f"{level} {path} {name}"
            inner = click.Context(each, info_name=name, parent=ctx)
            yield from _body(each, inner, f"{path} {name}", f"{level}#")


def page(verb: str, command: click.Command, top: click.Context) -> str:
    """Return the page of a command, in Markdown."""
    ctx = click.Context(command, info_name=verb, parent=top)
    path = f"cocite {verb}"
    return "\n\n".join([f"# {path}", *_body(command, ctx, path, "##")]) + "\n"


def write_pages(folder: Path) -> list[str]:
    """Write a page for each command to ``folder``, where it differs; return the commands."""
    from cocite.cli.main import cli

    folder.mkdir(parents=True, exist_ok=True)
    top = click.Context(cli, info_name="cocite")
    verbs = cli.list_commands(top)
    for verb in verbs:
        command = cli.get_command(top, verb)
        assert command is not None
        path, text = folder / f"{verb}.md", page(verb, command, top)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    for path in folder.glob("*.md"):
        if path.stem not in verbs:
            path.unlink()
    return verbs
