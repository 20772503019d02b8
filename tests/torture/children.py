"""Cases in processes of their own, within bounds: what ends one, and what it took, is counted.

A process that has loaded and compiled everything is forked for each case, so that a case takes
milliseconds. A case is a list of steps. What a step comes to is told through a pipe; if the process
ends in one, that step is charged with it, and another process goes on behind it.

    answer     the step ended well                     crash     a signal ended the process
    refused    an error of cocite's own tree           hang      more than SECONDS of the processor
    traceback  any other exception, or a number        memory    more than MEMORY beyond what the
               that is none in an answer                         process had, or a MemoryError
    leftover   something is open, or lies about        wrong     what a kind of fault finds wrong
"""

import os
import pickle
import resource
import select
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cocite.errors import CociteError
from tests.torture.results import Row

SECONDS = 10
MEMORY = 600 << 20
"""Address space that a step may take beyond what the process had."""
COLUMNS = ("answer", "refused", "traceback", "crash", "hang", "memory", "wrong")
FAULTS = COLUMNS[2:]
Step = tuple[str, Callable[[], None]]
"""What a step is called, and what it does; what it raises is what it came to."""


@dataclass(frozen=True)
class Failure:
    """A step that came to what none may come to: which, in which case, and what is known of it."""

    case: str
    step: str
    outcome: str
    what: str


@dataclass
class Table:
    """How many cases there were, and what their steps came to."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, case: str, step: str, outcome: str, what: str) -> None:
        """Count a step."""
        self.counts[outcome] += 1
        if outcome in FAULTS:
            self.failures.append(Failure(case, step, outcome, what))

    def to_json(self) -> dict[str, int]:
        """A row of the table."""
        return {"cases": self.cases} | {name: self.counts[name] for name in COLUMNS}


def run_case(case: str, steps: Sequence[Step], table: Table, memory: int = MEMORY) -> None:
    """Run all steps, and count what they come to in ``table``; each may take ``memory`` more."""
    table.cases += 1
    done = 0
    while done < len(steps):
        found, ended = _forked(steps[done:], memory)
        for outcome, what in found:
            table.add(case, steps[done][0], outcome, what)
            done += 1
        if ended and done < len(steps):
            table.add(case, steps[done][0], *ended)
            done += 1


def judge(
    case: str,
    steps: Sequence[Step],
    row: Row,
    memory: int = MEMORY,
    beside: Callable[[Table], str] = lambda table: "",
) -> None:
    """Run a case, and count it in ``row``: what is wrong with its steps, or else ``beside`` it."""
    table = Table()
    run_case(case, steps, table, memory)
    wrong = "; ".join(f"{one.outcome}: {one.step}\n{one.what}" for one in table.failures)
    row.add(case, wrong or beside(table), told=table.counts["refused"] > 0)
    row.seen += table.counts


def _forked(
    steps: Sequence[Step], memory: int
) -> tuple[list[tuple[str, str]], tuple[str, str] | None]:
    """What steps came to in another process, and what ended it, if it did not get to the end."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        try:
            _run(steps, writer, memory)
        finally:
            os._exit(0)
    os.close(writer)
    content, begun, late = b"", time.monotonic(), False
    while not late:
        left = begun + 8 * SECONDS * len(steps) - time.monotonic()
        ready, _, _ = select.select([reader], [], [], max(left, 0))
        late = not ready
        if ready and not (piece := os.read(reader, 1 << 16)):
            break
        content += piece if ready else b""
    if late:
        os.kill(process, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(process, 0)
    found = [pickle.loads(bytes.fromhex(line)) for line in content.decode().split("\n")[:-1]]
    if late:
        return found, ("hang", "it waits")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        return found, ("hang" if number == signal.SIGXCPU else "crash", name)
    return found, ("crash", f"exit {os.WEXITSTATUS(status)}") if len(found) < len(steps) else None


def _run(steps: Sequence[Step], writer: int, memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    with open("/proc/self/statm", encoding="ascii") as file:
        own = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + memory, resource.RLIM_INFINITY))
    for _, step in steps:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        os.write(writer, pickle.dumps(_outcome(step)).hex().encode() + b"\n")


def _outcome(step: Callable[[], None]) -> tuple[str, str]:
    try:
        step()
    except CociteError as error:
        return "refused", f"{type(error).__name__}: {error}"[:300]
    except MemoryError:
        return "memory", traceback.format_exc()[-1500:]
    except AssertionError as error:
        return "wrong", str(error)[:1500]
    except BaseException:
        return "traceback", traceback.format_exc()[-1500:]
    return "answer", ""
