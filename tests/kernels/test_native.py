"""Kernels without Numba: the same answers, when they are run so, and what happens when they cannot.

Each question is one process, as from a shell; the first one of a cache compiles.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.compiled import cache as kept
from cocite.compiled import native
from cocite.compiled.cache import place
from cocite.graph.generate import generate_web

pytestmark = pytest.mark.long
MEASURES = ("neighbourhood", "psimrank", "pagesim", "compact-simrank", "cocitation")

ASK = """
import json, sys
import cocite

found = {}
for path in sys.argv[1:]:
    index = cocite.open(path)
    node = index.nodes.name(7)
    hits = index.related(node, k=8)
    other = hits[0].node
    found[path] = [
        [list(map(repr, (hit.node, hit.score, hit.stderr, hit.low, hit.high))) for hit in hits],
        hits.certain_ranks,
        repr(index.similarity(node, other)),
        [repr(reason) for reason in index.why(node, other).reasons],
    ]
print(json.dumps([found, "numba" in sys.modules]))
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Indexes of one graph, one a layout."""
    folder = tmp_path_factory.mktemp("native")
    graph = generate_web(folder / "graph", nodes=300, links=2400, seed=5)
    for measure in MEASURES:
        samples: dict[str, Any] = {"samples": 20} if "simrank" in measure else {}
        cocite.build(graph, folder / measure, measure=measure, **samples)
    cocite.build(graph, folder / "packed", measure="psimrank", layout="packed", samples=20)
    return [str(folder / name) for name in (*MEASURES, "packed")]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, stored: list[str]) -> Path:
    """A cache that holds what the questions need, made of what Numba keeps; what it does not keep
    yet is compiled for all tests.
    """
    folder = tmp_path_factory.mktemp("cache")
    if written := place().written:
        asked(written, *stored)
    (folder / kept.folder_name()).mkdir(0o755)
    for each in place().folders:
        for file in (each / kept.folder_name()).glob("*.nbc"):
            shutil.copy(file, folder / kept.folder_name())
    assert asked(folder, *stored)[1]  # compiled, by Numba
    return folder


@pytest.fixture
def cache(filled: Path) -> Iterator[Path]:
    """The same, as it was again afterwards."""
    before = {file: file.read_bytes() for file in objects(filled)}
    yield filled
    for file, whole in before.items():
        file.write_bytes(whole)
        file.chmod(0o644)


@pytest.fixture
def path(stored: list[str]) -> str:
    """An index that takes the fewest kernels."""
    return next(each for each in stored if each.endswith("/psimrank"))


def asked(cache: Path, *paths: str, **more: str) -> tuple[dict[str, Any], bool]:
    """What is answered, and whether Numba was loaded for it."""
    env = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    run = subprocess.run(
        [sys.executable, "-c", ASK, *paths],
        env=env | {"COCITE_CACHE": str(cache)} | more,
        capture_output=True,
        text=True,
        check=True,
    )
    found, numba = json.loads(run.stdout)
    return found, numba


def objects(cache: Path) -> list[Path]:
    """What is run without Numba."""
    return sorted((cache / kept.folder_name()).glob("*.object"))


@pytest.mark.process
def test_what_is_kept_answers_without_numba_and_alike(cache: Path, stored: list[str]) -> None:
    plain, without = asked(cache, *stored)
    by_numba, loaded = asked(cache, *stored, NUMBA_NUM_THREADS="1")
    assert (without, loaded) == (False, True)
    assert plain == by_numba
    assert plain.keys() == set(stored)


def change(cache: Path, how: Callable[[bytes], bytes]) -> None:
    for file in objects(cache):
        file.write_bytes(how(file.read_bytes()))


def flipped(whole: bytes) -> bytes:
    return whole[:-40] + bytes([whole[-40] ^ 4]) + whole[-39:]


@pytest.mark.process
@pytest.mark.parametrize("how", [lambda whole: b"", flipped, lambda whole: whole[:100]])
def test_what_is_spoilt_is_made_anew(cache: Path, path: str, how: Callable[[bytes], bytes]) -> None:
    right = asked(cache, path)
    change(cache, how)
    assert asked(cache, path) == (right[0], True)
    assert asked(cache, path) == (right[0], False)


@pytest.mark.process
def test_what_is_whole_and_no_code_is_left_to_numba(cache: Path, path: str) -> None:
    right = asked(cache, path)
    for content in (b"", b"no code", b'{"symbol": "x", "returns": []}\nno code'):
        change(cache, partial(lambda content, _: kept._digest(content) + content, content))
        assert asked(cache, path) == (right[0], True)


@pytest.mark.process
def test_what_others_can_write_to_is_not_run(cache: Path, path: str) -> None:
    for file in objects(cache):
        file.chmod(0o666)
    assert asked(cache, path)[1]  # which makes them anew
    assert not asked(cache, path)[1]


def test_arguments_have_the_kinds_that_numba_gives_them() -> None:
    from numba import typeof

    from cocite.kernels._numba import kinds_of

    sealed = np.arange(6, dtype=np.uint32)
    sealed.flags.writeable = False
    rows = np.zeros((3, 4), np.float32)
    args: tuple[Any, ...] = (
        3,
        -1,
        2.5,
        True,
        np.uint32(7),
        np.float32(1),
        sealed,
        rows,
        rows.T,
        rows[:, 1],
    )
    args += (np.zeros(5, bool), np.empty((0, 2)), (rows, sealed), (1, 2))
    assert native.kinds(args) == kinds_of(tuple(map(typeof, args)))
    assert native.kinds((np.zeros(2, ">u4"),)) is None
    assert native.kinds(("text",)) is None
    assert native.kinds((1 << 63,)) is None
    absent: tuple[Any, ...] = (None, (rows, None))
    assert native.kinds(absent) == kinds_of(tuple(map(typeof, absent)))


MANY = """
import sys
import numpy as np
from cocite.kernels import _jit
from cocite.kernels.links import add_counts

