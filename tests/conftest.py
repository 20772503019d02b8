"""Fixtures that all tests share. Tests that need data from outside skip without it."""

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

# Examples are the same each time, so that a commit that passed passes again;
# --hypothesis-profile explore looks for new ones.
settings.register_profile(
    "explore", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("cocite", settings.get_profile("explore"), derandomize=True)
settings.load_profile("cocite")

DATA = Path(os.environ.get("COCITE_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""Real data sets: beside the checkout, or in COCITE_DATA."""


class Printed(NamedTuple):
    """The output of a command."""

    out: str
    err: str


Shell = Callable[..., Printed]
Ask = Callable[..., tuple[int, str, str]]
CliJson = Callable[..., Any]
Edges = Iterable[tuple[object, ...]]
MakeGraph = Callable[..., Graph]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Keep bytes out of ids: gzip writes the time, and workers must agree."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests have a cache of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """Load kernels before the first test."""
    if not JIT:
        library()


@pytest.fixture(scope="session", autouse=True)
def memory_of_data() -> Iterator[None]:
    """In pytest's process, which is larger than a command's, memory budgets are for data alone.
    Commands in processes of their own count all memory (``tests/cli/test_memory.py``).
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(resources, "PROCESS_MEMORY", 0)
        yield


@pytest.fixture
def data() -> Callable[[str], Path]:
    """The path of a real data set, or a skip that names what is missing."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"needs the data set {name} (COCITE_DATA names the folder)")
        return path

    return find


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a real PostgreSQL server, or a skip that names what is missing."""
    pytest.importorskip("psycopg", reason="needs psycopg")
    if programs() is None:
        pytest.skip("needs the programs of PostgreSQL (initdb, pg_ctl; Debian: postgresql)")
    if os.geteuid() == 0 and not as_user():
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")
    with server() as address:
        yield address


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """``ask("related", path, "x")`` runs a command in this process: exit code, stdout, stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        from cocite.cli.main import main

        capsys.readouterr()
        code = main([*map(str, words)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def shell(ask: Ask) -> Shell:
    """``shell(["related", path, "x"], 2)`` runs a command that must end with code 2; words without
    blanks may be one string.
    """

    def run(words: str | Sequence[object], code: int = 0) -> Printed:
        found, out, err = ask(*(words.split() if isinstance(words, str) else words))
        assert found == code, err
        return Printed(out, err)

    return run


@pytest.fixture
def cli_json(shell: Shell) -> CliJson:
    """``cli_json("related", path, "x")`` is the parsed JSON that a command prints."""
    return lambda *words: json.loads(shell([*words, "--format", "json"]).out)


def json_hits(answer: Mapping[str, Any]) -> list[Hit]:
    """The hits of a JSON answer, as Python has them."""
    return [Hit(*(each[name] for name in Hit._fields)) for each in answer["hits"]]


INGESTED = False
"""Whether ``ingest`` makes every graph, as in tests of ingest itself."""


@pytest.fixture
def make_graph(tmp_path: Path) -> MakeGraph:
    """A stored graph from pairs (source, target) or triples with a weight, and more ``nodes``."""
    return graphs_in(tmp_path)


@pytest.fixture(scope="module")
def module_graph(tmp_path_factory: pytest.TempPathFactory) -> MakeGraph:
    """Like ``make_graph``, for graphs that a module shares."""
    return graphs_in(tmp_path_factory.mktemp("graphs"))


def graphs_in(folder: Path) -> MakeGraph:
    count = 0

    def make(edges: Edges, nodes: Iterable[object] = (), **options: object) -> Graph:
        nonlocal count
        count += 1
        output = folder / f"g{count}.graph"
        rows = [[str(field) for field in edge] for edge in edges]
        isolated = [str(node) for node in nodes]
        if not INGESTED and can_store(rows, isolated, options):
            return store(output, rows, isolated, **options)
        links = folder / f"links{count}.tsv"
        links.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        extra = folder / f"nodes{count}.tsv"
        extra.write_text("".join(f"{node}\n" for node in isolated), encoding="utf-8")
        options = {"delimiter": "tab", "header": "no"} | options
        return cocite.ingest(links, output, nodes=extra, **options)

    return make


@pytest.fixture
def empty_graph(make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A stored graph without nodes: no longer made, but older releases did."""
    with monkeypatch.context() as patched:
        patched.setattr("cocite.io.pipeline.check_some", lambda read: None)
        return make_graph([])


def write_texts(graph: Graph) -> Path:
    """Write a table of texts beside a graph: for each page the names of its neighbors either way,
    each repeated as often as it has characters. Pages without links have no text, except the first.
    """
    path: Path = graph.path.with_suffix(".texts.tsv")
    names = list(graph.names)
    neighbors: list[set[int]] = [set() for _ in names]
    for node in range(graph.nodes):
        for other in graph.in_neighbors(node).tolist():
            neighbors[node].add(other)
            neighbors[other].add(node)
    rows = []
    for node, (name, others) in enumerate(zip(names, neighbors, strict=True)):
        words = [f"w{names[other]} " * len(names[other]) for other in sorted(others)]
        words += ["lonely"] * (node == 0)
        rows += [f"{name}\t{' '.join(words)}\n"] * bool(words)
    path.write_text("".join(rows), "utf-8")
    return path


def measure_texts(graph: Graph, measure: str) -> dict[str, Any]:
    """Build options of a measure that compares texts: texts of the graph, with all words."""
    if not find_measure(measure).texts:
        return {}
    return {"texts": write_texts(graph), "min_df": 1, "max_df": 1.0}


def with_psimrank(options: Mapping[str, Any]) -> dict[str, Any]:
    """Build options, for ``psimrank`` unless they name another measure."""
    return {"measure": "psimrank", **options}


def pytest_configure() -> None:
    """Handle Ctrl-C: processes that a shell starts in the background ignore it, and so would
    their children.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first: one that starts last would keep one worker while the others idle."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Spare the collector thousands of tests, which all stay."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let everything go at the end, or libraries report leaks."""
    gc.unfreeze()
