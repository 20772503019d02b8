"""``cocite serve``: answer over HTTP."""

from __future__ import annotations

import shlex

import click

from cocite.cli.help import Sectioned, SectionedVerb
from cocite.cli.link_files import refuse_folder
from cocite.cli.options import memory_option
from cocite.cli.output import say
from cocite.cli.voice import VOICE
from cocite.errors import UsageError
from cocite.extras import need

_TARGET = 50.0
"""Milliseconds."""
_ASKING = 8
"""Questions at a time that wait for a cluster most of their time."""


@click.command(cls=SectionedVerb)
@click.argument("indexes", metavar="INDEX...", nargs=-1)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen at. One that others can reach needs --api-keys or --insecure.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="The port; 0 for one that is free.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="How many processes answer. They share the index in memory.",
)
@click.option(
    "--threads",
    cls=Sectioned,
    section="Load",
    type=click.IntRange(1, 256),
    help="How many questions a process answers at a time.  [default: all cores, shared out among "
    "the processes, 2 at least; 8 with --cluster]",
)
@click.option(
    "--queue",
    cls=Sectioned,
    section="Load",
    type=click.IntRange(1, 100_000),
    default=256,
    show_default=True,
    help="How many questions may wait in a process; more are refused (429).",
)
@click.option(
    "--target-latency",
    "target",
    cls=Sectioned,
    section="Load",
    metavar="MS",
    type=click.FloatRange(1),
    help="Milliseconds that nine answers of ten are to take at most. Under load answers are made "
    "of fewer samples for that, and say of how many.  [default: 50; with --cluster the deadline]",
)
@click.option(
    "--cluster",
    cls=Sectioned,
    section="Cluster",
    metavar="ADDRESS",
    help="Have samples answer from several machines, all of which see INDEX: HOST:PORT of the head "
    "of a Ray cluster, auto for the one that is here, or local:N for N nodes on this machine.",
)
@click.option(
    "--shards",
    cls=Sectioned,
    section="Cluster",
    type=click.IntRange(1),
    help="How many pieces the samples are shared out in.  [default: two a node]",
)
@click.option(
    "--replicas",
    cls=Sectioned,
    section="Cluster",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="On how many nodes each piece is.",
)
@click.option(
    "--deadline",
    cls=Sectioned,
    section="Cluster",
    metavar="MS",
    type=click.FloatRange(1),
    default=200.0,
    show_default=True,
    help="Milliseconds that samples have to answer; what has come by then is the answer, which "
    "says of how many it is made.",
)
@click.option(
    "--question-timeout",
    "patience",
    cls=Sectioned,
    section="Load",
    metavar="S",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    help="Seconds that an answer may take; what takes longer is given up (503). A batch may take "
    "ten times as long.",
)
@click.option(
    "--samples-floor",
    "floor",
    cls=Sectioned,
    section="Load",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="The fewest samples that an answer is made of; what goes beyond is refused (429).",
)
@click.option(
    "--reload-interval",
    "reload",
    metavar="S",
    type=click.FloatRange(0.1, 86400),
    default=5.0,
    show_default=True,
    help="Seconds between two looks at the directories: an index that was refreshed or built again "
    "is taken.",
)
@click.option(
    "--drain-time",
    "drain",
    metavar="S",
    type=click.FloatRange(0, 3600),
    default=0.0,
    show_default=True,
    help="Seconds from SIGTERM to the end of new connections: /readyz says no (503) meanwhile, so "
    "that a load balancer sends requests elsewhere.",
)
@click.option(
    "--graph",
    "graphs",
    metavar="DIR",
    multiple=True,
    help="Where the graph of an INDEX is now, if it was moved. Reasons and refined answers read "
    "it.",
)
@click.option(
    "--api-keys",
    "keys",
    cls=Sectioned,
    section="Safety",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Answer only those who show one of the keys in this file, which has their hashes. It is "
    "read again on SIGHUP.",
)
@click.option(
    "--new-key",
    cls=Sectioned,
    section="Safety",
    metavar="NAME",
    help="Make a key instead: print it, and the line of the file of keys.",
)
@click.option(
    "--insecure",
    cls=Sectioned,
    section="Safety",
    is_flag=True,
    help="Listen at an address that others can reach without keys.",
)
@click.option(
    "--allow-origin",
    "origins",
    cls=Sectioned,
    section="Safety",
    metavar="URL",
    multiple=True,
    help="Let scripts of this site ask from browsers, such as https://example.org, or * for all "
    "(CORS). It can be given several times.  [default: none]",
)
@click.option(
    "--allow-host",
    "hosts",
    cls=Sectioned,
    section="Safety",
    metavar="NAME",
    multiple=True,
    help="Answer to this name, too, such as that of a proxy, where --host is this machine alone "
    "and there are no keys. It can be given several times.  [default: localhost and addresses]",
)
@click.option(
    "--frame-ancestors",
    "ancestors",
    cls=Sectioned,
    section="Safety",
    metavar="URL",
    multiple=True,
    help="Let pages of this site embed ours. It can be given several times.  [default: none]",
)
@click.option(
    "--site",
    metavar="URL",
    help="The root of the site whose pages are named by their paths, such as "
    "https://example.org/docs/: /embed links to the pages there, and not to the page of this "
    "server.",
)
@click.option(
    "--max-k",
    cls=Sectioned,
    section="Load",
    type=click.IntRange(1, 100_000),
    default=1000,
    show_default=True,
    help="How many hits a question may ask for.",
)
@click.option(
    "--max-batch",
    cls=Sectioned,
    section="Load",
    type=click.IntRange(1, 100_000),
    default=1000,
    show_default=True,
    help="How many nodes a batch may have.",
)
@click.option("--no-requests", is_flag=True, help="Log only what is wrong, and not every request.")
@memory_option
def serve(
    indexes: tuple[str, ...],
    host: str,
    port: int,
    workers: int,
    threads: int | None,
    queue: int,
    target: float | None,
    cluster: str | None,
    shards: int | None,
    replicas: int,
    deadline: float,
    patience: float,
    floor: int,
    reload: float,
    drain: float,
    graphs: tuple[str, ...],
    keys: str | None,
    new_key: str | None,
    insecure: bool,
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    ancestors: tuple[str, ...],
    site: str | None,
    max_k: int,
    max_batch: int,
    no_requests: bool,
    memory: int | None,
) -> None:
    """Answer questions over HTTP: related, similarity, why, in the words and the JSON of the other
    verbs.

    INDEX is a stored index, or NAME=INDEX to call it otherwise. /docs is the reference of the API.
    SIGTERM ends the server when the questions that it has are answered.
    """
    from dataclasses import replace

    if new_key is not None:
        _print_key(new_key)
        return
    if not indexes:
        raise UsageError("no index is named: name one or more to serve, such as web.index")
    for library in ("granian", "starlette", "msgspec", "jinja2"):
        need(library, "cocite serve", "serve")
    from cocite.resources import cores
    from cocite.search import open_index
    from cocite.search.cache import is_links
    from cocite.server.app import address
    from cocite.server.app import serve as run
    from cocite.server.results import Config, Limits, ServedShards, served_indexes
    from cocite.server.service import Keys

    spread = None
    if cluster is not None:
        from cocite.cluster.ray.cluster import library as ray_library

        ray_library()
        if workers > 1:
            raise UsageError(
                f"--workers is {workers}: with --cluster the samples answer from processes of "
                "their own, and one process asks them. Leave it out, and give it --threads"
            )
        spread = ServedShards(cluster, shards, replicas, deadline / 1000)
    config = Config(
        served_indexes(indexes),
        tuple(graphs),
        host,
        port,
        workers,
        threads or (_ASKING if spread else max(2, cores() // workers)),
        memory,
        queue,
        floor,
        (target or (deadline if spread else _TARGET)) / 1000,
        reload,
        drain,
        keys,
        tuple(origins),
        tuple(_origin(each) for each in ancestors),
        _root(site) if site else "",
        hosts,
        not no_requests,
        VOICE.as_json,
        VOICE.quiet,
        replace(Limits(), k=max_k, batch=max_batch, question_time=patience),
        spread,
    )
    for each in config.indexes:  # what is wrong is said once, and not by every process
        refuse_folder(each.path)
        if is_links(each.path):
            file = shlex.quote(each.path)
            raise UsageError(
                f"{each.path} holds links and is no index, which a server takes. Make one: cocite "
                f"index {file} -o web.index, then cocite serve web.index"
            )
        open_index(each.path, graph=config.graphs or None)
    if keys is not None:
        Keys(keys)
    config = replace(config, port=address(config, insecure))
    shown = f"[{host}]" if ":" in host else host
    say(
        f"serving {', '.join(each.name for each in config.indexes)} at http://{shown}:{config.port}"
    )
    run(config)


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
