"""Commands use the memory that they estimate, as the kernel counts it in a process of their own."""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks.memory import measured

import cocite
from cocite import resources
from cocite.graph import Graph
from cocite.graph.generate import generate_web
from cocite.storage.arrays import AROUND
from tests.storage.enemy import change_file, rewrite

_MORE, _LESS, _IDLE = 1.05, 0.85, 12_000_000
"""Bounds on memory used, relative to the estimate: without data, commands use 40 to 52 MB, and the
estimate allows ``resources.PROCESS_MEMORY``.
"""


def assert_uses_estimated_memory(command: list[str], budget: str | None) -> None:
    """No run uses more than its estimate, or estimates more than its budget; and one of three uses
    as much, since memory that threads hold at once depends on scheduling.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    for _ in range(3):
        found = measured(command, budget)
        assert found is not None
        assert found.peak <= _MORE * found.told + AROUND, found
        assert found.told <= 1.01 * found.allowed, found
        if found.peak >= min(_LESS * found.told, found.told - _IDLE):
            return
    pytest.fail(str(found))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Generated graphs by numbers of nodes and links, cached."""

    @cache
    def make(nodes: int, links: int) -> Path:
        path = tmp_path_factory.mktemp("memory") / "g"
        generate_web(path, nodes=nodes, links=links, seed=1)
        return path

    return make


@pytest.fixture(scope="module")
def web(generated: Callable[[int, int], Path]) -> Path:
    return generated(250_000, 1_000_000)


@pytest.fixture(scope="module")
def small(generated: Callable[[int, int], Path]) -> Path:
    """A graph whose lists take the memory, not its links."""
    return generated(80_000, 320_000)


@pytest.fixture(scope="module")
def smaller(generated: Callable[[int, int], Path]) -> Path:
    """For measures that take long for each page."""
    return generated(30_000, 120_000)


@pytest.fixture(scope="module")
def sparse(generated: Callable[[int, int], Path]) -> Path:
    return generated(1_000_000, 1_000_000)


@pytest.fixture(scope="module")
def few(generated: Callable[[int, int], Path]) -> Path:
    """A graph small enough to score all pairs; also as a file of links."""
    path = generated(1_500, 6_000)
    path.with_suffix(".tsv").write_text("".join(f"a{i % 977}\tb{i % 991}\n" for i in range(20_000)))
    return path


