"""Patterns of names of files, as a shell has them: ``*``, ``?``, ``[...]``, and ``**`` for folders.

Cost: that of listing the folders.
"""

from __future__ import annotations

import glob


def glob_files(pattern: str) -> list[str]:
    """What matches a pattern, in order."""
    return sorted(glob.glob(pattern, recursive=True))
