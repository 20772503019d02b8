"""``cocite serve``: answer over HTTP; ``cocite mcp``: answer assistants."""

from __future__ import annotations

import shlex
import socket
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import click

from cocite.cli import flags
from cocite.cli.console import CONSOLE, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import IndexSource, asks, opened, refuse_folder
from cocite.errors import ResourceError, UsageError
from cocite.extras import need
from cocite.options.serve import AssistantOptions, ServeOptions
from cocite.resources import budget, require


@click.command(cls=SectionedCommand)
@click.argument("indexes", metavar="INDEX...", nargs=-1)
@flags.takes(ServeOptions, "options")
@flags.memory_of("each process that answers")
def serve(indexes: tuple[str, ...], options: ServeOptions, memory: int | None) -> None:
    """Answer queries over HTTP with the JSON of the commands related, similarity, why and others.

    INDEX is a stored index, or NAME=INDEX to choose its name. /docs is the API reference. On
    SIGTERM, the server completes running queries and stops.
    """
    if options.new_key is not None:
        _print_key(options.new_key)
        return
    if not indexes:
        raise UsageError("there is no index to serve: pass one or more, such as web.index")
    for library in ("granian", "starlette", "msgspec", "jinja2"):
        need(library, "cocite serve", "serve")
    from cocite.search.cache import is_links
    from cocite.server.keys import Keys
    from cocite.server.processes import address
    from cocite.server.processes import serve as run
    from cocite.server.results import Config, Limits, served_indexes

    if options.cluster is not None and options.accept_links:
        raise UsageError(
            "queries on a cluster cannot use posted links: omit --accept-links or --cluster"
        )
    if options.cluster is not None and options.workers > 1:
        raise UsageError(
            f"--workers is {options.workers}; with --cluster, one process sends queries to the "
            "cluster. Omit --workers, and raise --threads"
        )
    options = replace(
        options,
        frame_ancestors=tuple(_origin(each) for each in options.frame_ancestors),
        site=_root(options.site) if options.site else None,
    )
    limits = Limits(
        k=options.max_k, batch=options.max_batch, question_time=options.question_timeout
    )
    served = served_indexes(indexes)
    config = Config(served, options, memory, CONSOLE.as_json, CONSOLE.quiet, limits)
    if options.cluster is not None:
        from cocite.cluster.ray.cluster import library as ray_library

        ray_library()
    needed = 0
    for each in served:  # report errors once, not once per process
        refuse_folder(each.path)
        if is_links(each.path):
            file = shlex.quote(each.path)
            raise UsageError(
                f"{each.path} holds links, but a server needs an index. Build one: cocite index "
                f"{file} -o web.index, then cocite serve web.index"
            )
        needed = max(needed, _needed_to_open(each.path, options, config.threads))
    require(needed, budget(memory), f"each of the processes, with {config.threads} threads,")
    keys = None if options.api_keys is None else Keys(options.api_keys)
    if options.accept_links and (keys is None or not keys.writers):
        raise UsageError(
            "--accept-links requires a key with write access, but no key has it: append the word "
            "write to a line of the --api-keys file (cocite serve --new-key NAME creates a key "
            "and its line)"
        )
    port = address(config)
    host = f"[{options.host}]" if ":" in options.host else options.host
    say(f"serving {', '.join(each.name for each in served)} at http://{host}:{port}")
    run(replace(config, options=replace(options, port=port)))


def _needed_to_open(path: str, options: ServeOptions, threads: int) -> int:
    """Return the bytes that a process needs for an index; close the index, so no process inherits
    it.
    """
    from cocite.search import open_index
    from cocite.server.fresh import FreshLinks
    from cocite.server.load import serving_memory

    index = open_index(path, graph=options.graphs or None)
    if options.accept_links:
        FreshLinks(index, path).close()
    return serving_memory([index], threads)[0]


def _origin(text: str) -> str:
    """Return a valid ``frame-ancestors`` origin; raises :class:`UsageError`."""
    if not text or any(sign in text or not text.isprintable() for sign in ";, '\""):
        raise UsageError(
            f"--frame-ancestors is {text!r}; it must be an origin, such as https://example.org"
        )
    return text


