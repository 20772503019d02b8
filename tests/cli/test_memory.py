"""A command takes the memory that it tells: in a process of its own, as the kernel counts it."""

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
"""How much more or less than what was told may be taken: without data, commands take 40 to 52 MB,
which is told for all (``resources.PROCESS_MEMORY``).
"""


def assert_takes_what_it_told(command: list[str], budget: str | None) -> None:
    """No run takes more, or tells more than it was given; and one of three takes as much, since
    what threads hold at once depends on which of them the system lets run.
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
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Graphs of so many nodes and links, each made once."""

    @cache
    def make(nodes: int, links: int) -> Path:
        path = tmp_path_factory.mktemp("memory") / "g"
        generate_web(path, nodes=nodes, links=links, seed=1)
        return path

    return make


@pytest.fixture(scope="module")
def web(made: Callable[[int, int], Path]) -> Path:
    return made(250_000, 1_000_000)


@pytest.fixture(scope="module")
def small(made: Callable[[int, int], Path]) -> Path:
    """Of which the lists, and not the links, are what takes memory."""
    return made(80_000, 320_000)


@pytest.fixture(scope="module")
def sparse(made: Callable[[int, int], Path]) -> Path:
    return made(1_000_000, 1_000_000)


@pytest.fixture(scope="module")
def few(made: Callable[[int, int], Path]) -> Path:
    """Of which all pairs are scored; and its links as a file."""
    path = made(3_000, 12_000)
    path.with_suffix(".tsv").write_text("".join(f"a{i % 977}\tb{i % 991}\n" for i in range(20_000)))
    return path


@pytest.mark.process
def test_min_hashes_on_disk_take_no_more_than_was_given(sparse: Path, tmp_path: Path) -> None:
    """Winners of 16 samples are 64 MB here a ring, and are given back as they are written."""
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
        "index {small} --measure fusion",
        "index {small} --measure pagesim",
        "index {web} --measure cocitation --direction out",
        "rank {web}",
        "all-pairs {few} --prune 1e-4 --epsilon 0.1",
        "ingest {few}.tsv",
        "refresh {index} {web} --force",
        "refresh {index} {later} --force",
        "evaluate {index} --labels {labels} --queries 100",
        "tune {small} --measure psimrank --direction in --queries 20 --samples 8",
    ],
)
def test_least_memory_suffices(
    web: Path, small: Path, few: Path, tmp_path: Path, command: str
) -> None:
    index, labels = tmp_path / "i", tmp_path / "labels.tsv"
    if "{index}" in command:
        cocite.build(web, index, measure="psimrank", samples=4)
    if "{labels}" in command:
        names = Graph.open(web).names
        labels.write_text("".join(f"{names.name(i)}\tb{i % 40}\n" for i in range(0, 250_000, 5)))
    later = tmp_path / "later"
    if "{later}" in command:  # other ids: names are matched, and samples converted
        cocite.ingest(web, later, exclude_nodes=list(Graph.open(web).names)[::100])
    paths = {"web": web, "small": small, "few": few, "index": index, "labels": labels}
    words = command.format(**paths, later=later).split()
    alone = words[0] in ("rank", "refresh", "evaluate", "tune")
    words += [] if alone else ["-o", str(tmp_path / "o.npy")]
    given, found = "53MB", done([*words, "--memory", "53MB"])
    assert found.returncode == 1
    while found.returncode:  # each refusal asks for more than the last, and no more than is taken
        least = re.search(r"(?:needs?|takes)(?: at least)? ([0-9.]+ MB) of memory", found.stderr)
        assert least is not None, found.stderr
        assert resources.parse_size(least[1]) > resources.parse_size(given)
        given = least[1]
        found = done([*words, "--memory", given])
    assert peak_of(found) <= _MORE * resources.parse_size(given)


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "budget"),
    [
        ("index {web} -o {new} --measure psimrank --samples 32", "57MB"),
        ("index {web} -o {new} --measure psimrank --samples 32", None),
        ("index {web} -o {new} --measure xjaccard --samples 32", None),
        ("index {web} -o {new} --measure neighborhood", "88MB"),  # lists are turned round on disk
        ("index {small} -o {new} --measure neighborhood", "72MB"),
        ("index {small} -o {new} --measure fusion", "92MB"),
        *(
            (f"rank {graph}{trust}", budget)
            for graph, budget in (("{web}", "61MB"), ("{web}", "82MB"), ("{sparse}", None))
            for trust in ("", " --trust {trusted}")
        ),
    ],
)
def test_a_command_takes_the_memory_that_was_told(
    web: Path, small: Path, sparse: Path, tmp_path: Path, command: str, budget: str | None
) -> None:
    """In blocks and lists on disk, with many nodes and few links, and with trusted nodes."""
    graph, trusted = sparse if "{sparse}" in command else web, tmp_path / "trusted.txt"
    if "{trusted}" in command:
        trusted.write_text("\n".join(list(Graph.open(graph).names)[::10]))
    paths = {"web": web, "small": small, "sparse": sparse, "trusted": trusted}
    words = command.format(**paths, new=tmp_path / "i").split()
    assert_takes_what_it_told(words + ["--overwrite"] * (words[0] == "index"), budget)


