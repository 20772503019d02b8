"""Slow and dying readers: of an index that is replaced meanwhile, and of a command's output.

An index is replaced repeatedly while processes open it, wait for a signal, and query it: each gets
answers of one generation only, and the writer waits for none of them, even if one is killed. A
command whose output is not read to the end exits with code 0 and no traceback; the bytes read are
correct. A slow reader has a pipe of one page, so that the command mostly waits for it.
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
"""Rounds of readers, and commands with pipes, if time allows."""
_READERS, _OPENED, _NAMES = 4, 4, 5
_FINE, _MIXED = 0, 3
_PIECE = 1 << 14
_PAGES = 1_000
_Answers = dict[str, list[tuple[str, float]]]


def trouble_readers(given: Given) -> dict[str, Row]:
    """Readers of both kinds, each for half of the time."""
    attacks = {"an index that is replaced": _replaced, "a pipe": _pipes}
    rows = {}
    for name, until in given.until.parts([name for name in attacks if given.only in name]):
        rows[name] = attacks[name](replace(given, until=until))
    return rows


# -- of a replaced index --------------------------------------------------------------------


def _replaced(given: Given) -> Row:
    chance, row = random.Random(given.seed), Row()
    target = prepared(OPERATIONS["index --overwrite"], given.folder / "readers")
    older = Operation("x.index", [target.operation.command[0], "@old.graph"])
    older = Operation("x.index", [*older.command, *target.operation.command[2:]])
    known = [_answers(path / "x.index", None) for path in (target.before, target.after)]
    assert all(known[0][name] != known[1][name] for name in known[0])
    for number in given.cases(_ROUNDS, row):
        folder = target.copy(target.before.parent / "read")
        readers = [_Reader(folder / "x.index", known, chance.random()) for _ in range(_READERS)]
        doomed = readers[: chance.randrange(_READERS)]
        for turn in range(4):
            for reader in readers:
                reader.allow(chance.randrange(_NAMES * _OPENED // 3))
            code = run_apart(partial((older if turn % 2 else target.operation).run, folder))
            if doomed and turn % 2 == 0:
                os.kill(doomed.pop().process, signal.SIGKILL)
        for reader in readers:
            reader.release()
        for reader in readers:
            exit_code = os.waitstatus_to_exitcode(os.waitpid(reader.process, 0)[1])
            wrong = {_FINE: "", -signal.SIGKILL: "", _MIXED: "answers of two generations"}.get(
                exit_code, f"a reader ends with {exit_code}"
            )
            row.add(f"a reader of round {number}", wrong or _left(target, folder, code))
        shutil.rmtree(folder)
    return row


def _left(target: Prepared, folder: Path, code: int) -> str:
    """What is wrong with the folder after replacements, the last of them by the old index."""
    if code != 0:
        return f"whoever replaces it ends with {code}"
    state, names = generation(target, folder), {path.name for path in folder.iterdir()}
    extra = names - {path.name for path in target.before.iterdir()}
    return ", ".join(sorted(extra)) + " is left" if extra else "" if state == "old" else state


class _Reader:
    """A process that opens an index and queries it repeatedly, each time after a signal."""

    def __init__(self, index: Path, known: Sequence[_Answers], luck: float) -> None:
        signals, self._signal = os.pipe()

        def query() -> int:
            os.close(self._signal)
            return _query(index, known, random.Random(luck), lambda: os.read(signals, 1))

        self.process = forked(query)
        os.close(signals)

    def allow(self, queries: int) -> None:
        """Let it send so many queries."""
        with suppress(BrokenPipeError):  # it has ended
            os.write(self._signal, bytes(queries))

    def release(self) -> None:
        """Stop its waits; readers that started later hold its pipe open until they end."""
        os.close(self._signal)


def _query(
    index: Path, known: Sequence[_Answers], chance: random.Random, wait: Callable[[], object]
) -> int:
    """Open an index and query it repeatedly; the exit code of a reader."""
    for _ in range(_OPENED):
        names = chance.sample(sorted(known[0]), _NAMES)
        answers = _answers(index, names, wait)
        if not any(all(answers[name] == each[name] for name in names) for each in known):
            return _MIXED
    return _FINE


def _answers(
    path: Path, names: Sequence[str] | None, wait: Callable[[], object] = lambda: None
) -> _Answers:
    """Related pages of the named nodes, or of all; wait before each query."""
    index, answers = cocite.open(path), _Answers()
    for name in names or list(index.nodes):
        wait()
        answers[name] = [(hit.node, hit.score) for hit in index.related(name, 5)]
    return answers


# -- of a pipe -------------------------------------------------------------------------------


def _pipes(given: Given) -> Row:
    chance, row = random.Random(given.seed), Row()
    target = prepared(OPERATIONS["related-all, lines"], given.folder / "pipes", _PAGES)
    index = str(target.before / "given.index")
    commands = [
        ["related-all", index, "-k", "20", "-o", "-", "--output-format", kind]
        for kind in ("csv", "jsonl")
    ]
    outputs = [_read(words, None, slow=False)[1] for words in commands]
    assert all(len(text) > 4 << 16 for text in outputs)  # more than a pipe holds
    for _ in given.cases(_PIPES, row):
        choice, slow = chance.randrange(len(commands)), chance.random() < 0.3
        limit = None if slow else chance.randrange(len(outputs[choice]) // 2)
        code, output, stderr = _read(commands[choice], limit, slow)
        wrong = (
            "" if code == 0 and "Traceback" not in stderr else f"exit code {code}: {stderr[-400:]}"
        )
        if not (output == outputs[choice] if slow else outputs[choice].startswith(output)):
            wrong = wrong or "other bytes"
        row.add("a slow reader" if slow else f"a reader that ends after {limit} bytes", wrong)
    return row


def _read(words: Sequence[str], limit: int | None, slow: bool) -> tuple[int, bytes, str]:
    """Read the output of a command, all or ``limit`` bytes; ``slow``: a page at a time."""
    command = [sys.executable, "-m", "cocite", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    output, size, content = process.stdout.fileno(), _PIECE, b""
    if slow:
        size = fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, 1)
    while limit is None or len(content) < limit:
        piece = os.read(output, size if limit is None else min(limit - len(content), size))
        content += piece
        if not piece:
            break
    process.stdout.close()
    stderr = process.stderr.read().decode()
    process.stderr.close()
    return process.wait(), content, stderr
