"""Options of the server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cocite.options import CLI, Options, option


@dataclass(frozen=True)
class ServeOptions(Options):
    """Where and how a server answers, and what it lets clients ask for."""

    host: str = option(
        "127.0.0.1",
        "The address to listen at. One that others can reach needs --api-keys or --insecure.",
    )
    port: int = option(8080, "The port; 0 for one that is free.", low=0, high=65535)
    workers: int = option(
        1, "How many processes answer. They share the index in memory.", low=1, high=256
    )
    graphs: tuple[str, ...] = option(
        (),
        "Where the graph of an INDEX is now, if it was moved. Reasons and refined answers read it.",
        flag="--graph",
        metavar="DIR",
    )
    reload_interval: float = option(
        5.0,
        "Seconds between two looks at the directories: an index that was refreshed or built again "
        "is taken.",
        low=0.1,
        high=86400,
        metavar="S",
    )
    drain_time: float = option(
        0.0,
        "Seconds from SIGTERM to the end of new connections: /readyz says no (503) meanwhile, so "
        "that a load balancer sends requests elsewhere.",
        low=0,
        high=3600,
        metavar="S",
    )
    site: str | None = option(
        None,
        "The root of the site whose pages are named by their paths, such as "
        "https://example.org/docs/: /embed links to the pages there, and not to the page of this "
        "server.",
        metavar="URL",
    )
    no_requests: bool = option(False, "Log only what is wrong, and not every request.")
    threads: int | None = option(
        None,
        "How many questions a process answers at a time.",
        low=1,
        high=256,
        unset="all cores, shared out among the processes, 2 at least; 8 with --cluster",
        section="Load",
    )
    queue: int = option(
        256,
        "How many questions may wait in a process; more are refused (429).",
        low=1,
        high=100_000,
        section="Load",
    )
    target_latency: float | None = option(
        None,
        "Milliseconds that nine answers of ten are to take at most. Under load answers are made of "
        "fewer samples for that, and say of how many.",
        low=1,
        metavar="MS",
        unset="50; with --cluster the deadline",
        section="Load",
    )
    min_samples: int = option(
        10,
        "The fewest samples that an answer is made of; what goes beyond is refused (429).",
        low=1,
        section="Load",
    )
    question_timeout: float = option(
        10.0,
        "Seconds that an answer may take; what takes longer is given up (503). A batch may take "
        "ten times as long.",
        low=0.1,
        high=3600,
        metavar="S",
        section="Load",
    )
    max_k: int = option(
        1000, "How many hits a question may ask for.", low=1, high=100_000, section="Load"
    )
    max_batch: int = option(
        1000, "How many nodes a batch may have.", low=1, high=100_000, section="Load"
    )
    api_keys: Path | None = option(
        None,
        "Answer only those who show one of the keys in this file, which has their hashes, and the "
        "word write behind those that may send links. It is read again on SIGHUP.",
        metavar="FILE",
        section="Safety",
    )
    accept_links: bool = option(
        False,
        "Take links by POST /v1/links from those whose key may write. They are stored beside "
        "INDEX, in INDEX.links; nodes with new links answer by them at once, and cocite refresh "
        "--add-links adds them to the graph.",
        section="Safety",
    )
    new_key: str | None = option(
        None,
        "Make a key instead: print it, and the line of the file of keys.",
        metavar="NAME",
        section="Safety",
    )
    insecure: bool = option(
        False, "Listen at an address that others can reach without keys.", section="Safety"
    )
    allow_origin: tuple[str, ...] = option(
        (),
        "Let scripts of this site ask from browsers, such as https://example.org, or * for all "
        "(CORS). It can be given several times.",
        metavar="URL",
        unset="none",
        section="Safety",
    )
    allow_host: tuple[str, ...] = option(
        (),
        "Answer to this name, too, such as that of a proxy, where --host is this machine alone and "
        "there are no keys. It can be given several times.",
        metavar="NAME",
        unset="localhost and addresses",
        section="Safety",
    )
    frame_ancestors: tuple[str, ...] = option(
        (),
        "Let pages of this site embed ours. It can be given several times.",
        metavar="URL",
        unset="none",
        section="Safety",
    )
    cluster: str | None = option(
        None,
        "Have samples answer from several machines, all of which see INDEX: HOST:PORT of the head "
        "of a Ray cluster, auto for the one that is here, or local:N for N nodes on this machine.",
        metavar="ADDRESS",
        section="Cluster",
    )
    shards: int | None = option(
        None,
        "How many pieces the samples are shared out in.",
        low=1,
        unset="two a node",
        section="Cluster",
    )
    replicas: int = option(1, "On how many nodes each piece is.", low=1, section="Cluster")
    deadline: float = option(
        200.0,
        "Milliseconds that samples have to answer; what has come by then is the answer, which says "
        "of how many it is made.",
        low=1,
        metavar="MS",
        section="Cluster",
    )


@dataclass(frozen=True)
class AssistantOptions(Options, fronts=CLI):
    """Where assistants are answered."""

    http: str | None = option(
        None,
        "Answer over streamable HTTP at this address, such as 127.0.0.1:8081, or at a port of this "
        "machine alone, such as 8081; 0 is a port that is free. The path is /mcp.",
        metavar="HOST:PORT",
        unset="standard input and output, as hosts that start the command themselves want it",
    )
