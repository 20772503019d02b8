"""The state of a server process, and the path of a query.

    query ──► lease of an index ──► share of samples ──► queue ──► thread: document ──► JSON

An answer comes from one generation of an index, and reports the generation and the number of
samples. Errors are problem details (RFC 9457) with the messages of the command line, in which index
names replace paths.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import xxhash

from cocite.deadline import clock, limited
from cocite.errors import CociteError, InputError, NotAStore, QueryTimeout, UnknownNode, UsageError
from cocite.options.query import DEFAULT_K
from cocite.resources import Resources
from cocite.results import Document
from cocite.search import Index
from cocite.search.results import RelatedDocument
from cocite.server.keys import Keys
from cocite.server.load import Adaptation, Full, Holder, LoadedIndex, Pool, serving_memory
from cocite.server.metrics import Log, Metrics
from cocite.server.requests import (
    ANSWERS,
    TooMany,
    Values,
    checked_settings,
    heavy,
    operations_of,
    sampled,
)
from cocite.server.results import DEFAULT_NAMES, CompleteDocument, Config, ServedDocument

# -- problems ----------------------------------------------------------------------------


MEDIA = "application/problem+json"
KINDS = {
    "bad-json": (400, "The body is not JSON"),
    "no-key": (401, "API key required"),
    "read-only": (403, "This key is read-only"),
    "unknown-node": (404, "No node has this name"),
    "unknown-index": (404, "No index has this name"),
    "not-found": (404, "Not found"),
    "no-such-method": (405, "Method not allowed"),
    "unknown-host": (421, "Unknown host name"),
    "slow-body": (408, "The body took too long"),
    "body-too-large": (413, "The body is too large"),
    "too-many": (413, "The request exceeds a limit"),
    "url-too-long": (414, "The URL is too long"),
    "no-json": (415, "The body must be JSON"),
    "not-allowed": (422, "A value is not allowed"),
    "graph-needed": (422, "The query needs the graph, which is not available"),
    "busy": (429, "The server is overloaded"),
    "fault": (500, "Internal server error"),
    "took-too-long": (503, "The answer took too long"),
}
"""Status and title of each kind of problem."""


_PROBLEMS: dict[type[CociteError], str] = {
    TooMany: "too-many",
    UsageError: "not-allowed",
    QueryTimeout: "took-too-long",
    NotAStore: "graph-needed",
}
"""Kinds of problems by error; a subclass comes before its base."""


@dataclass(eq=False)
class Problem(Exception):
    """A refused request: a ``kind`` from ``KINDS``, and ``more`` fields."""

    kind: str
    detail: str
    more: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return KINDS[self.kind][0]

    def to_json(self) -> dict[str, Any]:
        """Return the problem details of RFC 9457."""
        status, title = KINDS[self.kind]
        fields = {"type": f"/docs#{self.kind}", "title": title, "status": status}
        return fields | {"detail": self.detail} | self.more


class Scrub:
    """Replaces local paths in messages with the names of served indexes."""

    def __init__(self, places: Iterable[tuple[str, str]]) -> None:
        """Store the replacements: (path, name)."""
        known: dict[str, str] = {}
        for path, name in places:
            bare = () if os.path.basename(path) == path else (path,)  # a bare name reveals nothing
            for written in (*bare, os.path.abspath(path), os.path.realpath(path)):
                known[written] = name
                folder = os.path.dirname(written)
                if len(folder) > 1:
                    known.setdefault(folder + os.sep, "")
        self._known = sorted(known.items(), key=lambda pair: -len(pair[0]))

    def __call__(self, text: str, sent: Iterable[str] = ()) -> str:
        """Replace paths in the text, except in texts that the client ``sent``: otherwise clients
        could test whether a guessed path exists.
        """
        kept: dict[str, str] = {}
        for each in sorted(set(sent), key=len, reverse=True):
            if any(path in each for path, _ in self._known):
                for form in (repr(each)[1:-1], repr(each)[:100], each):
                    mark = f"\0{len(kept)}\0"
                    kept[mark], text = form, text.replace(form, mark)
        for path, name in self._known:
            text = text.replace(path, name)
        for mark, form in reversed(kept.items()):
            text = text.replace(mark, form)
        return text


def fault() -> Problem:
    """Return the problem for an error that the client did not cause."""
    return Problem("fault", "internal server error: see the server's log")


def problem_of(error: CociteError, scrub: Scrub, sent: Iterable[str] = ()) -> Problem:
    """Convert an error to a problem, for a client who ``sent`` these texts."""
    detail = scrub(str(error), sent)
    if isinstance(error, UnknownNode):
        return Problem("unknown-node", detail, {"suggestions": list(error.suggestions)})
    if isinstance(error, NotAStore):
        detail = (
            "this query needs the graph from which the index was built, and the server does not "
            "have it. Start the server with --graph"
        )
    for kind, name in _PROBLEMS.items():
        if isinstance(error, kind):
            return Problem(name, detail)
    return fault()


# -- cached answers ----------------------------------------------------------------------


Packed = tuple[bytes, str | None, bool]
"""A body, its encoding, and whether it is a list with a next page."""
_CACHED, _LARGEST = 32 << 20, 64 << 10
"""Maximum bytes of all answers that a process caches, and of a single one."""
_BESIDE = 400
"""Approximate overhead of a cached answer in bytes, in addition to body and query."""


class AnswerKey(NamedTuple):
    """The key of an answer."""

    operation: str
    name: str
    generation: str
    samples: int | None
    query: bytes
    coding: str | None


class AnswerCache:
    """The last used answers of a process; only the event loop may use it.

    A key contains everything that determines an answer, so answers are never stale. Cached answers
    use all samples, but neither posted links nor remote shards.
    """

    def __init__(self, most: int = _CACHED) -> None:
        self.most, self.size = most, 0
        self._answers: OrderedDict[AnswerKey, Packed] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: AnswerKey) -> Packed | None:
        """Return a cached answer, or None."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def add(self, key: AnswerKey, answer: Packed) -> None:
        """Store an answer, unless it is too large."""
        size = _size(key, answer)
        if size > min(_LARGEST, self.most) or key in self._answers:
            return
        self._answers[key] = answer
        self.size += size
        while self.size > self.most:
            self.size -= _size(*self._answers.popitem(last=False))


