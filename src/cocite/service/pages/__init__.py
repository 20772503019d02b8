"""Pages for people: plain HTML, made here, that loads nothing from elsewhere.

``routes`` is what the application takes; a page is a file of this folder and its line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import BaseRoute

from cocite.service.pages.reference import reference

if TYPE_CHECKING:
    from cocite.service.service import Service

__all__ = ["routes"]


def routes(service: Service) -> list[BaseRoute]:
    """All pages."""
    return [*reference(service)]
