"""What all exact measures owe: ``related`` is ``similarity`` with every node, sorted."""

from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite.storage.spool import Scratch
from tests.oracles.fusion import order


def scores(index: cocite.Index, **asked: object) -> np.ndarray:
    """All pairs, by ``similarity``."""
    names = list(index.nodes)
    return np.array([[index.similarity(a, b, **asked).score for b in names] for a in names])


def assert_related_is_similarity_sorted(
    index: cocite.Index, found: np.ndarray, **asked: object
) -> None:
    """To the bit, with ties by hash, for every node and some k."""
    names = list(index.nodes)
    for u, name in enumerate(names):
        ranked = sorted(range(len(names)), key=lambda v: (-found[u, v], order(v)))
        expected = [(names[v], found[u, v], 0.0) for v in ranked if v != u and found[u, v] > 0]
        assert [hit[:3] for hit in index.related(name, 10**6, **asked)] == expected
        for k in (1, 3):
            assert [hit[:3] for hit in index.related(name, k, **asked)] == expected[:k]


def contents(path: Path) -> dict[str, bytes]:
    """The files of a store."""
    return {file.name: file.read_bytes() for file in path.iterdir()}


def scratch_folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders beside which scratch is asked for, from now on."""
    asked: list[Path] = []

    def beside(folder: Path) -> Scratch:
        asked.append(folder)
        return Scratch(folder)

    monkeypatch.setattr(Scratch, "near", beside)
    return asked
