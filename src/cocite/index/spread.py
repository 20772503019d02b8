"""The shards of a build, made by the nodes of a cluster.

Each is a piece of work of its own (``work.py``), which a node does with all of its threads: it
opens the graph, makes the samples, and writes shard and note where the draft is; so bytes are those
of one machine, a shard whose node is lost is made elsewhere, and a build whose driver is killed
goes on with the shards that are there.

A node sees the graph and the draft by their paths, on a disk that all share, or it does not:

    graph    given by URL, it is copied once to each node (``copies/cache.py``)
    shards   go by a folder at a URL (``via``), from where the driver takes them into the draft,
             compared with the checksums in their notes; what is taken is removed there

A draft shows that it is the very one by a file with a name that nobody can guess.

Cost: a node checks the graph and turns links round once for a build, not for each shard.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import xxhash

from cocite.copies import Remote, copied
from cocite.errors import ClusterError, Damaged, StoreError, UsageError
from cocite.graph import Graph
from cocite.graph.rows import Links
from cocite.index.work import Note, SampleWork, write_shard
from cocite.means import Means
from cocite.runner import in_order
from cocite.store import Entry, checksum, disk

if TYPE_CHECKING:
    from cocite.runner.ray import Cluster

__all__ = ["Made", "Spread", "connected", "of_nodes", "spread_on"]

_NOTE_BYTES = 1 << 24
_SHARE = (
    "Put the graph and the output on a disk that all machines of the cluster share, or name the "
    "graph by a URL (s3://..., gs://..., file://...) and give another one for the shards with "
    "--via (via=...)"
)
_opened: dict[tuple[object, ...], Links] = {}
"""In a process of a node: the links of the build that it works for."""


@dataclass(frozen=True)
class Made:
    """A shard that was made: its first sample, its note, the steps that walks made."""

    first: int
    note: Note
    live: int


@dataclass(frozen=True)
class ShardWork:
    """What a node does: a shard of the work. ``graph`` is its URL, with the digest of its manifest,
    if it is copied; ``seen`` a file in the draft, or ``via`` the URL that shards go by.
    """

    work: SampleWork
    graph: tuple[str, str] | None
    seen: str | None
    via: str | None

    def __call__(self, numbers: range) -> Made:
        """Make the shard, or find that it was made by a worker that was lost behind it."""
        if self.via is None:
            return self._made(replace(self._here(), folder=self._folder()), numbers)
        remote = Remote(self.via)
        name = self.work.of(numbers).shard.name
        stated = remote.read(f"{name}.json", _NOTE_BYTES)
        if stated is not None:
            return Made(numbers.start, json.loads(stated), 0)
        with TemporaryDirectory(prefix="cocite-") as folder:
            found = self._made(replace(self._here(), folder=Path(folder)), numbers)
            remote.put(Path(folder, name), name)
        remote.write(f"{name}.json", json.dumps(found.note).encode())
        return found

    def _folder(self) -> Path:
        folder = self.work.folder
        if not (folder / str(self.seen)).exists():
            raise ClusterError(f"node {_called()} does not see {folder}. {_SHARE}")
        return folder

    def _here(self) -> SampleWork:
        """The work, with the graph where this node has it."""
        if self.graph is not None:
            url, digest = self.graph
            return replace(self.work, graph=copied(url, "graph", digest))
        if not self.work.graph.exists():
            raise ClusterError(f"node {_called()} does not see {self.work.graph}. {_SHARE}")
        return self.work

    def _made(self, work: SampleWork, numbers: range) -> Made:
        links, shard = _links(work), work.of(numbers)
        blobs = in_order(shard.makers(links, shard.fit(links)), shard.numbers)
        live = 0
        writing = write_shard(shard.shard, blobs)
        with closing(writing):
            while True:
                try:
                    live += sum(next(writing).live)
                except StopIteration as done:
                    return Made(numbers.start, done.value, live)


def _links(work: SampleWork) -> Links:
    """Those of the work, kept in this process for the next shard."""
    plan = work.plan
    key = work.graph, work.digest, plan.direction, plan.weighted, work.means.memory
    if key not in _opened:
        _opened.clear()
        _opened[key] = work.links()
    elif Graph.open(work.graph).digest != work.digest:
        return work.links()  # which says so
    return _opened[key]


def _called() -> str:
    return f"{socket.gethostname()} (process {os.getpid()})"


class Spread:
    """A cluster, and how its nodes come by a graph and give their shards back."""

    def __init__(self, cluster: Cluster, graph: str | None, via: str | None) -> None:
        """``graph`` is the URL of the graph, if it has one."""
        self.cluster = cluster
        self._graph, self._via = graph, via
        self._seen = f"seen-{secrets.token_hex(16)}"

    def told(self) -> str:
        """In words, where work is done."""
        nodes = [node for node in self.cluster.nodes() if node.alive]
        cpus = sum(node.cpus for node in nodes)
        return f"{len(nodes):,} nodes of the cluster at {self.cluster.address}, {cpus:,} cores"

    def shards(self, work: SampleWork, shards: Sequence[range]) -> Iterator[Made]:
        """Make shards of a work; each is in its folder, with its note, when it is yielded."""
        if self._via is not None and work.plan.wanted is not None:
            raise UsageError(
                "the pages that are kept are known to nodes that see the output only: leave --via "
                "(via=...) out, or --keep (keep=...)"
            )
        graph = None
        if self._graph is not None:
            graph = self._graph, Graph.open(work.graph).store.manifest.digest()
        remote = None if self._via is None else Remote(self._via) / self._key(work)
        seen = None if remote is not None else self._seen
        sent = ShardWork(work, graph, seen, None if remote is None else remote.url)
        means = work.means
        if seen is not None:
            disk.touch(work.folder / seen)
        try:
            found = self.cluster.in_order(sent, shards, threads=means.threads, memory=means.memory)
            with closing(found):  # type: ignore[type-var]
                for made, shard in zip(found, shards, strict=False):
                    if remote is not None:
                        _take(remote, work.of(shard), made.note)
                    elif not work.of(shard).shard.exists():
                        raise ClusterError(
                            f"a node wrote {work.of(shard).shard}, and this machine does not see "
                            f"it. {_SHARE}"
                        )
                    yield made
            if remote is not None:
                remote.remove_folder()
        finally:
            if seen is not None:
                disk.remove(work.folder / seen)

    @staticmethod
    def _key(work: SampleWork) -> str:
        """Of what shards are: the same for whoever goes on with a build."""
        plan = json.dumps([work.digest, work.plan.prefix, work.plan.to_json()], sort_keys=True)
        told = f"{plan} {work.plan.wanted} {work.plan.texts}"
        return f"shards-{xxhash.xxh3_128_hexdigest(told.encode())}"


def _take(remote: Remote, shard: SampleWork, note: Note) -> None:
    """A shard from where its node has put it, and then its note; both go there."""
    path = shard.shard
    try:
        entry = Entry.from_json(path.name, note["entry"])
        remote.get(path.name, entry.nbytes, path)
        if checksum(path, entry) != entry.xxh3_128:
            raise Damaged(f"{remote.url}/{path.name} does not match its checksum")
    except (Damaged, KeyError, TypeError) as error:
        remote.remove(f"{path.name}.json", path.name)
        raise StoreError(f"{error}. It is removed: repeat the command to make it again") from error
    shard.keep(note)
    remote.remove(f"{path.name}.json", path.name)


def of_nodes(spread: Spread | None, means: Means, threads: object, memory: object) -> Means:
    """The means of a piece of work on a node: what of ``threads`` and ``memory`` was given (not
    None) is in ``means``, else it is what nodes have. Without a cluster, ``means``.
    """
    if spread is None:
        return means
    cluster = spread.cluster
    each = cluster.threads_each(None if threads is None else means.threads)
    room = cluster.memory_each(None if memory is None else means.memory, each)
    cluster.slots(each, room)
    return replace(means, threads=each, memory=room)


@contextmanager
def spread_on(
    cluster: str | Cluster | None, graph: str | None = None, via: str | None = None
) -> Iterator[Spread | None]:
    """Where a build is spread over: a cluster by its address, or one that is connected; None for
    none. ``graph`` is the URL of its graph, ``via`` that by which shards come.
    """
    if cluster is None:
        if via is not None:
            raise UsageError("via is for builds on a cluster: give --cluster (cluster=...), too")
        yield None
        return
    if via is not None:
        Remote(via)
    with connected(cluster) as reached:
        yield Spread(reached, graph, via)


@contextmanager
def connected(cluster: str | Cluster) -> Iterator[Cluster]:
    """A cluster that is connected, as it is, or the one at an address, for as long as this goes
    on.
    """
    from cocite.runner.ray import Cluster

    if isinstance(cluster, Cluster):
        yield cluster
        return
    with Cluster.connect(cluster) as found:
        yield found
