"""How pages are made: templates that escape everything, one style sheet, one script.

Names and titles are hostile text. Templates (Jinja2) escape whatever is put into them, attributes
are quoted, links are made of ``/?`` and an encoded query (``address.py``), and of a name itself
only if it is an address of http or https. Should anything get through all the same, the policy
lets no script run but ours, and nothing be loaded from elsewhere.

Style and script have names that change with what is in them, so that browsers may keep them.

Cost: a page takes some 3 ms; the templates are compiled once a process, in some 30 ms.
"""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cocite.service.pages.address import outward
from cocite.service.replies import coding, packed

if TYPE_CHECKING:
    from cocite.service.service import Service

__all__ = ["HTML", "asset", "assets", "filled", "policy"]

HTML = "text/html; charset=utf-8"
_FOLDER = files("cocite.service.pages") / "static"
_KINDS = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_CONTENT = {name: (_FOLDER / name).read_bytes() for name in _KINDS}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors {}"
)
_PARTS = re.compile(r"[^/_.,;?&=)\-]*(?:[/_.,;?&=)\-]+|$)", re.S)
_TEMPLATES = Environment(
    loader=PackageLoader("cocite.service.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def asset(name: str) -> str:
    """The address of a file of ours."""
    stem, _, ending = name.rpartition(".")
    return f"/assets/{stem}.{sha256(_CONTENT[name]).hexdigest()[:12]}.{ending}"


def _breaks(name: str) -> Markup:
    """A name that rather breaks behind its signs than within its words."""
    return Markup("<wbr>").join(_PARTS.findall(name))


_TEMPLATES.globals.update(asset=asset)
_TEMPLATES.filters["breaks"] = _breaks
_TEMPLATES.tests["outward"] = lambda name: outward(name) is not None


def filled(template: str, values: dict[str, Any]) -> bytes:
    """A page. Bytes of names that are no text are shown as such."""
    return _TEMPLATES.get_template(template).render(values).encode("utf-8", "replace")


def policy(service: Service) -> str:
    """What a page may load, and who may embed it."""
    return _POLICY.format(" ".join(service.config.ancestors) or "'none'")


def assets() -> list[Route]:
    """The routes of all files of ours."""
    return [Route(asset(name), _file(name), methods=["GET"]) for name in _KINDS]


def _file(name: str) -> Any:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Content-Type": _KINDS[name]}
    headers["Vary"] = "Accept-Encoding"

    async def endpoint(request: Request) -> Response:
        request.scope["state"]["verb"] = "asset"
        body, coded = packed(_CONTENT[name], coding(request))
        told = {} if coded is None else {"Content-Encoding": coded}
        return Response(body, headers=headers | told)

    return endpoint
