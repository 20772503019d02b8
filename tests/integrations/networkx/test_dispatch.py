"""NetworkX finds the backend, caches its conversions, keeps calls unfit for it, and passes its own
tests with it.

Tests run in child processes whose NetworkX sees the entry points of pyproject.toml: those that are
installed, or, where an older installation has none, the same in a folder on the path.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import cocite
from cocite.integrations.networkx import backend, info, reading
from cocite.integrations.networkx.reading import can_run, should_run
from tests.integrations.networkx.oldest import pytestmark

ROOT = Path(__file__).parents[3]
GROUPS = ("networkx.backends", "networkx.backend_info")
__all__ = ["pytestmark"]


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """For a child whose NetworkX sees the backend."""
    paths = [str(Path(cocite.__file__).parents[1]), str(ROOT)]
    if not all(entry_points(group=group, name="cocite") for group in GROUPS):
        paths.append(str(metadata_folder(folder)))
    if os.environ.get("PYTHONPATH"):
        paths.append(os.environ["PYTHONPATH"])
    # The child is not a worker of this pytest.
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    return inherited | variables | {"PYTHONPATH": os.pathsep.join(paths)}


def metadata_folder(folder: Path) -> Path:
    """A folder whose metadata names the entry points of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    dist_info = folder / "metadata" / "cocite_backend-1.dist-info"
    dist_info.mkdir(parents=True)
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: cocite-backend\nVersion: 1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in project["entry-points"][group].items())
        for group in GROUPS
    ]
    (dist_info / "entry_points.txt").write_text("\n".join(lines))
    return dist_info.parent


def run_child(folder: Path, code: str, **variables: str) -> Any:
    """The JSON that a child prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment(folder, **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.process
def test_backend_info_imports_no_other_module(tmp_path: Path) -> None:
    code = """
import json, sys, networkx
known = networkx.utils.backends.backend_info["cocite"]
print(json.dumps([sorted(n for n in sys.modules if n.startswith("cocite")),
                  "numba" in sys.modules, sorted(known["functions"])]))
"""
    modules, numba, functions = run_child(tmp_path, code)
    assert modules == [
        "cocite",
        "cocite.integrations",
        "cocite.integrations.networkx",
        "cocite.integrations.networkx.info",
    ]
    assert not numba
    assert functions == sorted(info.FUNCTIONS)


def test_backend_functions_match_info() -> None:
    own = {"can_run", "convert_from_nx", "convert_to_nx", "on_start_tests", "should_run", "Any"}
    assert (
        set(info.FUNCTIONS)
        == {name for name, value in vars(backend).items() if callable(value)} - own
    )
    known = nx.utils.backends._registered_algorithms
    assert set(info.FUNCTIONS) <= set(known)
    import inspect

    for name in info.FUNCTIONS:
        theirs = inspect.signature(known[name].orig_func).parameters.values()
        ours = inspect.signature(getattr(backend, name)).parameters.values()
        assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs], name


@pytest.mark.process
def test_convert_from_nx_is_cached_until_graph_changes(tmp_path: Path) -> None:
    code = """
import json, networkx as nx
G = nx.gnm_random_graph(50, 200, seed=1, directed=True)
known = lambda: G.__networkx_cache__.get("backends", {}).get("cocite", {})
first = nx.pagerank(G, backend="cocite"); one = list(known().values())
again = nx.pagerank(G, backend="cocite"); two = list(known().values())
nx.simrank_similarity(G, backend="cocite"); three = list(known().values())
G.add_edge(0, 49, weight=7); four = list(known().values())
after = nx.pagerank(G, backend="cocite")
print(json.dumps([len(one), one[0] is two[0], one[0] is three[0], len(four), first == again,
                  max(abs(after[n] - v) for n, v in nx.pagerank(G, backend="networkx").items())]))