@pytest.mark.process
def test_index_xjaccard_stays_within_memory_option(sparse: Path, tmp_path: Path) -> None:
    """Min-hashes of 16 samples take 64 MB a ring, and are freed as they are written."""
    command = ["index", str(sparse), "--measure", "xjaccard", "--bits", "1", "--samples", "16"]
    found = measured([*command, "--length", "2", "-o", str(tmp_path / "i")], "72MB")
    assert found is not None
    assert found.peak <= _MORE * found.allowed, found


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    [
        "index {web} --samples 4 --measure psimrank",
        "index {web} --samples 16 --measure xjaccard",
        "index {small} --measure neighborhood",
        "index {smaller} --measure fusion",
        "index {small} --measure pagesim",
        "index {web} --measure cocitation --direction out",
        "rank {web}",
        "all-pairs {few} --prune 1e-4 --epsilon 0.1",
        "ingest {few}.tsv",
        "refresh {index} {web} --force",
        "refresh {index} {later} --force",
        "evaluate {index} --labels {labels} --queries 100",
        "tune {smaller} --measure psimrank --direction in --queries 20 --samples 8",
    ],
)
def test_memory_option_suffices_at_reported_minimum(
    web: Path, small: Path, smaller: Path, few: Path, tmp_path: Path, command: str
) -> None:
    index, labels = tmp_path / "i", tmp_path / "labels.tsv"
    if "{index}" in command:
        cocite.build(web, index, measure="psimrank", samples=4)
    if "{labels}" in command:
        names = Graph.open(web).names
        labels.write_text("".join(f"{names.name(i)}\tb{i % 40}\n" for i in range(0, 250_000, 5)))
    later = tmp_path / "later"
    if "{later}" in command:  # other ids: matched by name, samples converted
        cocite.ingest(web, later, exclude_nodes=list(Graph.open(web).names)[::100])
    paths = {"web": web, "small": small, "smaller": smaller, "few": few}
    words = command.format(**paths, index=index, labels=labels, later=later).split()
    without_output = words[0] in ("rank", "refresh", "evaluate", "tune")
    words += [] if without_output else ["-o", str(tmp_path / "o.npy")]
    limit, result = "53MB", run([*words, "--memory", "53MB"])
    assert result.returncode == 1
    while result.returncode:  # each error asks for more, and the last minimum suffices
        minimum = re.search(r"(?:needs?|takes)(?: at least)? ([0-9.]+ MB) of memory", result.stderr)
        assert minimum is not None, result.stderr
        assert resources.parse_size(minimum[1]) > resources.parse_size(limit)
        limit = minimum[1]
        result = run([*words, "--memory", limit])
    assert peak_of(result) <= _MORE * resources.parse_size(limit)


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "budget"),
    [
        ("index {web} -o {new} --measure psimrank --samples 32", "57MB"),
        ("index {web} -o {new} --measure psimrank --samples 32", None),
        ("index {web} -o {new} --measure xjaccard --samples 32", None),
        ("index {small} -o {new} --measure neighborhood", "72MB"),  # lists are transposed on disk
        ("index {small} -o {new} --measure fusion", "92MB"),
        ("rank {web}", "61MB"),
        ("rank {web} --trust {trusted}", "61MB"),
        ("rank {web} --trust {trusted}", "82MB"),
        ("rank {sparse}", None),
    ],
)
def test_commands_use_estimated_memory(
    web: Path, small: Path, sparse: Path, tmp_path: Path, command: str, budget: str | None
) -> None:
    """With blocks and lists on disk, many nodes and few links, and trusted nodes."""
    graph, trusted = sparse if "{sparse}" in command else web, tmp_path / "trusted.txt"
    if "{trusted}" in command:
        trusted.write_text("\n".join(list(Graph.open(graph).names)[::10]))
    paths = {"web": web, "small": small, "sparse": sparse, "trusted": trusted}
    words = command.format(**paths, new=tmp_path / "i").split()
    assert_uses_estimated_memory(words + ["--overwrite"] * (words[0] == "index"), budget)


# -- processes with little memory ------------------------------------------------------


LINKS = 60_000
ADDRESS_SPACES = 2_000_000_000, 1_200_000_000, 300_000_000
"""Bytes of addresses: enough for all; too few for an ingest; too few to start."""
CHILD = """
import sys
from pathlib import Path
from cocite.cli.main import main

code = main(sys.argv[1:])
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links, their graph and an index, which also compiles the kernels."""
    folder = tmp_path_factory.mktemp("limits")
    pairs = np.random.default_rng(1).integers(0, 20_000, (LINKS, 2)).tolist()
    (folder / "l.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    for command in commands(folder):
        assert run(command).returncode == 0
    return folder


def commands(folder: Path) -> list[list[str]]:
    """Commands that ingest, build, and query."""
    file, graph, index = (str(folder / name) for name in ("l.tsv", "g", "i"))
    return [
        ["ingest", file, "-o", graph, "--overwrite"],
        ["index", graph, "-o", index, "--overwrite"],
        ["related", graph, "7"],
    ]


def run(
    command: list[str], preexec: Callable[[], object] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHILD, *command],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=preexec,
        timeout=120,  # some libraries wait forever for missing memory
    )


def peak_of(result: subprocess.CompletedProcess[str]) -> int:
    """Return the peak memory of a process, in bytes."""
    return int(result.stderr.splitlines()[-1]) << 10


