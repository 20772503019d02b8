"""``cocite cluster``: start Ray nodes on this machine for testing, or list a cluster's nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cocite.cli import flags
from cocite.cli.output import Reply, Show, counted, facts_text, table_text
from cocite.resources import format_size
from cocite.results import Document, ResultRows

if TYPE_CHECKING:
    from cocite.cluster.ray import ClusterNode


@dataclass(frozen=True)
class ClusterDocument(Document):
    """A cluster: its head node's address, and all nodes, including lost ones."""

    address: str
    nodes: list[ClusterNode]
    alive: int
    cpus: int
    memory: int

    def rows(self) -> ResultRows:
        """Return a row per node."""
        titles = ("id", "address", "cpus", "memory", "alive")
        rows = [(n.id, n.address, n.cpus, n.memory, n.alive) for n in self.nodes]
        return ResultRows(titles, rows)


@dataclass(frozen=True)
class LocalDocument(Document):
    """A local cluster that was started or stopped."""

    address: str
    nodes: int
    up: bool


@click.group()
def cluster() -> None:
    """Start Ray nodes on this machine for testing, and show the nodes of a cluster.

    Commands with --cluster can start local nodes for one run: --cluster local:4.
    """


@cluster.command()
@click.option(
    "--local",
    "count",
    type=click.IntRange(1, 64),
    required=True,
    metavar="N",
    help="Number of nodes, which share the cores and the memory.",
)
@flags.format
def up(count: int, show: Show) -> None:
    """Start a cluster of N nodes on this machine. To stop it, run cocite cluster down.

    Use it with --cluster auto. Access requires a token, which is stored in your cache directory.
    """
    from cocite.cluster.ray.local import start_cluster

    found = start_cluster(count)
    document = LocalDocument(found.address, found.nodes, True)
    nodes = counted(count, "node")
    show(Reply(document, lambda: f"{nodes} up at {found.address}; use them with --cluster auto"))


@cluster.command()
@click.argument("address", metavar="[ADDRESS]", default="auto")
@flags.format
def status(address: str, show: Show) -> None:
    """Show the nodes of the cluster whose head node is at ADDRESS (HOST:PORT).

    The default is the cluster on this machine.
    """
    from cocite.cluster.ray import Cluster

    if address.startswith("local"):
        raise click.BadParameter(
            "local:N creates a cluster for a single command: omit local:N here"
        )
    with Cluster.connect(address, check=False) as found:
        nodes, where = found.nodes(), found.address
    alive = [node for node in nodes if node.alive]
    cpus, memory = sum(node.cpus for node in alive), sum(node.memory for node in alive)
    document = ClusterDocument(where, nodes, len(alive), cpus, memory)
    show(Reply(document, lambda: _text(document)))


def _text(found: ClusterDocument) -> str:
    rows = [
        (n.id[:12], n.address, f"{n.cpus}", format_size(n.memory), "yes" if n.alive else "no")
        for n in found.nodes
    ]
    facts = {
        "cluster": found.address,
        "nodes": f"{found.alive:,} alive of {len(found.nodes):,}",
        "cores": f"{found.cpus:,}",
        "memory": format_size(found.memory),
    }
    table = table_text(["node", "address", "cores", "memory", "alive"], rows)
    return f"{facts_text(facts)}\n\n{table}"


@cluster.command()
@flags.format
def down(show: Show) -> None:
    """Stop the cluster that cocite cluster up started."""
    from cocite.cluster.ray.local import stop_cluster

    found = stop_cluster()
    document = LocalDocument(found.address, found.nodes, False)
    show(Reply(document, lambda: f"the cluster at {found.address} is down"))
