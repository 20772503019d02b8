"""Compiled kernels from the command line: said when they are compiled, kept, shown, removed.

Compiling takes seconds, so these tests are few, and where it needs not be all kernels most of them
are there (``all_but``, ``only``); with none begins ``test_newcomer.py``.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cocite.cli.main import main
from cocite.compiled import cache as places
from cocite.compiled.cache import folder_name
from cocite.compiled.clock import MESSAGE
from tests.io.test_mediawiki import tables
from tests.oracles.bvgraph import Writer

LINKS = "".join(f"Page {a}\tPage {(a * a + b) % 12}\n" for a in range(12) for b in (1, 3, 7))
COCITE = [sys.executable, "-m", "cocite"]
AT_ONCE = """
import sys
import cocite.compiled.clock as c
c.SAY_AFTER = 0.0
from cocite.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The program, which says at once that it compiles, however soon that is done."""
SAYS = [sys.executable, "-c", AT_ONCE]


def without(*names: str, **more: str) -> dict[str, str]:
    """The environment without these variables, and with more."""
    return {name: text for name, text in os.environ.items() if name not in names} | more


def run(
    *arguments: object, env: Mapping[str, str], program: list[str] = COCITE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *map(str, arguments)], env=env, capture_output=True, text=True, check=True
    )


@pytest.fixture
def links(tmp_path: Path) -> Path:
    file = tmp_path / "links.tsv"
    file.write_text(LINKS)
    return file


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All kernels of ``ingest`` and ``index``, as this process has them kept."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "links.tsv").write_text(LINKS)
    assert main(["ingest", str(folder / "links.tsv"), "-o", str(folder / "g")]) == 0
    assert main(["index", str(folder / "g"), "-o", str(folder / "i")]) == 0
    places_kept = places.place().folders
    return [file for place in places_kept for file in (place / folder_name()).glob("*.nbc")]


def all_but(compiled: list[Path], cache: Path, *left_out: str) -> None:
    """Have all kernels in a cache but those of some modules, which are to be compiled."""
    (cache / folder_name()).mkdir(mode=0o700, parents=True)
    cache.chmod(0o700)
    for file in compiled:
        if not file.name.startswith(left_out):
            shutil.copy(file, cache / folder_name())


def on_a_terminal(command: list[str], env: Mapping[str, str]) -> str:
    """What a command writes to a terminal as its standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=theirs) as child:
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], 120)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not piece:
                break
            seen += piece
    os.close(ours)
    assert child.returncode == 0
    return seen.decode()


@pytest.mark.process
def test_without_home_kernels_are_kept_in_a_private_place_and_both_is_said(
    tmp_path: Path, links: Path, compiled: list[Path]
) -> None:
    env = without("HOME", "XDG_CACHE_HOME", "COCITE_CACHE", TMPDIR=str(tmp_path))
    private = tmp_path / f"cocite-{os.geteuid()}"
    all_but(compiled, private, "names.")
    place = f"HOME is not set; compiled kernels are kept in {private}. "
    place += "COCITE_CACHE names another place"

    ingest = ["ingest", links, "-o"]
    first = run(*ingest, tmp_path / "g", env=env, program=SAYS).stderr.splitlines()
    assert first.count(place) == 1
    assert first.count(MESSAGE) == 1
    assert not [line for line in first if "\x1b" in line or "\r" in line]
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    kept = {path.name for path in (private / folder_name()).glob("*.nbc")}
    assert any(name.startswith("names.encode-") for name in kept)

    second = run(*ingest, tmp_path / "h", env=env, program=SAYS).stderr.splitlines()
    assert second.count(place) == 1
    assert MESSAGE not in second
    assert {path.name for path in (private / folder_name()).glob("*.nbc")} == kept


