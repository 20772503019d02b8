"""Jobs that draw samples, and their execution on cluster nodes.

A :class:`SampleWork` contains no links and no open files, and any process computes the same bytes
from it. So if a node is lost, another node can make its shard, and an interrupted build resumes
with the existing shards.

Cluster nodes read the graph and write shards on a shared disk. Alternatively, each node copies the
graph from a URL, and shards are transferred through another URL (``staging_url``) and verified
against their notes. Each node verifies the graph once per build.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from cocite.cluster import in_order
from cocite.errors import ClusterError, Damaged, StoreError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.index.layouts.batch_maker import Blob, Maker, SampleJob, WholeBuilder
from cocite.index.layouts.contract import shard_file
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.layouts.reader import sampled_builder, whole_builder
from cocite.io.remote import Remote, copied
from cocite.resources import Resources, budget
from cocite.storage import MANIFEST, ArrayWriter, Entry, checksum, disk, staged_file

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


_NOTE = ".json"
Note = dict[str, Any]
"""A shard's record: its manifest ``entry``, and ``members`` and ``digests`` of its samples."""


@dataclass(frozen=True)
class SampleWork(SampleJob):
    """A job on the graph with this path and ``digest``. Shards and notes go to ``folder``."""

    graph: Path
    digest: str
    means: Resources
    verify: bool = True
    """Whether to verify the graph files' checksums."""

    def of(self, numbers: range) -> SampleWork:
        """Return the same work for other samples."""
        return replace(self, numbers=numbers)

    @property
    def shard(self) -> Path:
        """Return the path of the shard."""
        return self.folder / (self.plan.prefix + shard_file(self.numbers.start))

    # -- in any process ------------------------------------------------------------------

    def _verified(self) -> Graph:
        """Open the graph, verified once per process. Raises a :class:`~cocite.errors.StoreError`,
        or :class:`UsageError` if the graph has another digest.
        """
        return _checked(self.graph, self.digest, self.verify, _identity(self.graph / MANIFEST))

    def links(self) -> Links:
        """Return the links that the part follows, after verifying the graph."""
        found, plan = self._verified(), self.plan
        if plan.wanted is not None:
            plan.wanted.check()
        return links_of(found, plan.direction, self.means.memory, weighted=plan.weighted)

    def builder(self) -> WholeBuilder:
        """Return the builder for chunks of a part without samples, after verifying the graph."""
        found, plan = self._verified(), self.plan
        way = "out" if plan.direction == "both" else plan.direction
        links = links_of(found, way, self.means.memory, weighted=plan.weighted)
        return whole_builder(plan.layout)(found, links, plan, self.means)

    def fit(self, links: Links) -> MemoryPlan:
        """Plan the memory; raises :class:`ResourceError` if it is insufficient."""
        place = self.folder.absolute()
        there = next(path for path in (place, *place.parents) if path.exists())
        means = replace(self.means, disk=shutil.disk_usage(there).free)
        return sampled_builder(self.plan.layout).fitted(links, self.plan, means)

    def makers(self, links: Links, fit: MemoryPlan) -> list[Maker]:
        """Return one sample maker for each thread of the plan."""
        return sampled_builder(self.plan.layout).makers(links, self, fit)

    def write(self, links: Links | None = None) -> BuiltShard:
        """Write the samples as one shard, with its note."""
        links = self.links() if links is None else links
        live: list[int] = []
        blobs = in_order(self.makers(links, self.fit(links)), self.numbers)
        note = write_shard(self.shard, blobs, lambda blob: live.extend(blob.live))
        return BuiltShard(self.numbers.start, note, sum(live))


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Return an identity that changes when the file is rewritten; None if the file is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


@lru_cache(maxsize=1)
def _checked(path: Path, digest: str, verify: bool, identity: tuple[int, int, int] | None) -> Graph:
    """Open and check a graph; the manifest's ``identity`` is part of the cache key."""
    found = Graph.open(path, verify=verify)
    if found.digest != digest:
        raise UsageError(
            f"{path} on {_called()} is not the graph that this build started with: its checksum "
            "differs. Restore that graph, or start over with --no-resume (restart=True)"
        )
    found.check()
    return found


# -- shards and their notes --------------------------------------------------------------


def write_shard(path: Path, blobs: Iterable[Blob], report: Callable[[Blob], object]) -> Note:
    """Write a shard, then its note; return the note. ``report`` is called with each blob."""
    members, digests = [], []
    with staged_file(path) as file, ArrayWriter(file, np.uint32) as writer:
        for blob in blobs:
            for part in blob.parts:
                writer.write(part)
            members.append(blob.members)
            digests.append(blob.digest)
            report(blob)
    note = {"entry": writer.finished.to_json(), "members": members, "digests": digests}
    _write_note(path, note)
    return note


