"""Hostile arrays: a file gets other content, with valid checksums and sizes.

One file or two at a time: zeros, extreme values, negative ones, NaN, infinities, reversed,
shuffled, random, halved, doubled, another dtype or shape, text. No content may crash the process,
hang it, take too much memory, or cause a traceback; wrong answers are allowed.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.storage.enemy import change_file

Harm = tuple[str, Callable[[Path], None]]
"""A description of a change to a copy of a store, and the function that makes it."""
_Array = NDArray[Any]
_OTHERS = ("|u1", "<u2", "<u4", "<u8", "<i8", "<f4", "<f8")
_TEXT = b'{"a": "\x1b[31m../../etc/passwd"} <script>\xff\xfe\x00'


def harms(store: Path, chance: random.Random) -> Iterator[Harm]:
    """All harms of a store; ``chance`` draws the random ones."""
    files = json.loads((store / "manifest.json").read_bytes())["files"]
    for name in sorted(files):
        array = _read(store, name, files[name])
        for description, replacement in _others(array, chance):
            yield f"{name} {description}", _change({name: replacement})
    nonempty = [name for name in sorted(files) if files[name]["shape"] != [0]]
    for _ in range(len(nonempty)):
        changed, words = {}, []
        for name in chance.sample(nonempty, min(2, len(nonempty))):
            description, changed[name] = chance.choice(
                list(_others(_read(store, name, files[name]), chance))
            )
            words.append(f"{name} {description}")
        yield " and ".join(words), _change(changed)


def _read(store: Path, name: str, entry: dict[str, Any]) -> _Array:
    return np.fromfile(store / name, entry["dtype"]).reshape(entry["shape"])


def _change(changed: dict[str, _Array]) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        for name, array in changed.items():
            (path / name).unlink()
            change_file(path, name, array)

    return harm


def _others(array: _Array, chance: random.Random) -> Iterator[tuple[str, _Array]]:
    """Replacements of an array, each with a description."""
    rng = np.random.default_rng(chance.randrange(2**32))
    flat, dtype = array.reshape(-1), array.dtype
    yield "zeros", np.zeros_like(array)
    yield "full", _bytes(b"\xff" * array.nbytes, array)
    yield "back to front", flat[::-1].reshape(array.shape)
    yield "shuffled", rng.permutation(flat).reshape(array.shape)
    yield "random", _bytes(rng.bytes(array.nbytes), array)
    yield "text", _bytes((_TEXT * (array.nbytes // len(_TEXT) + 1))[: array.nbytes], array)
    yield "half", array[: len(array) // 2]
    yield "twice", np.concatenate([array, array])
    yield "none", array[:0]
    yield "one more", np.concatenate([array, array[-1:]])
    yield "transposed", array.T if array.ndim > 1 else array.reshape(1, -1)
    for other in _OTHERS:
        if other != dtype.str and array.nbytes % np.dtype(other).itemsize == 0:
            yield f"as {other}", flat.view(other)
    yield "converted", array.astype("<i8" if dtype.kind == "u" else "<u4")
    if dtype.kind == "f":
        values: tuple[float, ...] = (np.nan, np.inf, -np.inf, -1.0, -0.0, 1e-40)
        values += (float(np.finfo(dtype).max),)
        for value in values:
            yield f"all {value:g}", np.full_like(array, value)
    else:
        largest = int(np.iinfo(dtype).max)
        values = (1, len(array), len(array) - 1, largest // 2, largest // 2 + 1, largest - 1)
        for value in values:
            yield f"all {value}", np.full_like(array, max(min(value, largest), 0))
        with np.errstate(over="ignore"):
            yield "plus one", array + dtype.type(1)
            yield "less one", array - dtype.type(1)
            yield "doubled values", array * dtype.type(2)
        yield "ascending", np.arange(array.size).astype(dtype).reshape(array.shape)
    for value in values:  # a single value: anywhere, first, last
        for place in {0, flat.size - 1, chance.randrange(max(flat.size, 1))}:
            if flat.size:
                one: _Array = flat.copy()
                one[place] = np.array(value).astype(dtype)
                yield f"[{place}] = {value:g}", one.reshape(array.shape)
    if flat.size > 1:
        first, second = sorted(chance.sample(range(flat.size), 2))
        swapped = flat.copy()
        swapped[first], swapped[second] = flat[second], flat[first]
        yield f"[{first}] and [{second}] swapped", swapped.reshape(array.shape)


def _bytes(content: bytes, array: _Array) -> _Array:
    return np.frombuffer(content, array.dtype).reshape(array.shape)
