"""``cocite completion``: what a shell runs so that verbs, options and names of nodes complete; and
``cocite help``.

The shell asks the program itself, by ``_COCITE_COMPLETE``: click answers for verbs, options and
choices, ``node_names`` for the nodes of the index or graph that stands before them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from cocite.cli import COMPLETE
from cocite.errors import CociteError

if TYPE_CHECKING:
    from cocite.graph.names import Names

__all__ = ["answer", "completion", "help", "node_names"]

_SHELLS = {
    "bash": 'eval "$(cocite completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(cocite completion zsh)"   in ~/.zshrc',
    "fish": "cocite completion fish | source   in ~/.config/fish/config.fish",
}
_OFFERED = 50
"""Names at most: a shell lists no more."""


def answer(cli: click.Command, instruction: str) -> int:
    """Answer a shell that asks for completions, or for what it is to run."""
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, "cocite", COMPLETE, instruction)


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS), case_sensitive=False))
def completion(shell: str) -> None:
    """Print what makes a shell complete verbs, options and names of nodes.

    \b
    bash   eval "$(cocite completion bash)"    in ~/.bashrc
    zsh    eval "$(cocite completion zsh)"     in ~/.zshrc
    fish   cocite completion fish | source     in ~/.config/fish/config.fish
    """  # noqa: D301 - click wants the backspace itself
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    group = click.get_current_context().find_root().command
    click.echo(made(group, {}, "cocite", COMPLETE).source())


@click.command()
@click.argument("verbs", metavar="[VERB]", nargs=-1)
@click.pass_context
def help(context: click.Context, verbs: tuple[str, ...]) -> None:
    """Show the help of a verb, as its --help does."""
    at, command = context.find_root(), context.find_root().command
    for name in verbs:
        if not isinstance(command, click.Group):
            raise click.UsageError(f"{at.command_path} has no verbs of its own: leave {name} out")
        _, found, _ = command.resolve_command(at, [name])
        assert found is not None
        at = click.Context(found, at, name)
        command = found
    click.echo(command.get_help(at))


def node_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Names of nodes that begin so, of the index or graph on the command line; none if there is no
    such thing: a shell that completes does not complain.
    """
    path = context.params.get("index") or context.params.get("path")
    try:
        return _names(os.fspath(path)).complete(begun, _OFFERED) if path else []
    except (CociteError, OSError, ValueError):
        return []


def _names(path: str) -> Names:
    from cocite.graph.names import open_names
    from cocite.store import Store, kind_of

    if os.path.isfile(path):
        from cocite.query.kept import ENDING

        path = os.path.join(path + ENDING, "graph")
    return open_names(Store.open(path, "index" if kind_of(path) == "index" else "graph"))