def _size(key: AnswerKey, answer: Packed) -> int:
    return len(answer[0]) + len(key.query) + _BESIDE


# -- service -----------------------------------------------------------------------------


ServedAnswer = TypeVar("ServedAnswer")
_PATIENCE = 0.2
"""Fraction of the target time that a query may wait in the queue, at the minimum number of samples.
The rest is for the answer and for other waits under overload: for processors, the interpreter lock,
and the event loop.
"""
_PIECE = 8
"""Number of a batch's queries that a thread answers at a time."""
_BATCHES = 8
"""Number of simultaneous batches that a process always accepts."""


@dataclass
class ServedQuery:
    """A query: the index ``name``, the generation ``held``, and the number of ``samples`` to use,
    None if scores are not sampled.

    ``full`` says whether these are all samples; remote samples update it when they answer.
    ``links`` counts the links posted so far.
    """

    name: str
    held: LoadedIndex
    samples: int | None
    full: bool
    links: int = 0

    @property
    def index(self) -> Index:
        """Return the index, restricted to ``samples``."""
        return self.held.at(self.samples)

    @property
    def fixed(self) -> bool:
        """Return whether the same query always gets the same answer."""
        return self.full and self.held.fresh is None and self.held.index.remote is None

    def key(self, operation: str, query: bytes, coding: str | None) -> AnswerKey:
        """Return the cache key of the answer to a ``query``."""
        return AnswerKey(operation, self.name, self.generation, self.samples, query, coding)

    def answered_by(self, index: Index) -> None:
        """Record the samples that ``index`` used."""
        samples = index.samples if index.answered is None else index.answered.samples
        if samples != self.samples:
            self.samples, self.full = samples, samples == self.held.index.samples

    @property
    def tag(self) -> str:
        """Return the ETag; the same query with the same tag has the same answer."""
        return f'W/"{self.generation}-{self.samples or 0}"'

    @property
    def generation(self) -> str:
        """Return 16 digits that change with the index's generation and with posted links."""
        generation = self.held.generation
        if not self.links:
            return generation
        return xxhash.xxh3_64_hexdigest(f"{generation} {self.links}".encode())