_jit.CALLS = 5
out = np.zeros(3, np.uint32)
for _ in range(5):
    add_counts(np.array([1, 2, 2], np.uint32), out)
print("numba" in sys.modules, out.tolist())
add_counts(np.array([1, 2, 2], np.uint32), out)
print("numba" in sys.modules, out.tolist())
"""


@pytest.mark.process
def test_numba_takes_over_from_many_calls(tmp_path: Path) -> None:
    env = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    env |= {"COCITE_CACHE": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", MANY], env=env, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert [line.split(" ", 1)[0] for line in runs[1]] == ["False", "True"]
    assert {line.split(" ", 1)[0] for line in runs[0]} == {"True"}  # to compile it
    assert runs[0][1].split(" ", 1)[1] == runs[1][1].split(" ", 1)[1]


THREADS = """
import sys, threading
import numpy as np
from cocite.kernels import brief
from cocite.kernels.rank import collect

def call():
    sums = np.ones(2)
    core = np.array([0, 1, 3], np.uint64), np.array([0, 0, 1], np.uint32), None
    collect(core, np.uint64(0), np.uint64(3), np.array([0.5, 0.25]), sums)
    found.append(sums.tolist())

found = []
for scope in (brief(), threading.Lock()):
    with scope:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    print("numba" in sys.modules, *found[-1])
"""


@pytest.mark.process
def test_threads_of_a_brief_work_do_not_load_numba() -> None:
    """By a kernel that is told that there are no weights, which is None."""
    env = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    runs = [
        subprocess.run([sys.executable, "-c", THREADS], env=env, capture_output=True, check=True)
        for _ in range(2)  # the first one compiles it, where nothing is kept yet
    ]
    assert runs[1].stdout.decode().splitlines() == ["False 1.5 1.75", "True 1.5 1.75"]