# -- a process that may take little ----------------------------------------------------


LINKS = 60_000
ROOMS = 2_000_000_000, 1_200_000_000, 300_000_000
"""Bytes of addresses: enough for all; too few for an ingest; too few to begin."""
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
    """A folder with links, their graph and an index; kernels are compiled with it."""
    folder = tmp_path_factory.mktemp("limits")
    pairs = np.random.default_rng(1).integers(0, 20_000, (LINKS, 2)).tolist()
    (folder / "l.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    for verb in verbs(folder):
        assert done(verb).returncode == 0
    return folder


def verbs(folder: Path) -> list[list[str]]:
    """What reads, builds, and asks links themselves."""
    file, graph, index = (str(folder / name) for name in ("l.tsv", "g", "i"))
    return [
        ["ingest", file, "-o", graph, "--overwrite"],
        ["index", graph, "-o", index, "--overwrite"],
        ["related", graph, "7"],
    ]


def done(
    verb: list[str], before: Callable[[], object] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHILD, *verb],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=before,
        timeout=120,  # some libraries wait for ever for memory that there is not
    )


def peak_of(found: subprocess.CompletedProcess[str]) -> int:
    """Return the peak of a process, in bytes."""
    return int(found.stderr.splitlines()[-1]) << 10


def few_addresses(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def test_the_budget_heeds_a_limit_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_verbs_work_within_a_limit_of_addresses_or_say_that_it_is_too_low(links: Path) -> None:
    """An ingest hung for ever at 1.2 GB, and ended with a traceback at others."""
    ingest, index, related = verbs(links)
    assert done(ingest, partial(few_addresses, ROOMS[0])).returncode == 0
    refused = done(ingest, partial(few_addresses, ROOMS[1]))
    assert refused.returncode == 1
    assert "Error: ingest needs 336 MB of memory" in refused.stderr
    for verb in (index, related):
        assert done(verb, partial(few_addresses, ROOMS[1])).returncode == 0
    refused = done([*ingest, "--memory", "900MB"], partial(few_addresses, ROOMS[1]))
    assert "Error: --memory is 900 MB; the address space limit" in refused.stderr
    for verb in (ingest, index, related):
        refused = done(verb, partial(few_addresses, ROOMS[2]))
        assert refused.returncode == 1
        assert "Traceback" not in refused.stderr
        assert "memory" in refused.stderr


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of its own, of either version, where this process may make one."""
    parents = [place for place, files in resources._control_groups() if (place / files[0]).exists()]
    if not parents:
        pytest.skip("no control group with a limit of memory is mounted")
    path = parents[0] / f"cocite-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    yield path
    path.rmdir()


@pytest.mark.process
def test_verbs_stay_within_a_control_group(links: Path, group: Path) -> None:
    """Its limit is less than half of what the machine has: who did not see it would be killed."""
    version = (
        resources._VERSION_1 if (group / resources._VERSION_1[0]).exists() else resources._VERSION_2
    )
    limit = group / version[0]
    if not limit.exists():
        pytest.skip("this control group has no limit of memory")
    limit.write_text(str(900 << 20))
    if int(limit.read_text()) > resources.available() // 2:
        pytest.skip("this machine has no more memory than the control group")

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    for verb in verbs(links):
        found = done(verb, enter)
        assert found.returncode == 0, found.stderr
        assert peak_of(found) < 900 << 20
    limit.write_text(str(300 << 20))
    refused = done(verbs(links)[0], enter)
    assert refused.returncode == 1
    assert "Error: ingest needs 336 MB of memory" in refused.stderr


# -- links that are there many times ----------------------------------------------------------


@pytest.mark.process
def test_links_over_and_over_take_no_memory(tmp_path: Path) -> None:
    """Sorted beside each other they took 8 GB, of 20 million links."""
    rows = "".join(f"a{i % 7}\tb{i % 5}\n" for i in range(35_000))
    (tmp_path / "l.tsv").write_text(rows * 20)
    found = done(["related", str(tmp_path / "l.tsv"), "a1", "--memory", "340MB"])
    assert found.returncode == 0, found.stderr
    assert peak_of(found) < 400 << 20


@pytest.mark.process
def test_a_graph_with_links_over_and_over_is_refused_in_little_memory(tmp_path: Path) -> None:
    """As no ingest writes it, with checksums that fit."""
    (tmp_path / "l.tsv").write_text("".join(f"a{i % 7}\tb{i % 5}\n" for i in range(35)))
    graph, links = cocite.ingest(tmp_path / "l.tsv", tmp_path / "g"), 5_000_000
    offsets = np.zeros(graph.nodes + 1, np.uint64)
    offsets[8:] = links
    shutil.copytree(tmp_path / "g", tmp_path / "h")
    change_file(tmp_path / "h", "in_offsets", offsets)
    change_file(tmp_path / "h", "in_sources", np.zeros(links, np.uint32))
    rewrite(tmp_path / "h", lambda value: value["facts"].update(edges=links))
    found = done(["related", str(tmp_path / "h"), "a1"])
    assert found.returncode == 1
    assert "h is damaged" in found.stderr
    assert "repeats an id" in found.stderr
    assert peak_of(found) < 150 << 20
