"""Garbage in cycles, and the pauses that looking for it makes.

Python looks through all objects of a process now and then, and nothing else runs meanwhile. What a
server has loaded (modules, kernels, indexes) is some hundred thousand objects that stay: a look
takes a tenth of a second, and under load there was one a second, which was most of what the
slowest answers took. So what is there when the server begins is set aside, never to be looked at,
and what came since is looked at after more of it.

An index that is replaced was set aside, too, and is in a cycle with its readers: then, and only
then, all is looked through.
"""

from __future__ import annotations

import gc

__all__ = ["set_aside", "swept"]

_NEW = 50_000
"""Objects more than went that make Python look: a thousand requests that wait are fewer."""


def set_aside() -> None:
    """Have what is there now not be looked at again; for a process that has loaded everything."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW, 10, 10)


def swept() -> None:
    """Look through everything, what was set aside included, which then is again."""
    aside = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if aside:
        gc.freeze()