def limit_addresses(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def test_budget_respects_address_space_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_addresses", lambda: [10**9])
    monkeypatch.setattr(resources, "_status", lambda name: 100_000_000)
    assert resources.available() == 900_000_000
    with monkeypatch.context() as patched:
        patched.delitem(sys.modules, "cocite.kernels._kernel")  # libraries are not loaded
        assert resources.available() == 900_000_000 - resources._MAPPED
    with pytest.raises(cocite.errors.ResourceError, match=r"ulimit -v\) leaves 900 MB"):
        resources.budget("1GB")
    assert resources.budget("900MB") == resources.available()


@pytest.mark.process
def test_commands_respect_address_space_limit(links: Path) -> None:
    """Regression: an ingest hung at 1.2 GB, and ended with a traceback at other limits."""
    ingest, index, related = commands(links)
    assert run(ingest, partial(limit_addresses, ADDRESS_SPACES[0])).returncode == 0
    refused = run(ingest, partial(limit_addresses, ADDRESS_SPACES[1]))
    assert refused.returncode == 1
    assert "Error: ingest needs 336 MB of memory" in refused.stderr
    for command in (index, related):
        assert run(command, partial(limit_addresses, ADDRESS_SPACES[1])).returncode == 0
    refused = run([*ingest, "--memory", "900MB"], partial(limit_addresses, ADDRESS_SPACES[1]))
    assert "Error: --memory is 900 MB; the address space limit" in refused.stderr
    for command in (ingest, index, related):
        refused = run(command, partial(limit_addresses, ADDRESS_SPACES[2]))
        assert refused.returncode == 1
        assert "Traceback" not in refused.stderr
        assert "memory" in refused.stderr


@pytest.fixture
def group() -> Iterator[Path]:
    """A new control group, of either version, if this process may create one."""
    parents = [
        folder for folder, files in resources._control_groups() if (folder / files[0]).exists()
    ]
    if not parents:
        pytest.skip("needs a mounted control group with a memory limit")
    path = parents[0] / f"cocite-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"cannot create a control group: {error.strerror}")
    yield path
    path.rmdir()


@pytest.mark.process
def test_commands_stay_within_control_group(links: Path, group: Path) -> None:
    """Its limit is less than half of the memory: a process that ignored it would be killed."""
    version = (
        resources._VERSION_1 if (group / resources._VERSION_1[0]).exists() else resources._VERSION_2
    )
    limit = group / version[0]
    if not limit.exists():
        pytest.skip("this control group has no memory limit")
    limit.write_text(str(900 << 20))
    if int(limit.read_text()) > resources.available() // 2:
        pytest.skip("this machine has no more memory than the control group")

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    for command in commands(links):
        result = run(command, enter)
        assert result.returncode == 0, result.stderr
        assert peak_of(result) < 900 << 20
    limit.write_text(str(300 << 20))
    refused = run(commands(links)[0], enter)
    assert refused.returncode == 1
    assert "Error: ingest needs 336 MB of memory" in refused.stderr


# -- repeated links ---------------------------------------------------------------------------


@pytest.mark.process
def test_related_repeated_links_need_little_memory(tmp_path: Path) -> None:
    """Regression: sorting 20 million links side by side took 8 GB."""
    rows = "".join(f"a{i % 7}\tb{i % 5}\n" for i in range(35_000))
    (tmp_path / "l.tsv").write_text(rows * 20)
    result = run(["related", str(tmp_path / "l.tsv"), "a1", "--memory", "340MB"])
    assert result.returncode == 0, result.stderr
    assert peak_of(result) < 400 << 20


@pytest.mark.process
def test_related_refuses_repeated_ids_in_little_memory(tmp_path: Path) -> None:
    """With valid checksums; no ingest writes such a graph."""
    (tmp_path / "l.tsv").write_text("".join(f"a{i % 7}\tb{i % 5}\n" for i in range(35)))
    graph, links = cocite.ingest(tmp_path / "l.tsv", tmp_path / "g"), 5_000_000
    offsets = np.zeros(graph.nodes + 1, np.uint64)
    offsets[8:] = links
    shutil.copytree(tmp_path / "g", tmp_path / "h")
    change_file(tmp_path / "h", "in_offsets", offsets)
    change_file(tmp_path / "h", "in_sources", np.zeros(links, np.uint32))
    rewrite(tmp_path / "h", lambda value: value["facts"].update(edges=links))
    result = run(["related", str(tmp_path / "h"), "a1"])
    assert result.returncode == 1
    assert "h is damaged" in result.stderr
    assert "repeats an id" in result.stderr
    assert peak_of(result) < 150 << 20
