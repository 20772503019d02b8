"""Asking words with a draft: it has links and no text, so its row is empty and all others stay.

Exact: in an index of the graph with the page, and the same texts, words weigh the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.drawn.part import DraftPart
from cocite.layouts.text.reader import TextReader

__all__ = ["DrawnTextReader"]


class DrawnTextReader(TextReader):
    """In the place of the layout ``text``."""

    def array(self, name: str) -> NDArray[Any]:
        """That of the part as it was built, with a row more."""
        assert isinstance(self.part, DraftPart)
        found = self.part.built.array(name)
        return np.append(found, found[-1:]) if name == "texts.offsets" else found
