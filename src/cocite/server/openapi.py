"""The OpenAPI document (3.1): from the options of each operation, and the keys of answers.

A key means the same in every answer, so each has one schema (``_KEYS``). An answer lists the keys
that it always has, and those that it may have, and allows no other, so that a test finds what
drifts from the documents of the command line.
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
_WHOLE: Schema = {"type": "integer"}
_SETTINGS: Schema = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _either(*names: str) -> Schema:
    return {"oneOf": [_ref(name) for name in names]}


_PATH = "from {} to the page, both included; empty where no such path is known"
_STRING_KEYS = (
    "a aggregate b direction error fault generation index interval layout links measure name node "
    "order state status text"
)
_NUMBER_KEYS = (
    "confidence contribution error_bound high low pagerank remaining score seconds target_error "
    "unattributed"
)
_COUNT_KEYS = (
    "answered bytes edges excluded ignored new_nodes of opened others position refresh replica "
    "restarts shard waiting"
)


def _typed(kind: str | list[str], names: str) -> dict[str, Schema]:
    return {name: {"type": kind} for name in names.split()}


_KEYS: dict[str, Schema] = {
    **_typed("string", _STRING_KEYS),
    **_typed("number", _NUMBER_KEYS),
    **_typed("integer", _COUNT_KEYS),
    **_typed("boolean", "matches more refined"),
    **_typed(["string", "null"], "a_title b_title date title"),
    **_typed(["integer", "null"], "available_samples samples steps"),
    **_typed(["number", "null"], "stderr"),
    "query_defaults": _SETTINGS,
    "settings": _SETTINGS,
    "answers": _list(_either("RelatedResult", "Unanswered")),
    "complete": {
        "type": "boolean",
        "description": "Whether there is no further hit: no other node has a score above 0, or "
        "passes the filters. Then there may be fewer than `k`.",
    },
    "certain_ranks": _WHOLE
    | {
        "description": "How many of the first ranks are certain: each of these hits scores more "
        "than the next one, with the probability `confidence`; the last hit than the first one "
        "that is not listed. It does not depend on `k`."
    },
    "fresh": _TEXT
    | {
        "description": "The node that the answer takes by the links that were posted, too, as if "
        "it were unseen; left out where the index itself answers."
    },
    "graph": _ref("GraphName"),
    "hits": _list(_ref("Hit")),
    "indexes": _list(_ref("Index")),
    "missing_samples": _list({"type": "object"}),
    "nodes": _list(_TEXT),
    "pages": _list(_ref("PageWhy")),
    "path_a": _list(_TEXT) | {"description": _PATH.format("a")},
    "path_b": _list(_TEXT) | {"description": _PATH.format("b")},
    "reasons": _list(_ref("Reason")),
    "shards": _ref("Shards"),
    "sides": {"type": ["array", "null"], "items": _TEXT},
    "snapshots": _list(_ref("Snapshot")),
    "titles": _list({"type": ["string", "null"]}),
}
_HOW = "measure direction settings "
_LEVEL = _HOW + "confidence interval refined "
_LOSS = " fresh samples missing_samples excluded target_error error_bound shards"
_REASONS = " reasons others remaining unattributed"
_ANSWERS: dict[str, tuple[str, str]] = {
    "Hit": ("node score stderr low high", "title pagerank"),
    "RelatedResult": (
        _LEVEL + "certain_ranks complete hits",
        "node title nodes titles aggregate order" + _LOSS,
    ),
    "SimilarityResult": ("a b score stderr low high " + _LEVEL, "a_title b_title" + _LOSS),
    "Reason": ("node contribution links samples steps path_a path_b", "title"),
    "WhyResult": ("a b score " + _HOW + _REASONS, "a_title b_title" + _LOSS),
    "WhyAggregateResult": ("b aggregate score pages " + _HOW, _LOSS),
    "PageWhy": ("node score contribution" + _REASONS, "title"),
    "NodeName": ("node", "title"),
    "CompleteResult": ("text matches more nodes", ""),
    "Unanswered": ("error", "node nodes"),
    "BatchResult": ("answers", ""),
    "GraphName": ("name edges", ""),
    "Snapshot": ("refresh samples date", ""),
    "Index": (
        "name generation measure direction layout nodes titles sides settings query_defaults "
        "samples available_samples bytes snapshots graph",
        "shards",
    ),
    "Shards": ("answered of", ""),
    "Shard": (
        "shard replica node samples state fault waiting seconds opened restarts",
        "",
    ),
    "IndexesResult": ("indexes", ""),
    "LinksResult": ("index links ignored new_nodes position", ""),
    "Status": ("status", ""),
}
"""Answers, and what they are made of: the keys that each has, and those that it may have."""
_OWN: dict[str, dict[str, Schema]] = {
    "CompleteResult": {"nodes": _list(_ref("NodeName"))},
    "GraphName": {"name": {"type": ["string", "null"]}},
    "LinksResult": {"links": _WHOLE},
    "Index": {
        "nodes": _WHOLE,
        "titles": {"type": "boolean"},
        "shards": _list(_ref("Shard")),
    },
}
"""Keys that are counts, or richer, in one answer."""
_PROBLEM: Schema = {
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
}


def schemas() -> dict[str, Schema]:
    """Return the schemas of all answers."""
    found = {"Problem": _PROBLEM}
    for name, (needed, other) in _ANSWERS.items():
        keys, own = f"{needed} {other}".split(), _OWN.get(name, {})
        found[name] = {
            "type": "object",
            "properties": {key: own[key] if key in own else _KEYS[key] for key in keys},
            "required": needed.split(),
            "additionalProperties": False,
        }
    return found


_RESULTS = {
    "related": _ref("RelatedResult"),
    "similarity": _ref("SimilarityResult"),
    "why": _either("WhyResult", "WhyAggregateResult"),
    "complete": _ref("CompleteResult"),
    "batch": _ref("BatchResult"),
    "indexes": _ref("IndexesResult"),
}
_HEADERS = {
    name: {"description": text, "schema": schema}
    for name, text, schema in (
        ("Cocite-Index", "The index that answered.", _TEXT),
        ("Cocite-Generation", "Its generation.", _TEXT),
        ("Cocite-Samples", "Of how many samples the answer is made.", _WHOLE),
        ("ETag", "Generation and samples.", _TEXT),
    )
}
_QUESTION = (404, 405, 414, 421, 422, 429, 500, 503)
_BODY = (400, 408, 413, 415)


SUMMARY = "Given a page, find the related pages, from links alone."
DESCRIPTION = "Names, defaults and answers are those of the command line."
PROBES = {"/healthz": "Whether the server lives", "/readyz": "Whether it answers"}
"""What says how a server is, for those who look after it."""


def described(service: Service) -> dict[str, Any]:
    """The document of a server."""
    keyed, names = service.keys is not None, example_nodes(service)
    paths = {
        f"/v1/{operation.name}": _path(operation, keyed, names)
        for operation in service.operations.values()
    }
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
    good: dict[str, Any] = {"application/json": {"schema": _RESULTS[operation.name]}}
    statuses: tuple[int, ...] = _QUESTION
    if operation.name == "batch":
        body: dict[str, Any] = {"type": "object", "additionalProperties": False}
        body["properties"] = {
            each.name: {**each.schema, "description": each.option.text} for each in operation.takes
        }
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
    responses: dict[str, Any] = {
        "200": {"description": "The answer.", "content": good, "headers": _HEADERS}
    }
    if operation.name not in ("batch", "indexes"):
        responses["304"] = {"description": "The client has the answer (If-None-Match)."}
    for status in sorted({*statuses, *([401] if keyed else [])}):
        responses[str(status)] = _problem(status)
    responses["431"] = {"description": "The head of the request is too large; without a body."}
    found["responses"] = responses
    return {"post" if operation.name == "batch" else "get": found}


def _links(service: Service) -> dict[str, Any]:
    limits, name = service.config.limits, {"type": ["string", "integer"], "minLength": 1}
    weight = {"type": "number", "minimum": 1e-30, "exclusiveMaximum": 1e30, "default": 1}
    link: Schema = {"type": "object", "additionalProperties": False}
    link |= {"required": ["source", "target"]}
    link["properties"] = {"source": name, "target": name, "weight": weight}
    body: Schema = {"type": "object", "additionalProperties": False, "required": ["links"]}
    links = _list(link) | {"minItems": 1, "maxItems": limits.links}
    body["properties"] = {"links": links, "index": _TEXT}
    content = {"application/json": {"schema": body}, "application/x-ndjson": {"schema": link}}
    answer = {"application/json": {"schema": _ref("LinksResult")}}
    responses: dict[str, Any] = {"200": {"description": "Links are stored.", "content": answer}}
    for status in sorted({401, 403, *_QUESTION, *_BODY}):
        responses[str(status)] = _problem(status)
    return {
        "operationId": "links",
        "summary": "Links that are new",
        "description": "They are on the disk when this answers, and count at once for the nodes "
        "that they join. Links that are there already change nothing. The key must be one that "
        "may write. Weights are for indexes that go by them.",
        "requestBody": {"required": True, "content": content},
        "responses": responses,
    }


def _parameter(parameter: Parameter, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if names and parameter.required:
        example = names[1] if parameter.name == "b" else names[0]
        found["example"] = [example] if parameter.option.many else example
    found |= {"name": parameter.name, "in": "query", "required": parameter.required}
    found |= {"description": parameter.option.text, "schema": parameter.schema}
    return found | ({"style": "form", "explode": True} if parameter.option.many else {})


def _problem(status: int) -> dict[str, Any]:
    said = "; ".join(title for each, title in KINDS.values() if each == status)
    content = {MEDIA: {"schema": _ref("Problem")}}
    found: dict[str, Any] = {"description": f"{said}.", "content": content}
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
