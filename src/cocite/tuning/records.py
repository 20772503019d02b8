"""What was judged, kept as it comes: an interrupted run goes on behind it.

A record is a candidate in a round: a line of JSON (round, point, bytes, seconds, pairs, titles),
and behind it the judgement's parts and wholes, float64. Records are pieces of a journal
(``store/journal.py``), so that one which was cut while it was written is as if it had not been.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cocite.evaluation import Judgement
from cocite.evaluation.suite import Point
from cocite.store import Journal

__all__ = ["Record", "Records"]


@dataclass(frozen=True)
class Record:
    """One candidate, judged: ``bytes`` of its index, ``seconds`` of its build, ``asking`` seconds
    for all its questions.
    """

    judgement: Judgement
    bytes: int
    seconds: float
    asking: float


class Records:
    """``records[round, point]``; ``add`` keeps one on disk."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self._found: dict[tuple[int, str], Record] = {}

    def __enter__(self) -> Records:
        self._journal.__enter__()
        data = self._journal.path.read_bytes()
        for begin, size in zip(self._journal.begins, self._journal.sizes, strict=True):
            key, record = _unpacked(data[begin : begin + size])
            self._found[key] = record
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def seconds(self) -> float:
        """What all of them took."""
        return sum(r.seconds + r.asking for r in self._found.values())

    def get(self, turn: int, point: Point) -> Record | None:
        """What is there of a candidate in a round."""
        return self._found.get((turn, _name(point)))

    def add(self, turn: int, point: Point, record: Record) -> Record:
        """Keep it, and give it back."""
        key = turn, _name(point)
        self._journal.append(_packed(key, record))
        self._found[key] = record
        return record


def _name(point: Point) -> str:
    return json.dumps([point.measure, point.direction, point.build, point.ask])


def _packed(key: tuple[int, str], record: Record) -> bytes:
    found = record.judgement
    head = {
        "key": list(key),
        "titles": found.titles,
        "queries": len(found.parts),
        "pairs": found.pairs,
        "bytes": record.bytes,
        "seconds": record.seconds,
        "asking": record.asking,
    }
    arrays = np.concatenate([found.parts.ravel(), found.wholes.ravel()]).astype("<f8")
    return json.dumps(head).encode() + b"\n" + arrays.tobytes()


def _unpacked(piece: bytes) -> tuple[tuple[int, str], Record]:
    line, _, rest = piece.partition(b"\n")
    head = json.loads(line)
    shape = head["queries"], len(head["titles"])
    parts, wholes = np.frombuffer(rest, "<f8").reshape(2, *shape)
    judgement = Judgement(tuple(head["titles"]), parts, wholes, head["pairs"])
    turn, name = head["key"]
    return (turn, name), Record(judgement, head["bytes"], head["seconds"], head["asking"])
