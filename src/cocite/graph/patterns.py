"""Patterns of names of files, as a shell has them: ``*``, ``?``, ``[...]``, and ``**`` for folders.

Cost: that of listing the folders.
"""

from __future__ import annotations

import glob
import os

__all__ = ["KEPT_ENDING", "glob_files"]

KEPT_ENDING = ".cocite"
"""The ending of folders that hold what is made of files of links, and stand beside these."""


def glob_files(pattern: str) -> list[str]:
    """What matches a pattern, in order, without what is kept of files of links."""
    found = glob.glob(pattern, recursive=True)
    return sorted(n for n in found if not any(p.endswith(KEPT_ENDING) for p in n.split(os.sep)))
