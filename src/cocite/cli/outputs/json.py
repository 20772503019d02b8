"""``--format json``: one JSON document."""

from __future__ import annotations

import json

from cocite.cli.outputs import Reply

__all__ = ["show"]


def show(reply: Reply) -> None:
    """Print the document, a fact a line; no number is rounded."""
    print(json.dumps(reply.document.to_json(), ensure_ascii=False, indent=1))