def _write_note(path: Path, note: Note) -> None:
    with staged_file(path.with_name(path.name + _NOTE)) as file:
        disk.write(file, json.dumps(note).encode())


def read_note(path: Path, samples: int) -> Note | None:
    """Return the note of a complete shard with ``samples`` samples, or None."""
    try:
        note: Note = json.loads(path.with_name(path.name + _NOTE).read_bytes())
        entry = Entry.from_json(path.name, note["entry"])
        counts = len(note["members"]), len(note["digests"])
        if checksum(path, entry) != entry.xxh3_128:
            return None
    except (OSError, ValueError, KeyError, TypeError, Damaged):
        return None
    return note if counts == (samples, samples) else None


_NOTE_BYTES = 1 << 24
_SHARE = (
    "Put the graph and the output on a disk that all machines of the cluster share, or pass the "
    "graph as a URL (s3://..., gs://..., file://...) and set --staging-url (staging_url=...) to a "
    "URL for the shards"
)
_opened: dict[tuple[object, ...], Links] = {}
"""Links cached by a worker process for the current build."""


@dataclass(frozen=True)
class BuiltShard:
    """A completed shard: first sample number, note, and number of walk steps."""

    first: int
    note: Note
    live: int


@dataclass(frozen=True)
class ShardWork:
    """The task of making one shard on a cluster node.

    ``graph`` is (URL, manifest digest), or None if the node reads the graph by path. Without a
    ``staging_url``, the node must find the file ``seen`` in the output's staging directory.
    """

    work: SampleWork
    graph: tuple[str, str] | None
    seen: str | None
    staging_url: str | None

    def __call__(self, numbers: range) -> BuiltShard:
        """Make the shard, or return the shard that a lost worker had completed."""
        if self.staging_url is None:
            work = self.here()
            if not (work.folder / str(self.seen)).exists():
                raise ClusterError(f"node {_called()} cannot access {work.folder}. {_SHARE}")
            return _write(work, numbers)
        remote = Remote(self.staging_url)
        name = self.work.of(numbers).shard.name
        stated = remote.read(f"{name}.json", _NOTE_BYTES)
        if stated is not None:
            return BuiltShard(numbers.start, json.loads(stated), 0)
        with TemporaryDirectory(prefix="cocite-") as scratch:
            found = _write(replace(self.here(), folder=Path(scratch)), numbers)
            remote.put(Path(scratch, name), name)
        remote.write(f"{name}.json", json.dumps(found.note).encode())
        return found

    def here(self) -> SampleWork:
        """Return the work with the graph's path on this node."""
        if self.graph is not None:
            url, digest = self.graph
            return replace(self.work, graph=copied(url, "graph", digest))
        if not self.work.graph.exists():
            raise ClusterError(f"node {_called()} cannot access {self.work.graph}. {_SHARE}")
        return self.work


def _write(work: SampleWork, numbers: range) -> BuiltShard:
    """Write one shard; cache the links for the next shard."""
    plan = work.plan
    key = work.graph, work.digest, plan.direction, plan.weighted, work.means.memory
    if key not in _opened:
        _opened.clear()
        _opened[key] = work.links()
    elif Graph.open(work.graph).digest != work.digest:
        work.links()  # raises for another graph
    return work.of(numbers).write(_opened[key])


@dataclass(frozen=True)
class PieceWork:
    """The task of making a chunk of a part without samples on a cluster node."""

    work: ShardWork

    def __call__(self, asked: Any) -> Any:
        """Make a chunk; cache the builder for the next chunk."""
        if not _kept or _kept[0][0] != self.work:
            _kept[:] = [(self.work, self.work.here().builder())]
        return _kept[0][1].piece(asked)


_kept: list[tuple[ShardWork, WholeBuilder]] = []


def _called() -> str:
    return f"{socket.gethostname()} (process {os.getpid()})"


