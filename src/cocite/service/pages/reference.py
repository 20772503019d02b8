"""The reference of the API, at ``/docs``: the OpenAPI document as a page to read. No script."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cocite.service.openapi import described
from cocite.service.problems import KINDS

if TYPE_CHECKING:
    from cocite.service.service import Service

__all__ = ["reference"]

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem }
table { border-collapse: collapse; width: 100%; display: block; overflow-x: auto }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0 }
tr { border-bottom: 1px solid #8886 }
code { font-size: .9em }
"""
POLICY = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {}"
)


def reference(service: Service) -> list[Route]:
    """Its routes: the page, and how it looks."""
    page = _page(described(service)).encode()
    policy = POLICY.format(" ".join(service.config.ancestors) or "'none'")
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}

    async def docs(request: Request) -> Response:
        request.scope["state"]["verb"] = "docs"
        return Response(page, headers=headers, media_type="text/html")

    async def style(request: Request) -> Response:
        request.scope["state"]["verb"] = "docs"
        return Response(_STYLE, headers={"Cache-Control": "no-cache"}, media_type="text/css")

    return [Route("/docs", docs, methods=["GET"]), Route("/docs.css", style, methods=["GET"])]


def _page(document: dict[str, Any]) -> str:
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>cocite: API</title>',
        '<meta name="viewport" content="width=device-width">',
        '<link rel="stylesheet" href="/docs.css"></head><body><main>',
        f"<h1>{_text(document['info']['title'])}</h1><p>{_text(document['info']['summary'])} ",
        f"{_text(document['info']['description'])} ",
        'For programs: <a href="/openapi.json">openapi.json</a>.</p>',
    ]
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            parts.append(_operation(path, method, said))
    parts.append("<h2>What may be wrong</h2><p>Errors are problem details (RFC 9457).</p><table>")
    parts.append("<tr><th>type<th>status<th>title")
    for kind, (status, title) in KINDS.items():
        parts.append(f'<tr id="{kind}"><td><code>{kind}</code><td>{status}<td>{_text(title)}')
    return "".join([*parts, "</table></main></body></html>"])


def _operation(path: str, method: str, said: dict[str, Any]) -> str:
    title = f"<h2><code>{method.upper()} {_text(path)}</code></h2>"
    told = [title, f"<p><b>{_text(said['summary'])}.</b> {_text(said.get('description', ''))}</p>"]
    rows = [
        (each["name"], each["schema"], each["description"], each["required"])
        for each in said.get("parameters", ())
    ]
    if "requestBody" in said:
        body = said["requestBody"]["content"]["application/json"]["schema"]
        needed = body["required"]
        rows = [
            (name, schema, schema["description"], name in needed)
            for name, schema in body["properties"].items()
        ]
    if rows:
        told.append("<table><tr><th>name<th>is<th>says")
        for name, schema, text, needed in rows:
            told.append(f"<tr><td><code>{name}</code><td>{_kind(schema)}<td>{_text(text)}")
            told.append(" <b>Needed.</b>" if needed else "")
        told.append("</table>")
    return "".join(told)


def _kind(schema: dict[str, Any]) -> str:
    """What may stand there, in a few words."""
    if schema["type"] == "array":
        return f"a list of up to {schema['maxItems']:,}"
    words = " or ".join(f"<code>{_text(each)}</code>" for each in schema.get("enum", ()))
    words = words or {"string": "a text", "integer": "a whole number", "number": "a number"}.get(
        schema["type"], "true or false"
    )
    if "minimum" in schema:
        words += f", {schema['minimum']:g} or more"
    if "maximum" in schema:
        words += f", up to {schema['maximum']:,}"
    if "default" in schema:
        words += f"; <code>{_text(str(schema['default']))}</code> by default"
    return words


def _text(text: str) -> str:
    return html.escape(text)
