"""``cocite completion``: scripts that let shells complete commands, options and node names.
``cocite help``: the help of a command.

Node names can contain blanks, quotes and colons. zsh and fish quote what they insert. bash does
not, and splits words at some characters, so its script passes the line as typed. The program
removes everything up to the last word break; the script quotes the rest.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from cocite.cli import COMPLETE
from cocite.errors import CociteError

_SHELLS = {
    "bash": 'eval "$(cocite completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(cocite completion zsh)"   in ~/.zshrc',
    "fish": "cocite completion fish | source   in ~/.config/fish/config.fish",
}
_OFFERED = 50


_BREAKS = ":=@"
"""Characters in names that bash treats as word breaks (COMP_WORDBREAKS)."""


@add_completion_class
class _Bash(BashComplete):
    """Completion for bash, which splits and quotes differently."""

    source_template = r"""
%(complete_func)s() {
    local found word="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    while IFS= read -r found; do
        case $found in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            plain,*)
                found=${found#plain,}
                case $word in
                    \"*|\'*) ;;
                    *) printf -v found %%q "$found" ;;
                esac
                COMPREPLY+=("$found") ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="$word" \
        COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the current one, and the current one."""
        # Append a character, so that a last word exists even if it is empty or in an open quote.
        *words, last = split_arg_string(os.environ["COMP_LINE"] + "x")[1:]
        begun = last[:-1]
        quoted = os.environ.get("COMP_WORD", "").startswith(("'", '"'))
        breaks = "" if quoted else os.environ.get("COMP_WORDBREAKS", "")
        ends = [begun.rfind(sign) + 1 for sign in _BREAKS if sign in breaks]
        self._before = begun[: max(ends, default=0)]
        return words, begun

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for bash: the kind, a comma, and the text to insert."""
        return f"{item.type},{item.value.removeprefix(self._before)}"


def answer(cli: click.Command, instruction: str) -> int:
    """Answer a shell that requests completions or its script."""
    return shell_complete(cli, {}, "cocite", COMPLETE, instruction)


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS), case_sensitive=False))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands, options and node names.

    \b
    bash   eval "$(cocite completion bash)"    in ~/.bashrc
    zsh    eval "$(cocite completion zsh)"     in ~/.zshrc
    fish   cocite completion fish | source     in ~/.config/fish/config.fish
    """  # noqa: D301 - click wants the backspace itself
    made = get_completion_class(shell)
    assert made is not None
    group = click.get_current_context().find_root().command
    click.echo(made(group, {}, "cocite", COMPLETE).source())


def _commands(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    group = context.find_root().command
    assert isinstance(group, click.Group)
    return [name for name in group.list_commands(context) if name.startswith(begun)]


@click.command()
@click.argument("commands", metavar="[COMMAND]", nargs=-1, shell_complete=_commands)
@click.pass_context
def help(context: click.Context, commands: tuple[str, ...]) -> None:
    """Show the help of a command, like its --help."""
    at, command = context.find_root(), context.find_root().command
    for name in commands:
        if not isinstance(command, click.Group):
            raise click.UsageError(f"{at.command_path} has no subcommands: omit {name}")
        _, found, _ = command.resolve_command(at, [name])
        assert found is not None
        at = click.Context(found, at, name)
        command = found
    click.echo(command.get_help(at))


def measure_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Return the measures with this prefix, each with its summary."""
    from cocite.measures import MEASURES

    found = MEASURES.values()
    return [CompletionItem(m.name, help=m.summary) for m in found if m.name.startswith(begun)]


def direction_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the directions with this prefix."""
    from cocite.options import DIRECTIONS

    return [name for name in DIRECTIONS if name.startswith(begun)]


def node_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Return the nodes with this prefix; [] on errors, whose messages would disturb the shell."""
    path = context.params.get("index") or context.params.get("path")
    two, side = context.params.get("bipartite"), context.params.get("side")
    try:
        return _names(os.fspath(path), begun, bool(two), side) if path else []
    except (CociteError, OSError, ValueError):
        return []


def _names(path: str, begun: str, bipartite: bool, side: str | None) -> list[Any]:
    from cocite.graph.blocks import OFFSETS, count_in_links
    from cocite.graph.name_files import names_of
    from cocite.graph.names import Resolver
    from cocite.storage import Store, kind_of

    if kind_of(path) is None:
        from cocite.search.cache import cached_stores

        path = os.fspath(next(iter(cached_stores(path, bipartite)), ""))
    store = Store.open(path, "index" if kind_of(path) == "index" else "graph")
    names = names_of(store)
    sides, mark = names.sides, ""
    if sides is not None and side is not None and not begun.startswith(sides.mark):
        mark = sides.name(side, "")  # users omit the prefix, as --side implies it
    titles = names.titles()
    if store.has(OFFSETS):
        names.in_links = partial(count_in_links, store.array(OFFSETS))
    ids = Resolver(names).matches(mark + begun, passes=False).ids[:_OFFERED]
    shown = [""] * ids.size if titles is None else titles.of(ids)
    pairs = zip(names.names(ids), shown, strict=True)
    return [CompletionItem(node.removeprefix(mark), help=title) for node, title in pairs]
