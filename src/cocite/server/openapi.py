"""The OpenAPI 3.1 document, generated from operations and answer schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import cocite
from cocite.search.resolver import starters
from cocite.server.requests import Operation, Parameter
from cocite.server.schemas import TEXT, WHOLE, Schema, either, list_of, ref, schemas
from cocite.server.service import KINDS, MEDIA

if TYPE_CHECKING:
    from cocite.server.service import Service

_RESULTS = {
    "related": ref("RelatedResult"),
    "similarity": ref("SimilarityResult"),
    "why": either("WhyResult", "WhyAggregateResult"),
    "complete": ref("CompleteResult"),
    "batch": ref("BatchResult"),
    "draft": ref("DraftResult"),
    "indexes": ref("IndexesResult"),
}
_HEADERS = {
    name: {"description": text, "schema": schema}
    for name, text, schema in (
        ("Cocite-Index", "The index that answered.", TEXT),
        ("Cocite-Generation", "The generation of the index.", TEXT),
        ("Cocite-Samples", "Number of samples used for the answer.", WHOLE),
        ("ETag", "Generation and samples.", TEXT),
    )
}
_TRIED = 64
"""Maximum number of nodes to try, to find one with hits."""
_QUESTION = (404, 405, 414, 421, 422, 429, 500, 503)
_BODY = (400, 408, 413, 415)


SUMMARY = "Given a page, find the related pages, from links alone."
DESCRIPTION = "Parameters, defaults and answers are the same as on the command line."
PROBES = {"/healthz": "Liveness of the server", "/readyz": "Readiness of the server"}
"""Endpoints for operators."""


def described(service: Service) -> dict[str, Any]:
    """Return a server's OpenAPI document."""
    keyed, names = service.keys is not None, example_nodes(service)
    paths: dict[str, Any] = {}
    for operation in service.operations.values():
        paths.setdefault(operation.path, {}).update(_path(operation, keyed, names))
    if service.config.options.accept_links:
        paths["/v1/links"] = {"post": _links(service)}
    for path, text in PROBES.items():
        paths[path] = {"get": _plain(path, text)}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "cocite",
            "version": cocite.__version__,
            "summary": SUMMARY,
            "description": DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {"schemas": schemas()},
    }
    if keyed:
        document["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "basic": {"type": "http", "scheme": "basic"},
        }
        document["security"] = [{"bearer": []}, {"header": []}, {"basic": []}]
    return document


def example_nodes(service: Service) -> list[str]:
    """Return a page and its best hit, for examples; [] if no page has hits."""
    index = next(iter(service.holders.values())).now.index
    for name in starters(index, _TRIED):
        for hit in index.related(name, 1):
            return [name, str(hit.node)]
    return []


def _path(operation: Operation, keyed: bool, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.text,
    }
    good: dict[str, Any] = {"application/json": {"schema": _RESULTS[operation.name]}}
    statuses: tuple[int, ...] = _QUESTION
    if operation.posted:
        body: dict[str, Any] = {"type": "object", "additionalProperties": False}
        body["properties"] = {
            each.name: {**each.schema, "description": each.option.text} for each in operation.takes
        }
        if names:
            body["examples"] = [{"nodes": names} if operation.name == "batch" else {"out": names}]
        body["required"] = [each.name for each in operation.takes if each.required]
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        if operation.name == "batch":
            good["application/x-ndjson"] = {"schema": TEXT}
        statuses = (*statuses, *_BODY)
    else:
        found["parameters"] = [_parameter(each, names) for each in operation.takes]
        if operation.takes:
            statuses = (*statuses, 413)
    responses: dict[str, Any] = {
        "200": {"description": "The answer.", "content": good, "headers": _HEADERS}
    }
    if operation.name == "related":
        link = {"description": "The next page of hits, `rel=next`.", "schema": TEXT}
        responses["200"]["headers"] = _HEADERS | {"Link": link}
    if not operation.posted and operation.name != "indexes":
        responses["304"] = {"description": "The answer has not changed (If-None-Match)."}
    responses |= _problems({*statuses, *([401] if keyed else [])})
    responses["431"] = {"description": "The request head is too large. No body."}
    found["responses"] = responses
    return {"post" if operation.posted else "get": found}


def _links(service: Service) -> dict[str, Any]:
    name = {"type": ["string", "integer"], "minLength": 1}
    weight = {"type": "number", "minimum": 1e-30, "exclusiveMaximum": 1e30, "default": 1}
    whole: Schema = {"type": "object", "additionalProperties": False}
    ends = {"source": name, "target": name}
    link = whole | {"required": list(ends), "properties": ends | {"weight": weight}}
    links = list_of(link) | {"minItems": 1, "maxItems": service.config.limits.links}
    body = whole | {"required": ["links"], "properties": {"links": links, "index": TEXT}}
    content = {"application/json": {"schema": body}, "application/x-ndjson": {"schema": link}}
    answer = {"application/json": {"schema": ref("LinksResult")}}
    stored = {"200": {"description": "The links are stored.", "content": answer}}
    return {
        "operationId": "links",
        "summary": "Add links",
        "description": "Links are on disk when the server responds, and immediately affect "
        "answers about the nodes that they join. Existing links change nothing. "
        "Requires a key with write access. Send weights only to indexes that use "
        "weights.",
        "requestBody": {"required": True, "content": content},
        "responses": stored | _problems({401, 403, *_QUESTION, *_BODY}),
    }


def _parameter(parameter: Parameter, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if names and parameter.required:
        example = names[1] if parameter.name == "b" else names[0]
        found["example"] = [example] if parameter.option.many else example
    found |= {"name": parameter.name, "in": "query", "required": parameter.required}
    found |= {"description": parameter.option.text, "schema": parameter.schema}
    return found | ({"style": "form", "explode": True} if parameter.option.many else {})


def _problems(statuses: Iterable[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in sorted(statuses):
        said = "; ".join(title for each, title in KINDS.values() if each == status)
        content = {MEDIA: {"schema": ref("Problem")}}
        found[str(status)] = {"description": f"{said}.", "content": content}
    after = {"description": "Seconds until retry.", "schema": WHOLE}
    found["429"]["headers"] = {"Retry-After": after}
    return found


def _plain(path: str, text: str) -> dict[str, Any]:
    schema = {"application/json": {"schema": ref("Status")}}
    responses = {"200": {"description": f"{text}.", "content": schema}}
    if path == "/readyz":
        responses["503"] = {"description": "The server is shutting down.", "content": schema}
    return {"operationId": path.strip("/"), "summary": text, "security": [], "responses": responses}