@pytest.mark.process
def test_on_a_terminal_progress_is_shown_and_a_line_stays(
    tmp_path: Path, links: Path, compiled: list[Path]
) -> None:
    all_but(compiled, tmp_path / "cache", "names.")
    env = without(COCITE_CACHE=str(tmp_path / "cache"), TERM="xterm", COLUMNS="100")
    shown = on_a_terminal([*SAYS, "ingest", str(links), "-o", str(tmp_path / "g")], env)
    assert MESSAGE in shown
    assert re.search(r"compiled \d+ kernels in [\d.]+ s", shown)
    again = on_a_terminal([*SAYS, "ingest", str(links), "-o", str(tmp_path / "h")], env)
    assert "compil" not in again
    # Not among bars, as these are over: a line of its own, which goes.
    (tmp_path / "cache" / folder_name()).rename(tmp_path / "away")
    shown = on_a_terminal([*SAYS, "info", str(tmp_path / "g")], env)
    assert "\r\x1b[2K" in shown
    assert re.search(r"\r\x1b\[2Kcompiled \d+ kernels? in", shown)


HUNDRED = """
import sys
from cocite.cli.main import main
from cocite.compiled.clock import compiling
from tests.clock import Clock

compiling._now, end = Clock(), compiling.end

def later():
    compiling._now.sleep(100)
    end()

compiling.end = later
main(sys.argv[1:])
print(compiling.kernels, compiling.seconds, file=sys.stderr)
"""
"""The program, by a clock that goes on only while kernels are compiled: 100 s each."""


@pytest.mark.process
def test_times_that_are_told_leave_compiling_out(
    tmp_path: Path, links: Path, compiled: list[Path]
) -> None:
    all_but(compiled, tmp_path / "cache", "links.", "neighbors.", "nearest.")
    env = without(COCITE_CACHE=str(tmp_path / "cache"))
    run("ingest", links, "-o", tmp_path / "g", env=os.environ)
    program = [sys.executable, "-c", HUNDRED]
    arguments = ["index", tmp_path / "g", "-o", tmp_path / "i", "--format", "json"]
    done = run(*arguments, env=env, program=program)
    kernels, seconds = map(float, done.stderr.splitlines()[-1].split())
    assert kernels > 0
    assert seconds == 100 * kernels
    assert json.loads(done.stdout)["seconds"] == 0
    assert MESSAGE in done.stderr


@pytest.mark.process
@pytest.mark.chosen
def test_python_is_told_by_the_log(tmp_path: Path) -> None:
    code = (
        "import logging, numpy as np, cocite.compiled.clock as c; c.SAY_AFTER = 0.0;"
        "logging.basicConfig(level=logging.INFO);"
        "from cocite.kernels.links import add_counts;"
        "add_counts(np.zeros(3, np.uint32), np.zeros(3, np.uint32))"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=without(COCITE_CACHE=str(tmp_path / "cache")),
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        for _ in range(2)
    ]
    assert told == [f"INFO:cocite:{MESSAGE}\n", ""]


USED = """
import json, sys
from cocite.cli.commands import compile as warm
from cocite.cli.main import main
from cocite.compiled import cache as kept

used, load, save = set(), kept.load, kept.save

def loaded(place, name):
    found = load(place, name)
    if found is not None:
        used.add(name)
    return found

def saved(place, name, data):
    used.add(name)
    save(place, name, data)

kept.load, kept.save = loaded, saved
warm._run_process = lambda step, folder: (warm.run_step(step, folder), (0, 0.0))[1]
assert main(["warm", *sys.argv[1:]]) == 0
print(json.dumps(sorted(used)))
"""
"""What ``warm`` has when it is done, whether it was compiled for it or kept from earlier runs."""


BY_NUMBA = {"NUMBA_NUM_THREADS": "1"}
"""Code that runs without Numba is neither used nor made."""


