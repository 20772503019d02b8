"""Options of the server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cocite.options import CLI, Options, option
from cocite.options.query import ShardOptions


@dataclass(frozen=True)
class _ServerOptions(Options):
    host: str = option(
        "127.0.0.1",
        "The address to listen on. An address that other machines can reach needs --api-keys or "
        "--insecure.",
    )
    port: int = option(8080, "The port; 0 for a free one.", low=0, high=65535)
    workers: int = option(
        1, "The number of processes. They share the index in memory.", low=1, high=256
    )
    graphs: tuple[str, ...] = option(
        (),
        "The graph of an INDEX, if it was moved. Reasons and refined answers read it.",
        flag="--graph",
        metavar="DIR",
    )
    reload_interval: float = option(
        5.0,
        "Seconds between two checks for a new version of an index.",
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
    no_requests: bool = option(False, "Log only problems, not every request.")


@dataclass(frozen=True)
class _LoadOptions(Options, section="Load"):
    threads: int | None = option(
        None,
        "The number of queries that a process answers at once.",
        low=1,
        high=256,
        unset="all cores, divided among the processes, at least 2; 8 with --cluster",
    )
    queue: int = option(
        256,
        "The number of queries that may wait in a process; others are refused (429).",
        low=1,
        high=100_000,
    )
    target_latency: float | None = option(
        None,
        "The target time in milliseconds for nine in ten answers. Under load, answers use fewer "
        "samples to meet the target, and report their number.",
        low=1,
        metavar="MS",
        unset="50; with --cluster, the deadline",
    )
    min_samples: int = option(
        10,
        "The smallest number of samples per answer. If answers are still too slow, queries are "
        "refused (429).",
        low=1,
    )
    question_timeout: float = option(
        10.0,
        "The time limit of an answer in seconds; slower queries fail (503). A batch may take ten "
        "times as long.",
        low=0.1,
        high=3600,
        metavar="S",
    )
    max_k: int = option(1000, "The most hits that a query may request.", low=1, high=100_000)
    max_batch: int = option(1000, "The most nodes that a batch may have.", low=1, high=100_000)


@dataclass(frozen=True)
class _SafetyOptions(Options, section="Safety"):
    api_keys: Path | None = option(
        None,
        "Require one of the keys in this file. The file has the hashes of the keys, followed by "
        "the word write for keys with write access. SIGHUP reloads it.",
        metavar="FILE",
    )
    accept_links: bool = option(
        False,
        "Accept links by POST /v1/links from keys with write access. The links are stored in "
        "INDEX.links. Answers for their nodes use them at once; cocite refresh --add-links adds "
        "them to the graph.",
    )
    new_key: str | None = option(
        None,
        "Create a key, print it with its line for --api-keys, and exit.",
        metavar="NAME",
    )
    insecure: bool = option(
        False, "Listen without keys on an address that other machines can reach."
    )
    allow_origin: tuple[str, ...] = option(
        (),
        "Let scripts of this origin query the server from browsers (CORS), such as "
        "https://example.org, or * for all. Repeatable.",
        metavar="URL",
        unset="none",
    )
    allow_host: tuple[str, ...] = option(
        (),
        "Also accept this host name, such as the name of a proxy. Only needed without keys, on "
        "addresses that only this machine can reach. Repeatable.",
        metavar="NAME",
        unset="localhost and addresses",
    )
    frame_ancestors: tuple[str, ...] = option(
        (),
        "Let pages of this origin embed pages of the server. Repeatable.",
        metavar="URL",
        unset="none",
    )


# The fields of the last base come first.
@dataclass(frozen=True)
class ServeOptions(ShardOptions, _SafetyOptions, _LoadOptions, _ServerOptions):
    """Options of ``cocite serve``."""


@dataclass(frozen=True)
class AssistantOptions(Options, fronts=CLI):
    """Where the server for assistants listens."""

    http: str | None = option(
        None,
        "Serve streamable HTTP at this address, such as 127.0.0.1:8081, or at this port, from "
        "this machine only, such as 8081; 0 for a free port. The path is /mcp.",
        metavar="HOST:PORT",
        unset="standard input and output, for hosts that start the command themselves",
    )
