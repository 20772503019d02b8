"""Run cases in separate processes within limits, and count their outcomes.

A process that has loaded and compiled everything is forked for each case, so that a case takes
milliseconds. A case is a list of steps. A pipe carries the outcome of each step; if the process
ends in a step, that step is charged with it, and another process continues after it.

    answer     the step succeeded                      crash     a signal ended the process
    refused    an error of cocite's own hierarchy      hang      more than SECONDS of CPU time
    traceback  any other exception, or NaN or          memory    more than MEMORY beyond the initial
               infinity in an answer                             size, or a MemoryError
    leftover   an open file, or a file left over       wrong     a fault found by the kind itself
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
from functools import partial

from cocite.errors import CociteError
from tests.torture.results import Row
from tests.torture.shim import forked

SECONDS = 10
MEMORY = 600 << 20
"""Address space that a step may add to the process."""
COLUMNS = ("answer", "refused", "traceback", "crash", "hang", "memory", "wrong")
FAULTS = COLUMNS[2:]
Step = tuple[str, Callable[[], None]]
"""The name of a step and its work; an exception determines its outcome."""


Outcome = tuple[str, str]
"""The outcome of a step, one of :data:`COLUMNS`, and its details."""


def run_case(steps: Sequence[Step], memory: int = MEMORY) -> list[Outcome]:
    """Run all steps, each with ``memory`` to add; return their outcomes."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(steps):
        outcomes += _forked(steps[len(outcomes) :], memory)
    return outcomes


def judge(
    case: str,
    steps: Sequence[Step],
    row: Row,
    memory: int = MEMORY,
    check: Callable[[Counter[str]], str] = lambda counts: "",
) -> None:
    """Run a case, and count it in ``row``, with faults of its steps or of ``check``."""
    results = list(zip(steps, run_case(steps, memory), strict=True))
    counts = Counter(outcome for _, (outcome, _) in results)
    faults = (f"{o}: {step}\n{details}" for (step, _), (o, details) in results if o in FAULTS)
    wrong = "; ".join(faults) or check(counts)
    row.add(case, wrong, reported=counts["refused"] > 0)
    row.seen += counts


def _forked(steps: Sequence[Step], memory: int) -> list[Outcome]:
    """The outcomes of steps in another process, which the last one may have ended."""
    reader, writer = os.pipe()
    process = forked(partial(_run, steps, writer, memory))
    os.close(writer)
    content, start, late = b"", time.monotonic(), False
    while not late:
        left = start + 8 * SECONDS * len(steps) - time.monotonic()
        ready, _, _ = select.select([reader], [], [], max(left, 0))
        late = not ready
        if ready and not (piece := os.read(reader, 1 << 16)):
            break
        content += piece if ready else b""
    if late:
        os.kill(process, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(process, 0)
    outcomes = [pickle.loads(bytes.fromhex(line)) for line in content.decode().split("\n")[:-1]]
    if len(outcomes) == len(steps):
        return outcomes
    code = os.waitstatus_to_exitcode(status)
    name = signal.Signals(-code).name if code < 0 else f"exit {code}"
    is_hang = late or code == -signal.SIGXCPU
    return [*outcomes, ("hang" if is_hang else "crash", "it waits" if late else name)]


def _run(steps: Sequence[Step], writer: int, memory: int) -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    with open("/proc/self/statm", encoding="ascii") as file:
        initial = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (initial + memory, resource.RLIM_INFINITY))
    for _, step in steps:
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        os.write(writer, pickle.dumps(_outcome(step)).hex().encode() + b"\n")
    return 0


def _outcome(step: Callable[[], None]) -> Outcome:
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
