"""The OpenAPI document (3.1): made of the table of parameters, and of what answers look like.

Schemas of answers name all that a document of the command line may have in JSON, and allow nothing
else, so that a test finds what drifts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cocite
from cocite.search.resolver import prominent
from cocite.server.requests import Operation, Parameter
from cocite.server.service import KINDS, MEDIA

if TYPE_CHECKING:
    from cocite.server.service import Service


Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_WHOLE: Schema = {"type": "integer"}
_YES: Schema = {"type": "boolean"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_MAYBE: Schema = {"type": ["number", "null"]}
_SETTINGS: Schema = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _object(needed: dict[str, Schema], other: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": needed | (other or {}),
        "required": list(needed),
        "additionalProperties": False,
    }


_CERTAIN = _WHOLE | {
    "description": "How many of the first ranks are certain: each of these hits scores more than "
    "the next one, with the probability `confidence`; the last hit than the first one that is not "
    "listed. It does not depend on `k`."
}
_HOW = {"measure": _TEXT, "direction": _TEXT, "settings": _SETTINGS}
_LEVEL = {"confidence": _NUMBER, "interval": _TEXT, "refined": _YES}
_LOSS = {"samples": _WHOLE, "missing_samples": _list({"type": "object"}), "excluded": _WHOLE}
_LOSS |= {"target_error": _NUMBER, "error_bound": _NUMBER}
_LOSS["shards"] = {"type": "object", "properties": {"answered": _WHOLE, "of": _WHOLE}}
_SCORE = {"score": _NUMBER, "stderr": _MAYBE, "low": _NUMBER, "high": _NUMBER}
_REASONS = {
    "reasons": _list(_ref("Reason")),
    "others": _WHOLE,
    "remaining": _NUMBER,
    "unattributed": _NUMBER,
}
_PATH = "from {} to the page, both included; empty where no such path is known"
_SCHEMAS: dict[str, Schema] = {
    "Hit": _object({"node": _TEXT, **_SCORE}, {"title": _MAYBE_TEXT, "pagerank": _NUMBER}),
    "RelatedResult": _object(
        _HOW | _LEVEL | {"certain_ranks": _CERTAIN, "hits": _list(_ref("Hit"))},
        {
            "node": _TEXT,
            "title": _MAYBE_TEXT,
            "nodes": _list(_TEXT),
            "titles": _list(_MAYBE_TEXT),
            "aggregate": _TEXT,
            "order": _TEXT,
            **_LOSS,
        },
    ),
    "SimilarityResult": _object(
        {"a": _TEXT, "b": _TEXT} | _HOW | _LEVEL | _SCORE,
        {"a_title": _MAYBE_TEXT, "b_title": _MAYBE_TEXT, **_LOSS},
    ),
    "Reason": _object(
        {
            "node": _TEXT,
            "contribution": _NUMBER,
            "links": _TEXT,
            "samples": {"type": ["integer", "null"]},
            "steps": {"type": ["integer", "null"]},
            "path_a": _list(_TEXT) | {"description": _PATH.format("a")},
            "path_b": _list(_TEXT) | {"description": _PATH.format("b")},
        },
        {"title": _MAYBE_TEXT},
    ),
    "WhyResult": _object(
        {"a": _TEXT, "b": _TEXT, "score": _NUMBER} | _HOW | _REASONS,
        {"a_title": _MAYBE_TEXT, "b_title": _MAYBE_TEXT, **_LOSS},
    ),
    "WhyAggregateResult": _object(
        {"b": _TEXT, "aggregate": _TEXT, "score": _NUMBER, "pages": _list(_ref("PageWhy"))} | _HOW,
        _LOSS,
    ),
    "PageWhy": _object(
        {"node": _TEXT, "score": _NUMBER, "contribution": _NUMBER} | _REASONS,
        {"title": _MAYBE_TEXT},
    ),
    "CompleteResult": _object(
        {
            "text": _TEXT,
            "matches": _YES,
            "more": _YES,
            "nodes": _list(_object({"node": _TEXT}, {"title": _MAYBE_TEXT})),
        }
    ),
    "Unanswered": _object({"error": _TEXT}, {"node": _TEXT, "nodes": _list(_TEXT)}),
    "BatchResult": _object(
        {"answers": _list({"oneOf": [_ref("RelatedResult"), _ref("Unanswered")]})}
    ),
    "Index": _object(
        {
            "name": _TEXT,
            "generation": _TEXT,
            "measure": _TEXT,
            "direction": _TEXT,
            "layout": _TEXT,
            "nodes": _WHOLE,
            "titles": _YES,
            "sides": {"type": ["array", "null"], "items": _TEXT},
            "settings": _SETTINGS,
            "query_defaults": _SETTINGS,
            "samples": {"type": ["integer", "null"]},
            "available_samples": {"type": ["integer", "null"]},
            "bytes": _WHOLE,
            "snapshots": _list(
                _object({"refresh": _WHOLE, "samples": _WHOLE, "date": _MAYBE_TEXT})
            ),
            "graph": _object({"name": _MAYBE_TEXT, "edges": _WHOLE}),
        },
        {"shards": _list(_ref("Shard"))},
    ),
    "Shard": _object(
        {
            "shard": _WHOLE,
            "replica": _WHOLE,
            "node": _TEXT,
            "samples": _WHOLE,
            "state": _TEXT,
            "fault": _TEXT,
            "waiting": _WHOLE,
            "seconds": _NUMBER,
            "opened": _WHOLE,
            "restarts": _WHOLE,
        }
    ),
    "IndexesResult": _object({"indexes": _list(_ref("Index"))}),
    "Status": _object({"status": _TEXT}),
    "Problem": {
        "type": "object",
        "properties": {
            "type": {"type": "string", "format": "uri-reference"},
            "title": _TEXT,
            "status": _WHOLE,
            "detail": _TEXT,
            "suggestions": _list(_TEXT),
            "retry_after": _WHOLE,
        },
        "required": ["type", "title", "status", "detail"],
    },
}
_ANSWERS = {
    "related": _ref("RelatedResult"),
    "similarity": _ref("SimilarityResult"),
    "why": {"oneOf": [_ref("WhyResult"), _ref("WhyAggregateResult")]},
    "complete": _ref("CompleteResult"),
    "batch": _ref("BatchResult"),
    "indexes": _ref("IndexesResult"),
}
_QUESTION = (404, 405, 414, 421, 422, 429, 500, 503)
_BODY = (400, 408, 413, 415)


def described(service: Service) -> dict[str, Any]:
    """The document of a server."""
    keyed, names = service.keys is not None, _names(service)
    paths = {
        f"/v1/{operation.name}": _path(operation, keyed, names)
        for operation in service.operations.values()
    }
    for path, text in (("/healthz", "Whether the server lives"), ("/readyz", "Whether it answers")):
        paths[path] = {"get": _plain(path, text)}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "cocite",
            "version": cocite.__version__,
            "summary": "Given a page, find the related pages, from links alone.",
            "description": "Names, defaults and answers are those of the command line.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {"schemas": _SCHEMAS},
    }
    if keyed:
        document["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "basic": {"type": "http", "scheme": "basic"},
        }
        document["security"] = [{"bearer": []}, {"header": []}, {"basic": []}]
    return document


def _names(service: Service) -> list[str]:
    """A well-known page and the one most related to it, to show what a question looks like; none if
    there are no such.
    """
    index = next(iter(service.holders.values())).now.index
    for name, _ in prominent(index, 1):
        return [name, str(index.related(name, 1)[0].node)]
    return []


def _path(operation: Operation, keyed: bool, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.text,
    }
    good: dict[str, Any] = {"application/json": {"schema": _ANSWERS[operation.name]}}
    statuses: tuple[int, ...] = _QUESTION
    if operation.name == "batch":
        body = _object({}, {})
        body["properties"] = {each.name: _described(each) for each in operation.takes}
        if names:
            body["examples"] = [{"nodes": names}]
        body["required"] = [each.name for each in operation.takes if each.required]
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        good["application/x-ndjson"] = {"schema": _TEXT}
        statuses = (*statuses, *_BODY)
    else:
        found["parameters"] = [_parameter(each, names) for each in operation.takes]
        if operation.takes:
            statuses = (*statuses, 413)
    headers = {
        "Cocite-Index": {"description": "The index that answered.", "schema": _TEXT},
        "Cocite-Generation": {"description": "Its generation.", "schema": _TEXT},
        "Cocite-Samples": {
            "description": "Of how many samples the answer is made.",
            "schema": _WHOLE,
        },
        "ETag": {"description": "Generation and samples.", "schema": _TEXT},
    }
    responses: dict[str, Any] = {
        "200": {"description": "The answer.", "content": good, "headers": headers}
    }
    if operation.name not in ("batch", "indexes"):
        responses["304"] = {"description": "The client has the answer (If-None-Match)."}
    for status in sorted({*statuses, *([401] if keyed else [])}):
        responses[str(status)] = _problem(status)
    responses["431"] = {"description": "The head of the request is too large; without a body."}
    found["responses"] = responses
    return {"post" if operation.name == "batch" else "get": found}


def _described(parameter: Parameter) -> Schema:
    return {**parameter.schema, "description": parameter.text}


def _parameter(parameter: Parameter, names: list[str]) -> dict[str, Any]:
    shown: Any = None
    if names and parameter.required:
        shown = names[1] if parameter.name == "b" else names[0]
        shown = [shown] if parameter.many else shown
    return {
        **({} if shown is None else {"example": shown}),
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.text,
        "schema": parameter.schema,
        **({"style": "form", "explode": True} if parameter.many else {}),
    }


def _problem(status: int) -> dict[str, Any]:
    said = "; ".join(title for each, title in KINDS.values() if each == status)
    found: dict[str, Any] = {
        "description": f"{said}.",
        "content": {MEDIA: {"schema": _ref("Problem")}},
    }
    if status == 429:
        found["headers"] = {
            "Retry-After": {"description": "In how many seconds.", "schema": _WHOLE}
        }
    return found


def _plain(path: str, text: str) -> dict[str, Any]:
    schema = {"application/json": {"schema": _ref("Status")}}
    responses = {"200": {"description": f"{text}.", "content": schema}}
    if path == "/readyz":
        responses["503"] = {"description": "The server is about to end.", "content": schema}
    return {
        "operationId": path.strip("/"),
        "summary": text,
        "security": [],
        "responses": responses,
    }
