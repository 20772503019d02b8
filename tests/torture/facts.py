"""Hostile facts: every key of a manifest is removed or gets another value; the checksum is valid.

Values have other types, or are huge, negative, parts of paths, NaN, unencodable text, deeply nested
or unknown keys. None may crash the process, hang it, take too much memory, write elsewhere, or
cause a traceback.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.storage.enemy import rewrite
from tests.torture.arrays import Harm

_KEY = str | int


def _deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 5.0, 0.5, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63,
    2**64, 10**30, 10**400, 1e308, -1e308, float("nan"), float("inf"), float("-inf"),
    "", "x", "../x", "/etc/passwd", "a/b", "..", ".", "a\0b", "\ud800", "\x1b[31mred\x1b[0m",
    "\u202eevil", "in", "text", "é" * 40, "x" * 100_000, "0" * 32, "nan", "1e999",
    [], {}, [None], [[]], [{}], {"": 0}, {"x": None}, ["x"] * 1000, _deep(50), _deep(400),
]  # fmt: skip


def harms(store: Path, chance: random.Random) -> Iterator[Harm]:
    """All harms of a store; of long lists only for the first entries."""
    value = json.loads((store / "manifest.json").read_bytes())
    del value["checksum"]
    for keys in _places(value):
        description = ".".join(map(str, keys))
        yield f"{description} is missing", _changed(keys, None, remove=True)
        values = list(_VALUES)
        fact = value
        for key in keys:
            fact = fact[key]
        if type(fact) is int:
            values += [fact + 1, fact - 1, fact * 2, float(fact), str(fact)]
        if isinstance(fact, str):
            values += [fact.upper(), fact + "x", f" {fact}", f"../{fact}", fact.encode().hex()]
        if isinstance(fact, list):
            values += [fact[:-1], fact + fact, fact[::-1], [fact]]
        if isinstance(fact, dict):
            values += [{**fact, "more": 1}, list(fact), {k.upper(): v for k, v in fact.items()}]
        for other in values:
            yield f"{description} = {str(other)[:40]!r}", _changed(keys, other)
    for description, content in _CONTENTS:
        yield f"manifest: {description}", _written(content)


def _places(value: Any, keys: tuple[_KEY, ...] = ()) -> Iterator[tuple[_KEY, ...]]:
    if keys:
        yield keys
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*keys, key))
    elif isinstance(value, list):
        for place in range(min(len(value), 2)):
            yield from _places(value[place], (*keys, place))


def _changed(keys: tuple[_KEY, ...], to: Any, *, remove: bool = False) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        def change(value: Any) -> None:
            for key in keys[:-1]:
                value = value[key]
            if remove:
                del value[keys[-1]]
            else:
                value[keys[-1]] = to

        rewrite(path, change)

    return harm


_CONTENTS: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("zeros", b"\0" * 1000),
    ("no UTF-8", b'{"\xff": 1}'),
    ("a list", b"[]"),
    ("null", b"null"),
    ("deep lists", b"[" * 100_000),
    ("deep objects", b'{"a":' * 100_000),
    ("a long number", b'{"cocite": ' + b"9" * 100_000 + b"}"),
    ("large", b'{"a": "' + b"x" * (1 << 24) + b'"}'),
    ("UTF-16", '{"cocite": "graph"}'.encode("utf-16")),
    ("cut", b'{"cocite": "graph", "format": 2, "facts": {'),
    ("two keys", b'{"cocite": "graph", "cocite": "index", "format": 2, "checksum": ""}'),
]


def _written(content: bytes) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        (path / "manifest.json").write_bytes(content)

    return harm
