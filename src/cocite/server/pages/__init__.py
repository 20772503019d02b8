"""Pages for people: HTML, made here, that loads nothing from elsewhere and needs no script.

``routes`` is what the application takes; a page is a file of this folder and its line here.

    address.py   the state of a page is its address      shown.py    an answer as a page shows it
    explore.py   / and /related.csv                      around.py   where pages stand on the map
    embed.py     /embed and /embed.js                    reasons.py  why, in sentences
    reference.py /docs                                   made.py     templates, style and script
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import BaseRoute

from cocite.server.pages.explore import embedded, explore, reference
from cocite.server.pages.view import assets

if TYPE_CHECKING:
    from cocite.server.service import Service

__all__ = ["routes"]


def routes(service: Service) -> list[BaseRoute]:
    """All pages."""
    return [*explore(service), *embedded(service), *reference(service), *assets()]
