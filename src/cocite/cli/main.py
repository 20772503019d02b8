"""``cocite``: the command group, which imports each command on use and reports its errors.

Exit codes: 0 done, 1 failed, 2 wrong use or unknown node, 130 interrupted.
"""

from __future__ import annotations

import io
import logging
import os
import re
import shlex
import signal
import sys
from importlib import import_module
from typing import cast

import click

from cocite import __version__
from cocite.cli import CACHED, COMPLETE, GIVEN
from cocite.cli.console import CONSOLE, LOG_JSON, QUIET, printable
from cocite.errors import CociteError, Damaged, UnknownNode
from cocite.progress import turn
from cocite.resources import note_low_memory

_COMMANDS = {
    "ingest": ("ingest", "Turn edge lists into a stored graph."),
    "generate": ("ingest", "Generate a web-like graph of any size."),
    "info": ("info", "Show what a stored graph or index contains."),
    "nodes": ("info", "Find nodes by part of their names."),
    "tune": ("evaluate", "Find the best measure and settings for a graph."),
    "index": ("index", "Build the index that answers queries."),
    "plan": ("index", "Estimate the size, time and accuracy of an index."),
    "merge": ("index", "Merge indexes of one graph with different samples or nodes."),
    "refresh": ("index", "Update an index to a graph that has changed."),
    "measures": ("index", "List the measures and their settings."),
    "related": ("related", "List the nodes most related to a node."),
    "related-all": ("related_all", "Write the most related nodes of every node to a file."),
    "watch": ("site", "Keep answers fresh while files change."),
    "site": ("site", "Insert related pages into a folder of HTML pages."),
    "similarity": ("similarity", "Print how similar two nodes are, or many pairs."),
    "all-pairs": ("exact", "Compute the exact similarity of all pairs of nodes."),
    "why": ("why", "Show which pages make two nodes similar."),
    "serve": ("serve", "Answer queries over HTTP."),
    "mcp": ("serve", "Answer AI assistants (Model Context Protocol)."),
    "rank": ("exact", "Compute the PageRank of every node."),
    "evaluate": ("evaluate", "Measure the quality of answers by labels and texts."),
    "verify": ("info", "Check every byte of a stored graph or index."),
    "cache": ("info", "Clear the cache of edge lists and remote stores."),
    "cluster": ("cluster", "Start local cluster nodes, or show the nodes of a cluster."),
    "completion": ("completion", "Set up shell completion of commands, options and names."),
    "help": ("completion", "Show the help of a command."),
}


class StoredPath(click.Path):
    """A path. The URL of a stored graph or index is replaced with the path of a local copy."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return ``value``, or a local copy's path if it is the URL of a store."""
        if isinstance(value, str) and "://" in value:
            from cocite.cli.inputs import graph_url

            if graph_url(value) is not None:
                from cocite.io.remote import copied

                return str(copied(value))
        return super().convert(value, param, ctx)


_STORES = {"GRAPH", "INDEX"}
_BY_URL = {"index", "refresh", "ingest"}
"""Commands that receive the URL itself, to pass to cluster nodes or to update the store there."""
_PATHS = {"DIR", "FILE", "FILES", "FOLDER", "GRAPH", "INDEX", "LINKS", "OUTPUT"}


_SAID = (
    click.option(
        *QUIET,
        is_flag=True,
        expose_value=False,
        help="On standard error, print only warnings and errors, no progress or notes.",
    ),
    click.option(
        LOG_JSON,
        is_flag=True,
        expose_value=False,
        help="Print notes, progress, warnings and errors as JSON: one object per line, with time, "
        "level and message.",
    ),
)
"""Options accepted before and after the name of every command; see :class:`Console`."""


def _also_here(command: click.Command) -> None:
    """Add the common options, hidden, to a command and its subcommands."""
    if not any(QUIET[1] in parameter.opts for parameter in command.params):
        for option in _SAID:
            option(command)
            command.params[-1].hidden = True  # type: ignore[attr-defined]  # it is an option
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _also_here(each)


