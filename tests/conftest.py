"""Fixtures that all tests share. Nothing here needs data from outside; what does, skips."""

import gc
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

import cocite
from cocite import Graph, Hit, resources
from cocite.kernels._kernel import JIT, library
from cocite.measures import find_measure
from tests.postgres import as_user, programs, server
from tests.stored import can_store, store

# The same examples each time, so that a commit that passed passes again; --hypothesis-profile
# explore looks for new ones.
settings.register_profile(
    "explore", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("cocite", settings.get_profile("explore"), derandomize=True)
settings.load_profile("cocite")

DATA = Path(os.environ.get("COCITE_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""Real data sets: beside the checkout, or where COCITE_DATA says."""


class Printed(NamedTuple):
    """What a command printed."""

    out: str
    err: str


Shell = Callable[..., Printed]
Ask = Callable[..., tuple[int, str, str]]
Told = Callable[..., Any]
Edges = Iterable[tuple[object, ...]]
MakeGraph = Callable[..., Graph]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A case is not called by bytes: what gzip writes holds the time, and workers must agree."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests fill a cache of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """Kernels are there from the beginning."""
    if not JIT:
        library()


@pytest.fixture(scope="session", autouse=True)
def memory_of_data() -> Iterator[None]:
    """In pytest's own process, which is larger than a command's, budgets are for data alone;
    commands in processes of their own count as always (``tests/cli/test_memory.py``).
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(resources, "PROCESS_MEMORY", 0)
        yield


@pytest.fixture
def data() -> Callable[[str], Path]:
    """The path of a real data set, or a skip that says what is missing."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"needs the data set {name} (COCITE_DATA names the folder)")
        return path

    return find


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a real server of PostgreSQL, or a skip that says what is missing."""
    pytest.importorskip("psycopg", reason="needs psycopg")
    if programs() is None:
        pytest.skip("needs the programs of PostgreSQL (initdb, pg_ctl; Debian: postgresql)")
    if os.geteuid() == 0 and not as_user():
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")
    with server() as address:
        yield address


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """``ask("related", path, "x")`` runs a command here: its exit code, and what it printed."""

    def run(*words: object) -> tuple[int, str, str]:
        from cocite.cli.main import main

        capsys.readouterr()
        code = main([*map(str, words)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def shell(ask: Ask) -> Shell:
    """``shell(["related", path, "x"], 2)`` runs a command that ends with this code; words without
    blanks may be one text.
    """

    def run(words: str | Sequence[object], code: int = 0) -> Printed:
        found, out, err = ask(*(words.split() if isinstance(words, str) else words))
        assert found == code, err
        return Printed(out, err)

    return run


@pytest.fixture
def told(shell: Shell) -> Told:
    """``told("related", path, "x")`` is the JSON that a command prints."""
    return lambda *words: json.loads(shell([*words, "--format", "json"]).out)


def listed(answer: Mapping[str, Any]) -> list[Hit]:
    """The hits in an answer of JSON, as Python has them."""
    return [Hit(*(each[name] for name in Hit._fields)) for each in answer["hits"]]


INGESTED = False
"""Whether every graph is made by ``ingest``, where that is what is tested."""


@pytest.fixture
def make_graph(tmp_path: Path) -> MakeGraph:
    """A stored graph from (source, target) pairs, or triples with a weight, and optionally isolated
    ``nodes``.
    """
    return graphs_in(tmp_path)


@pytest.fixture(scope="module")
def module_graph(tmp_path_factory: pytest.TempPathFactory) -> MakeGraph:
    """As ``make_graph``, for what all tests of a module share."""
    return graphs_in(tmp_path_factory.mktemp("graphs"))


def graphs_in(folder: Path) -> MakeGraph:
    count = 0

    def make(edges: Edges, nodes: Iterable[object] = (), **options: object) -> Graph:
        nonlocal count
        count += 1
        output = folder / f"g{count}.graph"
        rows = [[str(each) for each in edge] for edge in edges]
        more = [str(node) for node in nodes]
        if not INGESTED and can_store(rows, more, options):
            return store(output, rows, more, **options)
        links = folder / f"links{count}.tsv"
        links.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        extra = folder / f"nodes{count}.tsv"
        extra.write_text("".join(f"{node}\n" for node in more), encoding="utf-8")
        options = {"delimiter": "tab", "header": "no"} | options
        return cocite.ingest(links, output, nodes=extra, **options)

    return make


@pytest.fixture
def empty_graph(make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A stored graph without nodes, which is no longer made: earlier ones may lie about."""
    with monkeypatch.context() as patched:
        patched.setattr("cocite.io.pipeline.check_some", lambda read: None)
        return make_graph([])


def words_of(graph: Graph) -> Path:
    """Texts for a graph, as a table beside it: of each page the names of those that it is linked
    with, either way, each as often as it has figures. Pages without links have no text, but for the
    first one, so that there is some.
    """
    path: Path = graph.path.with_suffix(".texts.tsv")
    names = list(graph.names)
    near: list[set[int]] = [set() for _ in names]
    for node in range(graph.nodes):
        for other in graph.in_neighbors(node).tolist():
            near[node].add(other)
            near[other].add(node)
    rows = []
    for node, (name, others) in enumerate(zip(names, near, strict=True)):
        words = [f"w{names[other]} " * len(names[other]) for other in sorted(others)]
        words += ["lonely"] * (node == 0)
        rows += [f"{name}\t{' '.join(words)}\n"] * bool(words)
    path.write_text("".join(rows), "utf-8")
    return path


def of_texts(graph: Graph, measure: str) -> dict[str, Any]:
    """What a build takes for a measure that compares texts: these, and all of their words."""
    if not find_measure(measure).texts:
        return {}
    return {"texts": words_of(graph), "min_df": 1, "max_df": 1.0}


def by_walks(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a build, of ``psimrank`` unless they name another measure."""
    return {"measure": "psimrank", **options}


def pytest_configure() -> None:
    """Ctrl-C is heard: a shell has what it starts behind itself ignore it, and so all that this
    starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first: one that is begun last keeps one worker, and the others have nothing
    left to do.
    """
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """What is there now stays: thousands of tests, which the collector need not look through."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end all of it may go, or libraries tell what they lose."""
    gc.unfreeze()