def _root(url: str) -> str:
    """Return the URL that precedes a site's paths; raises :class:`UsageError`."""
    from cocite.server.pages.view import outward

    if outward(url) is None or "#" in url:
        raise UsageError(f"--site is {url!r}; it must be a URL, such as https://example.org/docs/")
    return url if url.endswith(("/", "=")) else f"{url}/"


def _print_key(name: str) -> None:
    need("starlette", "cocite serve", "serve")
    from cocite.server.keys import new_key

    if not name.isprintable() or len(name.split()) != 1 or len(name) > 64 or name.startswith("#"):
        raise UsageError(f"--new-key is {name!r}; it must be a word of up to 64 characters")
    key, line = new_key(name)
    click.echo(f"key   {key}\nline  {line}")
    say("the key is shown only once; add the line to the --api-keys file")


# -- assistants --------------------------------------------------------------------------


_HOSTS = {
    "text": "With --http: also answer to this name, such as the name of a proxy. Repeatable.",
    "unset": "the host of --http, and the names of this machine",
    "section": "",
}
_INSECURE = {
    "text": "With --http: listen on an address that other machines can reach, without keys. "
    "Anyone who can reach it can query.",
    "section": "",
}
_LIMIT = {"section": ""}


@click.command(cls=SectionedCommand)
@click.argument("index", metavar="INDEX|GRAPH|LINKS")
@flags.takes(AssistantOptions, "where")
@flags.takes(
    ServeOptions,
    "options",
    only=("allow_host", "insecure", "max_k", "question_timeout"),
    allow_host=_HOSTS,
    insecure=_INSECURE,
    max_k=_LIMIT,
    question_timeout={**_LIMIT, "text": "The time limit of an answer in seconds."},
)
@asks
@flags.resources
def mcp(
    index: str,
    where: AssistantOptions,
    options: ServeOptions,
    source: IndexSource,
    limits: flags.ResourceLimits,
) -> None:
    """Answer AI assistants over the Model Context Protocol: related nodes, similarities, reasons.

    Configure the assistant's host, such as an editor or a desktop application, to start this
    command; it then communicates over standard input and output. The tools related, similarity, why
    and find are read-only. An INDEX answers at once; for a GRAPH or LINKS, an index is built first.
    """
    need("mcp", "cocite mcp", "mcp")
    from cocite.server.assistants import PATH, Assistants, serve_http, serve_stdio
    from cocite.server.results import Limits

    for name in ("allow_host", "insecure"):
        if where.http is None and getattr(options, name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} requires --http: omit {flag}, or add --http")
    if index == "-" and where.http is None:
        raise UsageError(
            "standard input is taken by the MCP connection, so links cannot be read "
            'from "-": pass an edge list as a file, or use --http'
        )
    host, port = ("", 0) if where.http is None else _address(where.http, options.insecure)
    if source.where.side is not None:
        raise UsageError("in MCP, side is a parameter of each query: omit --side")
    answering, settings = opened(index, source, **limits)
    answering.stored.ask_settings(settings)  # refuse wrong settings at the start
    name = Path(index).resolve().name.removesuffix(".index") or index
    bounds = Limits(k=options.max_k, question_time=options.question_timeout)
    assistants = Assistants(answering, name, bounds, limits["threads"], settings)
    if where.http is None:
        serve_stdio(assistants)
        return
    listener = _listener(host, port)
    shown = f"[{host}]" if ":" in host else host
    say(f"answering assistants at http://{shown}:{listener.getsockname()[1]}{PATH}")
    names = dict.fromkeys((shown, "localhost", "127.0.0.1", "[::1]", *options.allow_host))
    with listener:
        serve_http(assistants, listener, list(names))


def _address(text: str, insecure: bool) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(f"--http is {text!r}; it must be HOST:PORT, such as 127.0.0.1:8081")
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and not insecure:
        raise UsageError(
            f"other machines can reach {host}, and no key is required: listen on 127.0.0.1 "
            "behind a proxy that requires a key, or pass --insecure to let everyone query"
        )
    return host, int(port)


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ResourceError(
            f"cannot listen on {host}:{port}: {error.strerror or error}. Choose another --http, or "
            "port 0 for a free one"
        ) from error