"""
    first, reused, shared, after_change, equal, error = run_child(tmp_path, code)
    assert (first, reused, shared, after_change, equal) == (1, True, True, 0, True)
    assert error < 1e-12


PROGRAM = """
import json, logging, networkx as nx
from tests.integrations.networkx.counted import Counting, RAN
logger = logging.getLogger("networkx.utils.backends")
logger.setLevel(logging.DEBUG); logger.addHandler(Counting()); logger.propagate = False
G = nx.gnm_random_graph(500, 3000, seed=1)
nx.pagerank(G), list(nx.jaccard_coefficient(G, [(0, 1)])), nx.pagerank(nx.path_graph(5))
nx.shortest_path(G, 0, 1)
H = nx.from_scipy_sparse_array(nx.to_scipy_sparse_array(G))
print(json.dumps([RAN, type(H).__name__]))
"""


@pytest.mark.process
def test_backend_priority_serves_unmodified_program(tmp_path: Path) -> None:
    counts, kind = run_child(tmp_path, PROGRAM, NETWORKX_BACKEND_PRIORITY="cocite")
    assert counts == {"pagerank": 1, "jaccard_coefficient": 1, "to_scipy_sparse_array": 1}
    assert kind == "Graph"
    assert run_child(tmp_path / "2", PROGRAM)[0] == {}
    variables = {"NETWORKX_BACKEND_PRIORITY_GENERATORS": "cocite"}
    counts, kind = run_child(
        tmp_path / "3", PROGRAM, NETWORKX_BACKEND_PRIORITY="cocite", **variables
    )
    assert counts["from_scipy_sparse_array"] == 1
    assert kind == "BackendGraph"


def test_can_run_explains_refusal() -> None:
    graph = nx.path_graph(4)
    assert can_run("shortest_path", (graph,), {}) == "cocite does not implement shortest_path"
    start = dict.fromkeys(graph, 1)
    for name in ("katz_centrality", "eigenvector_centrality"):
        assert can_run(name, (graph,), {"nstart": start}) is True
        assert "nstart" in str(can_run(name, (graph,), {"nstart": {0: 1}}))
    assert "create_using" in str(can_run("read_edgelist", ("file",), {"create_using": graph}))
    assert can_run("read_edgelist", ("file",), {"create_using": nx.DiGraph}) is True
    assert "edge_key" in str(can_run("from_pandas_edgelist", (None,), {"edge_key": "k"}))
    assert can_run("pagerank", (graph,), {"nstart": {0: 1}}) is True


def test_should_run_leaves_small_graphs_to_networkx() -> None:
    assert "6 edges" in str(should_run("pagerank", (nx.path_graph(7),), {}))
    assert "7 nodes" in str(should_run("simrank_similarity", (), {"G": nx.path_graph(7)}))
    assert should_run("simrank_similarity", (nx.path_graph(500),), {}) is True
    assert should_run("pagerank", (nx.path_graph(5000),), {}) is True
    assert should_run("pagerank", (backend.convert_from_nx(nx.path_graph(7)),), {}) is True


TESTED = [
    "networkx.algorithms.link_analysis",
    "networkx.algorithms.tests.test_link_prediction",
    "networkx.algorithms.tests.test_similarity",
    "networkx.algorithms.bipartite.tests.test_link_analysis",
    "networkx.algorithms.centrality.tests.test_eigenvector_centrality",
    "networkx.algorithms.centrality.tests.test_katz_centrality",
    "networkx.readwrite.tests.test_edgelist",
    "networkx.tests.test_convert_pandas",
    "networkx.tests.test_convert_scipy",
]


@pytest.mark.process
def test_backend_passes_networkx_tests(tmp_path: Path) -> None:
    """Calls in the backend are counted, so that tests which fall back do not pass."""
    counts_file = tmp_path / "counted.json"
    options = ["-q", "-p", "tests.integrations.networkx.counted", "-p", "no:cacheprovider"]
    options += ["-p", "no:xdist", "-W", "ignore"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", tmp_path, "--pyargs", *TESTED],
        env=environment(
            tmp_path,
            NETWORKX_TEST_BACKEND="cocite",
            NETWORKX_FALLBACK_TO_NX="True",
            COUNTED_TO=str(counts_file),
        ),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    counts = json.loads(counts_file.with_name("counted-main.json").read_text("utf-8"))
    calls = Counter(counts["ran"])
    assert set(calls) == set(info.FUNCTIONS)
    assert sum(calls.values()) > 240
    left = {name: count for name, count in counts["left"].items() if name in info.FUNCTIONS}
    print(f"{sum(calls.values())} calls in the backend, left to NetworkX {left}")
    # Graphs to fill, and keys of parallel links; no other arguments are left to NetworkX.
    assert set(left) <= {"read_edgelist", "from_pandas_edgelist", "from_scipy_sparse_array"}


# -- the page --------------------------------------------------------------------------


PAGE = (ROOT / "docs" / "networkx.md").read_text("utf-8")


def test_networkx_page_lists_all_functions() -> None:
    table = PAGE.partition("## Supported functions")[2].partition("\n\n")[2].partition("\n\n")[0]
    first = "".join(line.split("|")[1] for line in table.splitlines())
    assert set(re.findall(r"`(\w+)`", first)) == set(info.FUNCTIONS)


def test_networkx_page_states_limits() -> None:
    limits = (
        f"fewer than {reading._SMALL:,} links (for SimRank, fewer than {reading._SMALL_NODES} nodes"
    )
    assert limits in PAGE
    assert f"NetworkX before {reading.OLDEST[0]}.{reading.OLDEST[1]}." in PAGE


@pytest.mark.process
def test_networkx_page_examples_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(examples) == 2
    for number, code in enumerate(examples):
        output = "\nimport json; print(json.dumps([len(ranks), sum(ranks.values())]))"
        count, total = run_child(tmp_path / str(number), code + output)
        assert count in (200, 300)
        assert abs(total - 1) < 1e-9
