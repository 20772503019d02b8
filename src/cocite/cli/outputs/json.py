"""``--format json``: one JSON document."""

from __future__ import annotations

import json

from cocite.cli.outputs import Reply
from cocite.cli.shown import as_json

__all__ = ["show"]


def show(reply: Reply) -> None:
    """Print the document, a fact a line; no number is rounded."""
    print(as_json(json.dumps(reply.document.to_json(), ensure_ascii=False, indent=1)))
