"""Pages for people: HTML, made here, that loads nothing from elsewhere and needs no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import BaseRoute

from cocite.server.pages.explore import explore
from cocite.server.pages.view import assets

if TYPE_CHECKING:
    from cocite.server.service import Service


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of all pages."""
    return [*explore(service), *assets()]
