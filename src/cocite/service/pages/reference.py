"""The reference of the API, at ``/docs``: the OpenAPI document as a page to read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cocite.service.openapi import described
from cocite.service.pages.address import State
from cocite.service.pages.explore import frame, sent, shown
from cocite.service.pages.made import filled
from cocite.service.problems import KINDS

if TYPE_CHECKING:
    from cocite.service.service import Service

__all__ = ["reference"]

_NAMES = {"string": "a text", "integer": "a whole number", "number": "a number"}


def reference(service: Service) -> list[Route]:
    """Its route. The page is made once."""
    document = described(service)
    verbs = [
        {
            "id": said["operationId"],
            "method": method.upper(),
            "path": path,
            "summary": said["summary"],
            "text": said.get("description", ""),
            "takes": _takes(said),
            "example": _example(path, said),
        }
        for path, methods in document["paths"].items()
        for method, said in methods.items()
    ]
    values = {"info": document["info"], "verbs": verbs, "kinds": KINDS}
    page = filled("reference.html", frame(service, State(), "API") | values)

    async def docs(service: Service, request: Request) -> Response:
        return sent(service, request, page, headers={"Cache-Control": "no-cache"})

    return [Route("/docs", shown(service, "docs", docs), methods=["GET"])]


def _example(path: str, said: dict[str, Any]) -> str | None:
    """An address to try, or what to send."""
    if "requestBody" in said:
        body = said["requestBody"]["content"]["application/json"]["schema"]
        examples = body.get("examples")
        return json.dumps(examples[0], ensure_ascii=False) if examples else None
    pairs = [(each["name"], each.get("example")) for each in said.get("parameters", ())]
    query = urlencode([pair for pair in pairs if pair[1] is not None], doseq=True, quote_via=quote)
    return f"{path}?{query}" if query else None if said.get("parameters") else path


def _takes(said: dict[str, Any]) -> list[dict[str, Any]]:
    """What a verb takes, in its query or in its body."""
    rows = [
        (each["name"], each["schema"], each["description"], each["required"])
        for each in said.get("parameters", ())
    ]
    if "requestBody" in said:
        body = said["requestBody"]["content"]["application/json"]["schema"]
        needed = body["required"]
        rows += [
            (name, schema, schema["description"], name in needed)
            for name, schema in body["properties"].items()
        ]
    return [
        {"name": name, "text": text, "needed": needed, **_kind(schema)}
        for name, schema, text, needed in rows
    ]


def _kind(schema: dict[str, Any]) -> dict[str, Any]:
    """What may stand there: in words, or one of some ``choices``; and what does by default."""
    if schema["type"] == "array":
        return {"is": f"a list of up to {schema['maxItems']:,}", "choices": (), "default": None}
    words = _NAMES.get(schema["type"], "true or false")
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        words += f" from {least:,} to {most:,}"
    elif least is not None:
        words += f", {least:,} or more"
    default = schema.get("default")
    return {
        "is": words,
        "choices": schema.get("enum", ()),
        "default": str(default).lower() if isinstance(default, bool) else default,
    }