class _LazyGroup(click.Group):
    """Commands in the order of typical use, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"cocite.cli.commands.{_COMMANDS[cmd_name][0]}")
        command = cast(click.Command, getattr(module, cmd_name.replace("-", "_")))
        _also_here(command)
        for parameter in command.params:
            words = set(re.findall(r"[A-Z]+", parameter.metavar or ""))
            if parameter.type is click.STRING and words & _PATHS:
                # For completion, and for URLs of stores; commands check paths when they open them.
                kind = StoredPath if words & _STORES and cmd_name not in _BY_URL else click.Path
                parameter.type = kind(readable=False, allow_dash=True)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command. For an unknown name, suggest commands; for a file, a command line."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            if os.path.exists(args[0]):
                asked = shlex.join(["cocite", "related", *args])
                page = " PAGE" * (len(args) == 1)
                ctx.fail(f"{args[0]!r} is a file, not a command. To query it: {asked}{page}")
            from difflib import get_close_matches

            near = get_close_matches(args[0], _COMMANDS)
            like = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{like}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


_CODES = (
    "Exit codes: 0 done. 1 failed: a file is missing, damaged or malformed, an output already "
    "exists, or memory or disk space is insufficient. 2 wrong use: an invalid option, an unknown "
    "node, or a file of the wrong kind. 130 interrupted."
)


@click.group(
    cls=_LazyGroup,
    epilog=_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, "-V", "--version", prog_name="cocite")
@_SAID[0]
@_SAID[1]
@click.pass_context
def cli(context: click.Context) -> None:
    """Given a page, find the related pages, from links alone.

    \b
    cocite related links.tsv PAGE       one link per row: source, target

    It caches an index of the file. For more control, run three commands:

    \b
    cocite ingest links.tsv -o web.graph
    cocite index web.graph -o web.index
    cocite related web.index PAGE
    """  # noqa: D301 - click wants the backspace itself
    if context.invoked_subcommand is None:
        click.echo(_BEGIN)


_BEGIN = """\
cocite related links.tsv PAGE   the pages most related to PAGE; a row of links.tsv: source, target
cocite why links.tsv PAGE HIT   the pages that make two pages related
cocite --help                   all commands: larger graphs, other measures, ranks, evaluation"""


_NOWHERE = click.Context(cli)


class _Log(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        CONSOLE.say(record.getMessage(), "warning" if record.levelno >= logging.WARNING else "info")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    # cli.main would treat a closed pipe as an error.
    given = sys.argv[1:] if arguments is None else list(arguments)
    CONSOLE.choose(given)
    log = logging.getLogger("cocite")
    handler, before = _Log(logging.INFO), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    shown = turn(False)  # commands show their progress themselves
    try:
        if arguments is None and COMPLETE in os.environ:
            from cocite.cli.commands.completion import answer

            return answer(cli, os.environ[COMPLETE])
        return _run(given)
    finally:
        turn(shown)
        log.setLevel(before)
        log.removeHandler(handler)


def _run(given: list[str]) -> int:
    try:
        _invoke(given)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        if type(error) is click.BadParameter:
            error = click.BadParameter(_plain(error), error.ctx, error.param)
        if isinstance(error, click.NoSuchOption) and (hint := _of_ingest(error)):
            error = click.UsageError(hint, error.ctx)
        if CONSOLE.as_json:
            CONSOLE.say(error.format_message(), "error", code=error.exit_code)
        else:
            usage = io.StringIO()
            error.show(usage)
            print(printable(usage.getvalue()), end="", file=sys.stderr, flush=True)
        return error.exit_code
    except CociteError as error:
        if isinstance(error, UnknownNode):
            if len(error.titled) == 1 == given.count(str(error.name)):  # the user typed its title
                node = error.titled[0][0]
                words = [node if word == error.name else word for word in given]
                error.add_note(f"Type: {shlex.join(['cocite', *words])}")
            if os.path.isfile(str(error.name)) and str(error.name) in given:
                error.add_note(
                    "To query several edge lists, pass a pattern in quotation marks, such as "
                    "'links/*.tsv'"
                )
        message = ". ".join([_by_option(given, str(error)), *getattr(error, "__notes__", [])])
        CONSOLE.say(message, "error", code=error.exit_code)
        return error.exit_code
    except KeyboardInterrupt as stopped:
        CONSOLE.interrupted("".join(f"; {note}" for note in getattr(stopped, "__notes__", [])))
        return 130
    except BrokenPipeError:
        # A closed pipe is not an error: discard the buffered output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError, ImportError) as error:
        short = note_low_memory(error)
        if not short and isinstance(error, ImportError):
            raise
        CONSOLE.say(short or str(error), "error", code=1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _invoke(given: list[str], again: bool = True) -> None:
    """Run a command; if its cached data is damaged, delete the data and rerun it if ``again``."""
    with cli.make_context("cocite", list(given)) as context:
        context.meta[GIVEN] = given
        try:
            cli.invoke(context)
        except Damaged as error:
            folder, source = context.meta.get(CACHED, (None, ""))
            if folder is None or not again:
                raise
            from cocite.search.cache import evict

            evict(folder)
            if any(word == "-" or word.endswith("=-") for word in given):
                error.add_note("Repeat the command to rebuild it")
                raise
            CONSOLE.say(f"{source}: its cached data is damaged; rebuilding it")
        else:
            return
    _invoke(given, again=False)


def _plain(error: click.BadParameter) -> str:
    """Return click's message, reworded if it is about a number."""
    kind = getattr(error.param, "type", None)
    value, wrong, _ = error.message.partition(" is not ")
    if not wrong or not isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return error.message
    what = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is not None:
        what += f", {low} or more" if high is None else f" from {low} to {high}"
    return f"it must be {what}, not {value}"


def _by_option(given: list[str], message: str) -> str:
    """Replace a Python parameter at the start of a message with the command's flag."""
    keyword, space, rest = message.partition(" ")
    command: click.Command | None = cli
    for word in given:
        if isinstance(command, click.Group) and word in command.list_commands(_NOWHERE):
            command = command.get_command(_NOWHERE, word)
    for parameter in command.params if command else ():
        if parameter.name in (keyword, f"setting_{keyword}") and parameter.opts[0].startswith("-"):
            return max(parameter.opts, key=len) + space + rest
    return message


def _of_ingest(error: click.NoSuchOption) -> str | None:
    """Return advice if the option belongs to ``cocite ingest``, or None."""
    from cocite.cli.commands.ingest import ingest

    known = {name for option in ingest.params for name in option.opts}
    if error.option_name not in known:
        return None
    return (
        f"{error.option_name} is an option of cocite ingest: cocite ingest LINKS -o GRAPH "
        f"{error.option_name} ..., then cocite index GRAPH -o INDEX, and query INDEX"
    )


def run() -> None:
    """Run the console script; treat SIGTERM like Ctrl-C, and escape unencodable output."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main()
    except KeyboardInterrupt:  # outside main's own handler
        CONSOLE.interrupted()
        code = 130
    sys.exit(code)
