"""The decorators of kernels, and when Numba is loaded for them: not before something is compiled.

``@kernel`` is for what Python calls, ``@helper`` for pieces of kernels, ``@shared`` for both.
``prefetch``, ``prefetch_at``, ``word_at``, ``long_at``, ``leading_zeros`` and ``ones`` are what
only the compiler can do. What stands behind all of them is in ``kernels/_numba.py``.

Loading Numba takes longer than most questions. So what is decorated waits (:class:`Later`), and is
run, when called, from the object code that is kept (``compiled/native.py``). Numba takes over, for
all kernels and for good, when one is called of which nothing is kept for its types; when calls have
taken as long as loading it does (``CALLS``: a call takes some 20 microseconds more without it);
when another thread than the first calls one, as in servers and builds, which go on for longer, but
not those of work that makes few calls (``brief``); or when it is there anyway. It is the same
machine code either way.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cocite.compiled import native

CALLS = 10_000
"""Calls without Numba, before it is worth to be loaded."""

_lock = threading.RLock()
_waiting: list[Later] = []


class Later:
    """What Numba is to make of a function by one of its decorators, once it is loaded."""

    calls = 0
    """Of all in this process, without Numba."""
    loaded = False
    """Whether Numba is there."""
    briefs = 0
    """Pieces of work under way whose threads go without Numba, too."""

    def __init__(self, decorator: str, function: Any = None) -> None:
        """Without a function it is what ``_numba`` has under that name."""
        self._decorator, self._function, self._built = decorator, function, None
        self._found: dict[tuple[str, ...], native.Native | None] = {}
        if function is not None:
            self.__name__, self.__doc__ = function.__name__, function.__doc__
            self.__module__ = function.__module__
        _waiting.append(self)

    @property
    def made(self) -> Any:
        """What Numba makes of it."""
        load_numba()
        return self._built

    def __call__(self, *args: Any) -> Any:
        if self._built is None and self._function is not None and _at_first():
            found = self._native(args)
            if found is not None:
                Later.calls += 1
                return found(args)
        return self.made(*args)

    def _native(self, args: tuple[Any, ...]) -> native.Native | None:
        kinds = native.kinds(args)
        if kinds is None:
            return None
        if kinds not in self._found:
            where = f"{self.__module__.rpartition('.')[2]}.{self.__name__}"
            ours = self.__module__.startswith("cocite.kernels.") and self._decorator != "helper"
            with _lock:
                if kinds not in self._found:  # by another thread, while this one waited
                    self._found[kinds] = native.load(where, kinds) if ours else None
        return self._found[kinds]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)


def _at_first() -> bool:
    """Whether Numba is not there, and not yet worth to be loaded."""
    alone = Later.briefs > 0 or threading.current_thread() is threading.main_thread()
    return alone and Later.calls < CALLS and "numba" not in sys.modules


@contextmanager
def brief() -> Iterator[None]:
    """For work of a few calls in threads, which are not worth to load Numba for."""
    with _lock:
        Later.briefs += 1
    try:
        yield
    finally:
        with _lock:
            Later.briefs -= 1


def load_numba() -> None:
    """Have Numba make all that waits, and stand in its place in the modules of kernels."""
    with _lock:
        if Later.loaded:
            return
        from cocite.kernels import _numba

        _numba.know(Later)
        for each in _waiting:
            made = getattr(_numba, each._decorator)
            each._built = made if each._function is None else made(each._function)
        Later.loaded = True
        for name, module in list(sys.modules.items()):
            if name.startswith("cocite.kernels."):
                for key, value in list(vars(module).items()):
                    if type(value) is Later:
                        setattr(module, key, value._built)


def _decorated(decorator: str, function: Any) -> Any:
    with _lock:
        if not Later.loaded and "numba" not in sys.modules and native.is_enabled():
            return Later(decorator, function)
        load_numba()
        from cocite.kernels import _numba

        return getattr(_numba, decorator)(function)


def kernel(function: Any) -> Any:
    """Compile on first use, keep on disk, release the interpreter lock."""
    return _decorated("kernel", function)


def shared(function: Any) -> Any:
    """A helper that Python calls, too."""
    return _decorated("shared", function)


def helper(function: Any) -> Any:
    """A piece of kernels: always compiled into its caller, which saves passing the arrays.

    Python cannot call it: see ``shared``.
    """
    return _decorated("helper", function)


prefetch: Any = Later("prefetch")
prefetch_at: Any = Later("prefetch_at")
word_at: Any = Later("word_at")
long_at: Any = Later("long_at")
leading_zeros: Any = Later("leading_zeros")
ones: Any = Later("ones")