@pytest.fixture(scope="module")
def warmed() -> list[str]:
    """The kernels that ``warm`` of a measure brings about."""
    done = subprocess.run(
        [sys.executable, "-c", USED, "--measure", "cocitation"],
        env=os.environ | BY_NUMBA,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def only(names: list[str], cache: Path) -> list[str]:
    """Have these kernels in a cache, and no others; their files."""
    (cache / folder_name()).mkdir(mode=0o700, parents=True)
    cache.chmod(0o700)
    for name in names:
        here = (place / folder_name() / name for place in places.place().folders)
        shutil.copy(next(file for file in here if file.exists()), cache / folder_name())
    return names


def in_cache(cache: Path) -> list[str]:
    return sorted(file.name for file in cache.rglob("*.nbc"))


@pytest.mark.process
@pytest.mark.long
def test_after_warm_the_verbs_compile_nothing(
    tmp_path: Path, links: Path, warmed: list[str]
) -> None:
    kept = only(warmed, tmp_path / "cache")
    env = without(COCITE_CACHE=str(tmp_path / "cache"), **BY_NUMBA)
    Writer().write(tmp_path / "web", [[1, 2, 3], [], [0, 1, 3], [0]])
    (tmp_path / "wiki.sql").write_bytes(b"".join(tables("old").values()))
    (tmp_path / "titles.tsv").write_text("Page 1\tOne\n", "utf-8")
    for verb in (
        ("ingest", links, "-o", tmp_path / "g"),
        ("ingest", tmp_path / "web.graph", "-o", tmp_path / "b"),
        ("ingest", tmp_path / "wiki.sql", "-o", tmp_path / "w"),
        ("ingest", links, "-o", tmp_path / "t", "--titles", tmp_path / "titles.tsv"),
        ("index", tmp_path / "g", "-o", tmp_path / "i", "--measure", "cocitation"),
        ("related", tmp_path / "i", "Page 1"),
        ("similarity", tmp_path / "i", "Page 1", "Page 2"),
        ("related-all", tmp_path / "i", "-o", tmp_path / "all.csv"),
    ):
        assert MESSAGE not in run(*verb, env=env).stderr
    assert in_cache(tmp_path / "cache") == kept


@pytest.mark.process
@pytest.mark.long
def test_warm_compiles_what_is_missing_and_counts_it(tmp_path: Path, warmed: list[str]) -> None:
    cache = tmp_path / "cache"
    there = [name for name in warmed if not name.startswith(("names.encode", "neighbors.norms"))]
    missing = len(warmed) - len(only(there, cache))
    assert missing >= 2
    env = without(COCITE_CACHE=str(cache), **BY_NUMBA)
    for compiled in (missing, 0):
        done = run("warm", "--measure", "cocitation", "--format", "json", env=env)
        found = json.loads(done.stdout)
        assert (found["cache"], found["kernels"]) == (str(cache), compiled)
        assert in_cache(cache) == warmed


# -- looking after it --------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache with a kernel of now and one of before."""
    folder = tmp_path / "cache"
    for name in (folder_name(), "kernels-0123456789abcdef"):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.nbc").write_bytes(b"12345")
    monkeypatch.setenv("COCITE_CACHE", str(folder))
    places.place.cache_clear()
    yield folder
    places.place.cache_clear()


def test_info_shows_the_cache(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--cache"]) == 0
    shown = capsys.readouterr().out
    assert f"cache      {kept}\n" in shown
    assert "2 kernels, 10 B" in shown
    assert "cocite cache clear" in shown
    assert main(["info", "--cache", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == str(kept)
    assert found["because"] == "COCITE_CACHE"
    assert [each["current"] for each in found["versions"]] == [True, False]
    assert found["bytes"] == 10


def test_info_wants_a_path_or_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 2
    assert main(["info", "somewhere", "--cache"]) == 2
    assert "name a graph, an index or a file of links, or pass --cache" in capsys.readouterr().err


def test_clear_removes_old_versions_or_all(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "removed 1 version, 5 B; that of now stays\n"
    assert [path.name for path in kept.iterdir()] == [folder_name()]
    assert main(["cache", "clear", "--all", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == 5
    assert list(kept.iterdir()) == []


@pytest.mark.process
def test_a_cache_that_others_can_write_to_is_said_to_be_left_out(
    kept: Path, tmp_path: Path
) -> None:
    kept.chmod(0o777)
    env = without(COCITE_CACHE=str(kept), TMPDIR=str(tmp_path))
    done = run("info", "--cache", "--format", "json", env=env)
    assert f"Warning: {kept} is not used: others can write to {kept}" in done.stderr
    assert json.loads(done.stdout)["kernels"] == 0
