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
from functools import partial

from cocite.errors import CociteError
from tests.torture.results import Row
from tests.torture.shim import forked

SECONDS = 10
MEMORY = 600 << 20
"""Address space that a step may take beyond what the process had."""
COLUMNS = ("answer", "refused", "traceback", "crash", "hang", "memory", "wrong")
FAULTS = COLUMNS[2:]
Step = tuple[str, Callable[[], None]]
"""What a step is called, and what it does; what it raises is what it came to."""


Outcome = tuple[str, str]
"""What a step came to, one of :data:`COLUMNS`, and what is known of it."""


def run_case(steps: Sequence[Step], memory: int = MEMORY) -> list[Outcome]:
    """Run all steps, each of which may take ``memory`` more; what they come to."""
    found: list[Outcome] = []
    while len(found) < len(steps):
        found += _forked(steps[len(found) :], memory)
    return found


def judge(
    case: str,
    steps: Sequence[Step],
    row: Row,
    memory: int = MEMORY,
    beside: Callable[[Counter[str]], str] = lambda counts: "",
) -> None:
    """Run a case, and count it in ``row``: what is wrong with its steps, or else ``beside`` it."""
    found = list(zip(steps, run_case(steps, memory), strict=True))
    counts = Counter(outcome for _, (outcome, _) in found)
    faults = (f"{o}: {step}\n{what}" for (step, _), (o, what) in found if o in FAULTS)
    wrong = "; ".join(faults) or beside(counts)
    row.add(case, wrong, told=counts["refused"] > 0)
    row.seen += counts


def _forked(steps: Sequence[Step], memory: int) -> list[Outcome]:
    """What steps came to in another process, of which the last may have ended it."""
    reader, writer = os.pipe()
    process = forked(partial(_run, steps, writer, memory))
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
    if len(found) == len(steps):
        return found
    code = os.waitstatus_to_exitcode(status)
    name = signal.Signals(-code).name if code < 0 else f"exit {code}"
    hangs = late or code == -signal.SIGXCPU
    return [*found, ("hang" if hangs else "crash", "it waits" if late else name)]


def _run(steps: Sequence[Step], writer: int, memory: int) -> int:
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
