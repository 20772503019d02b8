"""``cocite serve``: answer over HTTP."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cocite.cli.help import SectionedCommand
from cocite.cli.link_files import refuse_folder
from cocite.cli.messages import VOICE
from cocite.cli.options import memory_option, takes
from cocite.cli.output import say
from cocite.errors import UsageError
from cocite.extras import need
from cocite.options.serve import ServeOptions

if TYPE_CHECKING:
    from cocite.server.results import Config

_TARGET = 50.0
"""Milliseconds."""
_ASKING = 8
"""Questions at a time that wait for a cluster most of their time."""


@click.command(cls=SectionedCommand)
@click.argument("indexes", metavar="INDEX...", nargs=-1)
@takes(ServeOptions, "options", types={"api_keys": click.Path(exists=True, dir_okay=False)})
@memory_option
def serve(indexes: tuple[str, ...], options: ServeOptions, memory: int | None) -> None:
    """Answer questions over HTTP: related, similarity, why, in the words and the JSON of the other
    commands.

    INDEX is a stored index, or NAME=INDEX to call it otherwise. /docs is the reference of the API.
    SIGTERM ends the server when the questions that it has are answered.
    """
    if options.new_key is not None:
        _print_key(options.new_key)
        return
    if not indexes:
        raise UsageError("no index is named: name one or more to serve, such as web.index")
    for library in ("granian", "starlette", "msgspec", "jinja2"):
        need(library, "cocite serve", "serve")
    from cocite.search import open_index
    from cocite.search.cache import is_links
    from cocite.server.app import address
    from cocite.server.app import serve as run
    from cocite.server.service import Keys

    config = _config(indexes, options, memory)
    for each in config.indexes:  # what is wrong is said once, and not by every process
        refuse_folder(each.path)
        if is_links(each.path):
            file = shlex.quote(each.path)
            raise UsageError(
                f"{each.path} holds links and is no index, which a server takes. Make one: cocite "
                f"index {file} -o web.index, then cocite serve web.index"
            )
        open_index(each.path, graph=config.graphs or None)
    if config.keys is not None:
        Keys(config.keys)
    config = replace(config, port=address(config, options.insecure))
    shown = f"[{config.host}]" if ":" in config.host else config.host
    say(
        f"serving {', '.join(each.name for each in config.indexes)} at http://{shown}:{config.port}"
    )
    run(config)


def _config(indexes: tuple[str, ...], options: ServeOptions, memory: int | None) -> Config:
    """Return what is served, and how."""
    from cocite.resources import cores
    from cocite.server.results import Config, Limits, ServedShards, served_indexes

    spread, usual = None, _TARGET
    if options.cluster is not None:
        from cocite.cluster.ray.cluster import library as ray_library

        ray_library()
        if options.workers > 1:
            raise UsageError(
                f"--workers is {options.workers}: with --cluster the samples answer from processes "
                "of their own, and one process asks them. Leave it out, and give it --threads"
            )
        shards, replicas = options.shards, options.replicas
        spread = ServedShards(options.cluster, shards, replicas, options.deadline / 1000)
        usual = options.deadline
    own = _ASKING if spread else max(2, cores() // options.workers)
    return Config(
        indexes=served_indexes(indexes),
        graphs=options.graphs,
        host=options.host,
        port=options.port,
        workers=options.workers,
        threads=options.threads or own,
        memory=memory,
        queue=options.queue,
        floor=options.min_samples,
        target=(options.target_latency or usual) / 1000,
        reload=options.reload_interval,
        drain=options.drain_time,
        keys=options.api_keys,
        origins=options.allow_origin,
        ancestors=tuple(_origin(each) for each in options.frame_ancestors),
        site=_root(options.site) if options.site else "",
        hosts=options.allow_host,
        requests=not options.no_requests,
        log_json=VOICE.as_json,
        quiet=VOICE.quiet,
        limits=replace(
            Limits(),
            k=options.max_k,
            batch=options.max_batch,
            question_time=options.question_timeout,
        ),
        spread=spread,
    )


def _origin(text: str) -> str:
    """What may stand in a policy; raises :class:`UsageError`."""
    if not text or any(sign in text or not text.isprintable() for sign in ";, '\""):
        raise UsageError(
            f"--frame-ancestors is {text!r}; it is a site, such as https://example.org"
        )
    return text


def _root(url: str) -> str:
    """What stands before paths; raises :class:`UsageError`."""
    from cocite.server.pages.view import outward

    if outward(url) is None or "#" in url:
        raise UsageError(f"--site is {url!r}; it is a URL, such as https://example.org/docs/")
    return url if url.endswith(("/", "=")) else f"{url}/"


def _print_key(name: str) -> None:
    need("starlette", "cocite serve", "serve")
    from cocite.server.service import new_key

    if not name.isprintable() or len(name.split()) != 1 or len(name) > 64 or name.startswith("#"):
        raise UsageError(f"--new-key is {name!r}; it is a word of up to 64 characters")
    key, line = new_key(name)
    click.echo(f"key   {key}\nline  {line}")
    say("the key is shown this once; the line goes into the file of --api-keys")