class Service:
    """The state of a process. Only the event loop may call ``async`` methods."""

    def __init__(self, config: Config) -> None:
        """Open all indexes; raises :class:`CociteError` if an index does not open."""
        self.config = config
        options = config.options
        self.log = Log(
            as_json=config.log_json, quiet=config.quiet, requests=not options.no_requests
        )
        self.metrics = Metrics()
        means: dict[str, Any] = {"threads": config.threads, "memory": config.memory}
        self.cluster: Any = None
        if options.cluster is not None:
            from cocite.cluster.ray import Cluster

            self.cluster = Cluster.connect(options.cluster)  # shared by all indexes
            means |= {"cluster": self.cluster, "options": options}
        self.holders = {
            each.name: Holder(each.name, each.path, options.graphs, means, options.accept_links)
            for each in config.indexes
        }
        self.keys = None if options.api_keys is None else Keys(options.api_keys)
        self.cache = AnswerCache(min(_CACHED, self._limit_memory()))
        self.starts: dict[str, Any] = {}  # for the front page (pages/front.py)
        self.operations = operations_of(config.limits, list(self.holders))
        places = [(each.path, each.name) for each in config.indexes]
        places += [(path, "the graph") for path in options.graphs]
        self.scrub = Scrub(places)
        most = max((h.now.index.samples or 0 for h in self.holders.values()), default=0)
        lowest = min(1.0, options.min_samples / most) if most else 1.0
        self.adaptation = Adaptation(config.target, lowest, time.monotonic())
        self.patience = _PATIENCE * config.target
        self.pool = Pool(config.threads, options.queue, config.limits.question_time)
        self.ready = True
        self._batches = 0
        self.gauge()
        self._stop = threading.Event()
        threading.Thread(target=self._watch, name="watcher", daemon=True).start()

    def _limit_memory(self) -> int:
        """Release index pages after queries if memory is scarce; return the bytes for answers."""
        opened = [holder.now.index for holder in self.holders.values()]
        needed, pages = serving_memory(opened, self.config.threads)
        means = Resources.checked(memory=self.config.memory)
        left = max(0, means.memory - needed) // 2
        if sum(index.stored.store.nbytes for index in opened) > left:
            for holder in self.holders.values():
                holder.most = means.total - pages
        return left

    # -- asking ---------------------------------------------------------------------------

    @contextmanager
    def serving(self, operation: str, values: Values) -> Iterator[ServedQuery]:
        """Keep an index open for a query; raises :class:`Problem` if the index is not served."""
        name = values.get("index", next(iter(self.holders)))
        holder = self.holders.get(name)
        if holder is None:
            served = ", ".join(self.holders)
            raise Problem("unknown-index", f"no index is named {name!r}; this server has {served}")
        with holder.lease() as held:
            have = samples = held.index.samples
            if sampled(operation) and not heavy(values):
                share = self.adaptation.share_now(time.monotonic())
                samples = held.samples(share, self.config.options.min_samples)
            links = 0 if held.fresh is None else held.fresh.look()
            yield ServedQuery(holder.name, held, samples, samples == have, links)

    async def done(
        self,
        work: Callable[[], ServedAnswer],
        *,
        pushing: bool = True,
        adapts: bool = True,
        seconds: float | None = None,
    ) -> ServedAnswer:
        """Run work in a thread; if ``adapts``, the time taken adapts the number of samples.

        Raises :class:`Problem` under overload, and :class:`QueryTimeout` after ``seconds``, by
        default a query's limit.
        """
        began = time.monotonic()
        most = self.patience if self.adaptation.at_floor else None
        try:
            found = await self.pool.run(work, most=most, pushing=pushing, seconds=seconds)
        except Full as full:
            if adapts:
                self.adaptation.refused(time.monotonic())
            raise _busy(full.after) from None
        if pushing and adapts:
            now = time.monotonic()
            self.adaptation.answered(now - began, now)
        return found

    def overloaded(self, path: str) -> Problem | None:
        """Return a problem if the query to be read would be refused; else None."""
        wait = self.pool.wait
        full = self.pool.full or (self.adaptation.at_floor and wait > self.patience)
        if not full or not path.startswith("/v1/") or path == "/v1/indexes":
            return None
        self.adaptation.refused(time.monotonic())
        return _busy(wait)

    async def ask(
        self,
        operation: str,
        values: Values,
        asking: ServedQuery,
        made: Callable[[Document], ServedAnswer],
    ) -> ServedAnswer:
        """Answer a query in a thread with ``made(document)``; raises :class:`Problem` and
        :class:`CociteError`.
        """

        def work() -> ServedAnswer:
            return made(self._answer(operation, values, asking))

        found = await self.done(work, adapts=sampled(operation) and not heavy(values))
        self.count_samples(operation, asking)
        return found

    def _answer(self, operation: str, values: Values, asking: ServedQuery) -> Document:
        index, fresh = asking.index, asking.held.fresh
        changed = None if fresh is None else fresh.answer(operation, values)
        document, index = changed or (ANSWERS[operation](index, values), index)
        if fresh is not None and isinstance(document, CompleteDocument):
            document = fresh.completed(document, values.get("k", DEFAULT_NAMES))
        asking.answered_by(index)
        return document

    async def ask_each(self, values: Values, asking: ServedQuery) -> AsyncIterator[list[bytes]]:
        """Answer a batch; yield several lines of JSON at a time. May raise :class:`Problem`."""
        nodes: Sequence[str | list[str]] = values["nodes"]
        limits, k = self.config.limits, values.get("k", DEFAULT_K)
        if len(nodes) * k > limits.hits:
            detail = f"{len(nodes):,} nodes with {k:,} hits each exceed {limits.hits:,} hits"
            raise Problem("too-many", f"{detail}: request fewer at once")
        if self._batches >= max(_BATCHES, 4 * self.config.threads):
            raise _busy(self.pool.wait)
        rest = {name: value for name, value in values.items() if name != "nodes"}
        checked_settings(asking.index, rest)  # if all nodes are unknown, no query checks them
        most = limits.question_time * limits.batch_times
        late = QueryTimeout(f"the batch exceeded its time limit of {most:g} s: request fewer nodes")
        end = clock() + most
        self._batches += 1
        try:
            for begin in range(0, len(nodes), _PIECE):
                piece = nodes[begin : begin + _PIECE]
                if clock() > end:
                    yield [self._unanswered(node, late) for node in piece]
                    continue
                work: Callable[[], list[bytes]] = partial(
                    list, map(partial(self._line, asking, rest), piece)
                )
                seconds = (len(piece) + 1) * limits.question_time
                try:
                    lines = await self.done(work, pushing=begin == 0, adapts=False, seconds=seconds)
                except QueryTimeout as error:
                    lines = [self._unanswered(node, error) for node in piece]
                yield lines
            self.count_samples("batch", asking)
        finally:
            self._batches -= 1

    def _line(self, asking: ServedQuery, rest: Values, node: str | list[str]) -> bytes:
        asked = node if isinstance(node, list) else [node]
        try:
            with limited(self.config.limits.question_time):
                return encoded(self._answer("related", {**rest, "node": asked}, asking))
        except (UnknownNode, QueryTimeout) as error:
            return self._unanswered(node, error)

    def _unanswered(self, node: str | list[str], error: CociteError) -> bytes:
        named, names = ("nodes", node) if isinstance(node, list) else ("node", [node])
        problem = problem_of(error, self.scrub, names).to_json()
        return msgspec.json.encode({named: node, "error": problem})

    def count_samples(self, operation: str, asking: ServedQuery) -> None:
        """Count an answer's samples."""
        if asking.samples is not None and sampled(operation):
            self.metrics.samples.labels(asking.name).observe(asking.samples)

    def indexes(self) -> list[dict[str, Any]]:
        """Describe the served indexes."""
        share, found = self.adaptation.share_now(time.monotonic()), []
        for holder in self.holders.values():
            with holder.lease() as held:
                samples = held.samples(share, self.config.options.min_samples)
                document = ServedDocument.of(holder.name, held.generation, held.index, samples)
                found.append(document.to_json())
        return found

    def gauge(self) -> None:
        """Update the metrics that are not counters."""
        self.metrics.queue.set(self.pool.waiting)
        self.metrics.share.set(self.adaptation.share_now(time.monotonic()))
        for holder in self.holders.values():
            index, fresh = holder.now.index, holder.now.fresh
            if index.remote is not None:
                self.metrics.shard_status(holder.name, index.remote.replicas.status())
            if fresh is not None:
                self.metrics.links_waiting.labels(holder.name).set(fresh.links)

    # -- changes while serving ------------------------------------------------------------

    def read_keys(self) -> None:
        """Read the keys again; keep the old ones on failure."""
        if self.keys is None:
            return
        try:
            self.keys.read()
            self.log.say("keys reloaded", keys=len(self.keys))
        except InputError as error:
            self.log.say(f"keeping the old keys: {error}", "error")

    def draining(self) -> None:
        """Report not ready, but keep answering."""
        if self.ready:
            self.ready = False
            self.log.say("draining: no longer ready")

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._stop.wait(min(1.0, self.config.options.reload_interval)):
            self.gauge()
            self.pool.look()
            if (now := time.monotonic()) < looked + self.config.options.reload_interval:
                continue
            looked = now
            for holder in self.holders.values():
                self.look(holder)

    def look(self, holder: Holder) -> None:
        """Switch to a new index directory, if any."""
        found = holder.look()
        if found == "taken":
            self.metrics.reloads.labels(holder.name, "taken").inc()
            self.log.say("reloaded", index=holder.name, generation=holder.now.generation)
        elif found is not None:
            self.metrics.reloads.labels(holder.name, "refused").inc()
            self.log.say(f"keeping the old index: {found}", "error", index=holder.name)

    def close(self) -> None:
        """Stop the threads, and close all indexes."""
        self.ready = False
        self._stop.set()
        self.pool.close()
        for holder in self.holders.values():
            holder.close()
        if self.cluster is not None:
            self.cluster.close()
        self.log.close()

    def fault(self, error: BaseException, operation: str) -> None:
        """Log an error that the client did not cause."""
        known = isinstance(error, CociteError | UsageError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        self.log.say(message, "error", operation=operation)


def encoded(document: Document) -> bytes:
    """Encode a document as JSON; msgspec writes NaN as null."""
    plain = document.facts() if isinstance(document, RelatedDocument) else document.to_json()
    return msgspec.json.encode(plain)


def _busy(after: float) -> Problem:
    seconds = max(1, round(after + 0.5))
    detail = f"too many queries are waiting: retry in {seconds} s"
    return Problem("busy", detail, {"retry_after": seconds}, {"Retry-After": str(seconds)})