class ClusterBuild:
    """A cluster that makes shards or chunks for a build."""

    def __init__(self, cluster: Cluster, graph: str | None, staging_url: str | None) -> None:
        """Use a connected cluster. ``graph`` is the graph's URL, or None."""
        self.cluster = cluster
        self._graph, self._staging_url = graph, staging_url
        self._seen = f"seen-{secrets.token_hex(16)}"

    def in_words(self) -> str:
        """Describe the cluster."""
        nodes = [node for node in self.cluster.nodes() if node.alive]
        cpus = sum(node.cpus for node in nodes)
        return f"{len(nodes):,} nodes of the cluster at {self.cluster.address}, {cpus:,} cores"

    def pieces(self, work: SampleWork, asked: Iterable[Any]) -> Iterator[Any]:
        """Make chunks of a part without samples; yield them in order."""
        sent, means = PieceWork(ShardWork(work, self._copied(work), None, None)), work.means
        return self.cluster.in_order(sent, asked, threads=means.threads, memory=means.total)

    def _copied(self, work: SampleWork) -> tuple[str, str] | None:
        """Return the graph's (URL, manifest digest), or None if the graph has no URL."""
        if self._graph is None:
            return None
        return self._graph, Graph.open(work.graph).store.manifest.digest()

    def shards(self, work: SampleWork, shards: Sequence[range]) -> Iterator[BuiltShard]:
        """Make shards; yield each as soon as its file and note are in the folder."""
        if self._staging_url is not None and work.plan.wanted is not None:
            raise UsageError(
                "--only-nodes (only_nodes=...) needs an output on a shared disk, because cluster "
                "nodes read the selection from the output. Omit --staging-url (staging_url=...) "
                "or --only-nodes"
            )
        graph = self._copied(work)
        remote = None if self._staging_url is None else Remote(self._staging_url) / self._key(work)
        seen = None if remote is not None else self._seen
        sent = ShardWork(work, graph, seen, None if remote is None else remote.url)
        means = work.means
        if seen is not None:
            disk.touch(work.folder / seen)
        try:
            found = self.cluster.in_order(sent, shards, threads=means.threads, memory=means.total)
            with closing(found):  # type: ignore[type-var]
                for made, shard in zip(found, shards, strict=False):
                    if remote is not None:
                        _take(remote, work.of(shard), made.note)
                    elif not work.of(shard).shard.exists():
                        raise ClusterError(
                            f"a node wrote {work.of(shard).shard}, but this machine cannot access "
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
        """Return the name of the shards' folder, which stays the same when a build resumes."""
        plan = json.dumps([work.digest, work.plan.prefix, work.plan.to_json()], sort_keys=True)
        identity = f"{plan} {work.plan.wanted} {work.plan.texts}"
        return f"shards-{xxhash.xxh3_128_hexdigest(identity.encode())}"


def _take(remote: Remote, shard: SampleWork, note: Note) -> None:
    """Move a shard and its note from the staging URL to the staging directory."""
    path = shard.shard
    try:
        entry = Entry.from_json(path.name, note["entry"])
        remote.get(path.name, entry.nbytes, path)
        if checksum(path, entry) != entry.xxh3_128:
            raise Damaged(f"{remote.url}/{path.name} does not match its checksum")
    except (Damaged, KeyError, TypeError) as error:
        remote.remove(f"{path.name}.json", path.name)
        raise StoreError(
            f"{error}. The shard was removed: repeat the command to recreate it"
        ) from error
    _write_note(path, note)
    remote.remove(f"{path.name}.json", path.name)


def of_nodes(
    spread: ClusterBuild | None, means: Resources, threads: object, memory: object
) -> Resources:
    """Return one task's resources: ``means`` or, on a cluster, the given (or default) limits."""
    if spread is None:
        return means
    cluster = spread.cluster
    each = cluster.threads_each(None if threads is None else means.threads)
    room = cluster.memory_each(None if memory is None else means.total, each)
    cluster.slots(each, room)
    return replace(means, threads=each, memory=budget(room))


@contextmanager
def spread_on(
    cluster: str | Cluster | None, graph: str | None = None, staging_url: str | None = None
) -> Iterator[ClusterBuild | None]:
    """Yield a connection to a build's cluster, or None if ``cluster`` is None. ``graph`` is the
    graph's URL; ``staging_url`` is the URL for transferring shards.
    """
    if cluster is None:
        if staging_url is not None:
            raise UsageError(
                "--staging-url (staging_url=...) is only for builds on a cluster: also pass "
                "--cluster (cluster=...)"
            )
        yield None
        return
    if staging_url is not None:
        Remote(staging_url)
    with connected(cluster) as reached:
        yield ClusterBuild(reached, graph, staging_url)


def connected(cluster: str | Cluster) -> AbstractContextManager[Cluster]:
    """Return a cluster's context, which closes the connection if ``cluster`` is an address."""
    from cocite.cluster.ray import Cluster

    return nullcontext(cluster) if isinstance(cluster, Cluster) else Cluster.connect(cluster)
