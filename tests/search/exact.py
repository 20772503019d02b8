"""Helpers for exact measures, where ``related`` equals sorted ``similarity`` scores."""

from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite.storage.spool import Scratch
from tests.oracles.fusion import order


def scores(index: cocite.Index, **options: object) -> np.ndarray:
    """The ``similarity`` of all pairs."""
    names = list(index.nodes)
    return np.array([[index.similarity(a, b, **options).score for b in names] for a in names])


def assert_related_is_similarity_sorted(
    index: cocite.Index, matrix: np.ndarray, **options: object
) -> None:
    """Check every node and several k, to the bit; a hash breaks ties."""
    names = list(index.nodes)
    for u, name in enumerate(names):
        ranked = sorted(range(len(names)), key=lambda v: (-matrix[u, v], order(v)))
        expected = [(names[v], matrix[u, v], 0.0) for v in ranked if v != u and matrix[u, v] > 0]
        assert [hit[:3] for hit in index.related(name, 10**6, **options)] == expected
        for k in (1, 3):
            assert [hit[:3] for hit in index.related(name, k, **options)] == expected[:k]


def contents(path: Path) -> dict[str, bytes]:
    """The files of a store, by name."""
    return {file.name: file.read_bytes() for file in path.iterdir()}


def scratch_folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record the folders for which scratch space is requested."""
    folders: list[Path] = []

    def record(folder: Path) -> Scratch:
        folders.append(folder)
        return Scratch(folder)

    monkeypatch.setattr(Scratch, "near", record)
    return folders
