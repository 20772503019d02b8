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

from cocite.service.pages.embed import embedded
from cocite.service.pages.explore import explore
from cocite.service.pages.made import assets
from cocite.service.pages.reference import reference

if TYPE_CHECKING:
    from cocite.service.service import Service

__all__ = ["routes"]


def routes(service: Service) -> list[BaseRoute]:
    """All pages."""
    return [*explore(service), *embedded(service), *reference(service), *assets()]
