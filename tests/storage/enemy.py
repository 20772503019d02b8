"""Hostile changes to a store: another manifest or file, with valid checksums."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xxhash


def rewrite(store: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Apply ``change`` to the manifest, and update its checksum."""
    path = store / "manifest.json"
    value = json.loads(path.read_bytes())
    del value["checksum"]
    change(value)
    body = json.dumps(value, indent=1, ensure_ascii=False)
    value["checksum"] = xxhash.xxh3_128(body.encode("utf-8", "surrogatepass")).hexdigest()
    path.write_text(json.dumps(value), encoding="utf-8")


def change_facts(store: Path, *keys: str | int, to: Any) -> None:
    """Replace one fact: ``change_facts(path, "parts", 0, "label", to="x")``."""

    def change(value: dict[str, Any]) -> None:
        facts: Any = value["facts"]
        for key in keys[:-1]:
            facts = facts[key]
        facts[keys[-1]] = to

    rewrite(store, change)


def change_file(store: Path, name: str, array: np.ndarray[Any, Any]) -> None:
    """Replace or add a file that holds ``array``."""
    content = np.ascontiguousarray(array).tobytes()
    (store / name).write_bytes(content)
    entry = {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "xxh3_128": xxhash.xxh3_128(content).hexdigest(),
    }
    rewrite(store, lambda value: value["files"].update({name: entry}))


class Killed(BaseException):
    """Simulates the end of the process."""


class KilledAt:
    """A function that raises ``Killed`` at its ``nth`` call, and counts its calls."""

    def __init__(self, real: Callable[..., Any], nth: int) -> None:
        self._real, self._nth, self.calls = real, nth, 0

    def __call__(self, *arguments: Any) -> Any:
        """Call the real function."""
        self.calls += 1
        if self.calls == self._nth:
            raise Killed
        return self._real(*arguments)
