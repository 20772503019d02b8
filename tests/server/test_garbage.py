"""What is set aside is not looked through again, and still goes when it is asked for."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from cocite.server.load import set_aside, swept


class Ring:
    """An object in a cycle with itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What is set is of the whole process."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_is_there_is_set_aside_and_what_comes_is_looked_at() -> None:
    before = gc.get_threshold()[0]
    loaded = Ring()
    assert any(each is loaded for each in gc.get_objects())
    set_aside()
    assert not any(each is loaded for each in gc.get_objects())
    assert gc.get_threshold()[0] > before
    later = Ring()
    gone = weakref.ref(later)
    del later
    gc.collect()
    assert gone() is None


def test_what_was_set_aside_goes_when_all_is_swept_and_the_rest_stays_aside() -> None:
    loaded, kept = Ring(), Ring()
    set_aside()
    gone = weakref.ref(loaded)
    del loaded
    gc.collect()
    assert gone() is not None  # an index that was replaced would stay open
    swept()
    assert gone() is None
    assert not any(each is kept for each in gc.get_objects())


def test_nothing_is_set_aside_by_sweeping_alone() -> None:
    swept()
    assert gc.get_freeze_count() == 0
