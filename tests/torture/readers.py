"""Readers that are slow, or die: of an index that is replaced meanwhile, and of what a command
prints.

An index is replaced again and again while processes open it, wait for a word of ours, and ask it:
every one has the answers of one generation only, and whoever replaces waits for none of them, also
if it is killed. A command whose output nobody reads to its end ends, with exit code 0 and no
traceback; what was read is what is there to be read. A slow reader has a pipe of one page, so that
the command waits for it most of the time.
"""

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import cocite
from tests.torture.operations import OPERATIONS, Operation, Prepared, generation, prepared
from tests.torture.results import Given, Row
from tests.torture.shim import forked, run_apart

_ROUNDS, _PIPES = 100, 200
"""Rounds of readers, and commands into pipes, if there is time for all."""
_READERS, _OPENED, _NAMES = 4, 4, 5
_FINE, _MIXED = 0, 3
_PIECE = 1 << 14
_PAGES = 1_000
_Answers = dict[str, list[tuple[str, float]]]


def trouble_readers(given: Given) -> dict[str, Row]:
    """Readers of both kinds, each for half of the time."""
    what = {"an index that is replaced": _replaced, "a pipe": _pipes}
    rows = {}
    for name, until in given.until.parts([name for name in what if given.only in name]):
        rows[name] = what[name](replace(given, until=until))
    return rows


# -- of an index that is replaced ------------------------------------------------------------


def _replaced(given: Given) -> Row:
    chance, row = random.Random(given.seed), Row()
    told = prepared(OPERATIONS["index --overwrite"], given.folder / "readers")
    older = Operation("x.index", [told.operation.command[0], "@old.graph"])
    older = Operation("x.index", [*older.command, *told.operation.command[2:]])
    known = [_answers(path / "x.index", None) for path in (told.before, told.after)]
    assert all(known[0][name] != known[1][name] for name in known[0])
    for number in given.cases(_ROUNDS, row):
        folder = told.copy(told.before.parent / "read")
        readers = [_Reader(folder / "x.index", known, chance.random()) for _ in range(_READERS)]
        doomed = readers[: chance.randrange(_READERS)]
        for turn in range(4):
            for reader in readers:
                reader.go_on(chance.randrange(_NAMES * _OPENED // 3))
            code = run_apart(partial((older if turn % 2 else told.operation).run, folder))
            if doomed and turn % 2 == 0:
                os.kill(doomed.pop().process, signal.SIGKILL)
        for reader in readers:
            reader.let_go()
        for reader in readers:
            found = os.waitstatus_to_exitcode(os.waitpid(reader.process, 0)[1])
            wrong = {_FINE: "", -signal.SIGKILL: "", _MIXED: "answers of two generations"}.get(
                found, f"a reader ends with {found}"
            )
            row.add(f"a reader of round {number}", wrong or _left(told, folder, code))
        shutil.rmtree(folder)
    return row


def _left(told: Prepared, folder: Path, code: int) -> str:
    """What is wrong with what those left who replaced it, the last of them by what was there."""
    if code != 0:
        return f"whoever replaces it ends with {code}"
    found, names = generation(told, folder), {path.name for path in folder.iterdir()}
    more = names - {path.name for path in told.before.iterdir()}
    return ", ".join(sorted(more)) + " is left" if more else "" if found == "old" else found


class _Reader:
    """A process that opens an index and asks it, some times; it waits for a word before each."""

    def __init__(self, index: Path, known: Sequence[_Answers], luck: float) -> None:
        words, self._say = os.pipe()

        def ask() -> int:
            os.close(self._say)
            return _asked(index, known, random.Random(luck), lambda: os.read(words, 1))

        self.process = forked(ask)
        os.close(words)

    def go_on(self, questions: int) -> None:
        """Let it ask so many questions."""
        with suppress(BrokenPipeError):  # it has ended
            os.write(self._say, bytes(questions))

    def let_go(self) -> None:
        """It need not wait any more; readers that began later hold its pipe open until they end."""
        os.close(self._say)


def _asked(
    index: Path, known: Sequence[_Answers], chance: random.Random, wait: Callable[[], object]
) -> int:
    """Open it and ask, some times: the exit code of a reader."""
    for _ in range(_OPENED):
        names = chance.sample(sorted(known[0]), _NAMES)
        found = _answers(index, names, wait)
        if not any(all(found[name] == each[name] for name in names) for each in known):
            return _MIXED
    return _FINE


def _answers(
    path: Path, names: Sequence[str] | None, wait: Callable[[], object] = lambda: None
) -> _Answers:
    """What is related to some pages, or to all; a wait before each."""
    index, found = cocite.open(path), _Answers()
    for name in names or list(index.nodes):
        wait()
        found[name] = [(hit.node, hit.score) for hit in index.related(name, 5)]
    return found


# -- of a pipe -------------------------------------------------------------------------------


def _pipes(given: Given) -> Row:
    chance, row = random.Random(given.seed), Row()
    told = prepared(OPERATIONS["related-all, lines"], given.folder / "pipes", _PAGES)
    index = str(told.before / "given.index")
    commands = [
        ["related-all", index, "-k", "20", "-o", "-", "--output-format", kind]
        for kind in ("csv", "jsonl")
    ]
    whole = [_read(words, None, slow=False)[1] for words in commands]
    assert all(len(text) > 4 << 16 for text in whole)  # no pipe holds as much
    for _ in given.cases(_PIPES, row):
        which, slow = chance.randrange(len(commands)), chance.random() < 0.3
        most = None if slow else chance.randrange(len(whole[which]) // 2)
        code, found, said = _read(commands[which], most, slow)
        wrong = "" if code == 0 and "Traceback" not in said else f"exit code {code}: {said[-400:]}"
        if not (found == whole[which] if slow else whole[which].startswith(found)):
            wrong = wrong or "other bytes"
        row.add("a slow reader" if slow else f"a reader that ends after {most} bytes", wrong)
    return row


def _read(words: Sequence[str], most: int | None, slow: bool) -> tuple[int, bytes, str]:
    """Read what a command prints, all of it or so many bytes; ``slow``: a page at a time."""
    command = [sys.executable, "-m", "cocite", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    output, size, found = process.stdout.fileno(), _PIECE, b""
    if slow:
        size = fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, 1)
    while most is None or len(found) < most:
        piece = os.read(output, size if most is None else min(most - len(found), size))
        found += piece
        if not piece:
            break
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    return process.wait(), found, said
