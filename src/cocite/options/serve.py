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
        "The address to listen on. One that others can reach needs --api-keys or --insecure.",
    )
    port: int = option(8080, "The port; 0 for a free one.", low=0, high=65535)
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
        "Seconds between two checks for an index that was refreshed or built again.",
        low=0.1,
        high=86400,
        metavar="S",
    )
    drain_time: float = option(
        0.0,
        "Seconds to keep serving after SIGTERM. Meanwhile /readyz answers 503, so that a load "
        "balancer sends requests elsewhere.",
        low=0,
        high=3600,
        metavar="S",
    )
    site: str | None = option(
        None,
        "The URL of the site whose pages are named by their paths, such as "
        "https://example.org/docs/. /embed then links to the pages there.",
        metavar="URL",
    )
    no_requests: bool = option(False, "Log problems only, and not every request.")
    threads: int | None = option(
        None,
        "How many questions a process answers at once.",
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
        "Milliseconds within which nine in ten answers should come. Under load, answers use fewer "
        "samples for that, and say how many.",
        low=1,
        metavar="MS",
        unset="50; with --cluster the deadline",
        section="Load",
    )
    min_samples: int = option(
        10,
        "The smallest number of samples of an answer; questions beyond that are refused (429).",
        low=1,
        section="Load",
    )
    question_timeout: float = option(
        10.0,
        "Seconds that an answer may take before it fails (503). A batch may take ten times as "
        "long.",
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
        "Require one of the keys in this file. It holds their hashes, with the word write behind "
        "those that may send links, and is read again on SIGHUP.",
        metavar="FILE",
        section="Safety",
    )
    accept_links: bool = option(
        False,
        "Accept links by POST /v1/links with a key that may write. They are stored in "
        "INDEX.links. Nodes with new links answer by them at once, and cocite refresh --add-links "
        "adds them to the graph.",
        section="Safety",
    )
    new_key: str | None = option(
        None,
        "Make a key instead, and print it with the line for the file of keys.",
        metavar="NAME",
        section="Safety",
    )
    insecure: bool = option(
        False, "Listen at an address that others can reach without keys.", section="Safety"
    )
    allow_origin: tuple[str, ...] = option(
        (),
        "Let scripts of this site ask from browsers (CORS), such as https://example.org, or * for "
        "all. Repeatable.",
        metavar="URL",
        unset="none",
        section="Safety",
    )
    allow_host: tuple[str, ...] = option(
        (),
        "Also answer to this host name, such as that of a proxy. Needed without keys only, on "
        "this machine alone. Repeatable.",
        metavar="NAME",
        unset="localhost and addresses",
        section="Safety",
    )
    frame_ancestors: tuple[str, ...] = option(
        (),
        "Let pages of this site embed ours. Repeatable.",
        metavar="URL",
        unset="none",
        section="Safety",
    )
    cluster: str | None = option(
        None,
        "Spread the work over several machines that can all read INDEX: HOST:PORT of the head of "
        "a Ray cluster, auto for the running one, or local:N for N nodes on this machine.",
        metavar="ADDRESS",
        section="Cluster",
    )
    shards: int | None = option(
        None,
        "How many shards the samples are divided into.",
        low=1,
        unset="two a node",
        section="Cluster",
    )
    replicas: int = option(1, "On how many nodes each shard is.", low=1, section="Cluster")
    deadline: float = option(
        200.0,
        "Milliseconds that shards have to answer. The answer is made of those that did, and says "
        "how many.",
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
