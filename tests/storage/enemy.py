"""What an enemy does to a store: another manifest, or another file, with checksums that fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xxhash


def rewrite(store: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Let ``change`` work on the manifest, and sign the result."""
    path = store / "manifest.json"
    value = json.loads(path.read_bytes())
    del value["checksum"]
    change(value)
    body = json.dumps(value, indent=1, ensure_ascii=False)
    value["checksum"] = xxhash.xxh3_128(body.encode("utf-8", "surrogatepass")).hexdigest()
    path.write_text(json.dumps(value), encoding="utf-8")


def change_facts(store: Path, *keys: str | int, to: Any) -> None:
    """Put ``to`` in the place of one fact: ``change_facts(path, "parts", 0, "label", to="x")``."""

    def change(value: dict[str, Any]) -> None:
        at: Any = value["facts"]
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to

    rewrite(store, change)


def change_file(store: Path, name: str, array: np.ndarray[Any, Any]) -> None:
    """Another array in the place of a file, or beside the others."""
    content = np.ascontiguousarray(array).tobytes()
    (store / name).write_bytes(content)
    entry = {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "xxh3_128": xxhash.xxh3_128(content).hexdigest(),
    }
    rewrite(store, lambda value: value["files"].update({name: entry}))


class Killed(BaseException):
    """Stands for the end of the process."""


class KilledAt:
    """A function that ends the process when it is called the ``nth`` time, and counts its calls."""

    def __init__(self, real: Callable[..., Any], nth: int) -> None:
        self._real, self._nth, self.calls = real, nth, 0

    def __call__(self, *arguments: Any) -> Any:
        """As the real one does it."""
        self.calls += 1
        if self.calls == self._nth:
            raise Killed
        return self._real(*arguments)


KILLED_AT = """
import os, signal, sys
from cocite.cli.main import main
from cocite.storage import disk

left, real = int(sys.argv[1]), disk.sync_file

def sync_file(file):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    real(file)

disk.sync_file = sync_file
sys.exit(main(sys.argv[2:]))
"""
"""The program, which is killed when it has so many files written."""
