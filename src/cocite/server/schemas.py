"""JSON Schemas of the answers, for the OpenAPI document and assistants.

A key has the same meaning, and therefore the same schema, in every answer (``_KEYS``). Schemas
allow only the listed keys, so tests detect differences from the command line's JSON.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
_SETTINGS: Schema = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}


def ref(name: str) -> Schema:
    """Return a reference to an answer's schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(of: Schema) -> Schema:
    """Return the schema of a list of ``of``."""
    return {"type": "array", "items": of}


def either(*names: str) -> Schema:
    """Return the schema of one of several answers."""
    return {"oneOf": [ref(name) for name in names]}


_PATH = "From {} to the page, both included; empty if no path is known."
_STRING_KEYS = (
    "a aggregate b direction fault generation index interval layout links measure name node "
    "order state status text"
)
_NUMBER_KEYS = (
    "confidence contribution error_bound high low pagerank remaining score seconds target_error "
    "unattributed"
)
_COUNT_KEYS = (
    "answered bytes edges excluded ignored new_nodes of opened others position refresh replica "
    "rank restarts shard total waiting"
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
    "answers": list_of(either("RelatedResult", "Unanswered")),
    "complete": {
        "type": "boolean",
        "description": "Whether the list has all hits, possibly fewer than `k`: no other node "
        "has a score above 0 and passes the filters.",
    },
    "certain_ranks": WHOLE
    | {
        "description": "The number of leading ranks that are certain: with probability "
        "`confidence`, each of these hits scores higher than the next one, listed or not. The "
        "number does not depend on `k`."
    },
    "fresh": TEXT
    | {
        "description": "The node whose posted links the answer includes; absent if the answer "
        "comes only from the index."
    },
    "error": ref("Problem"),
    "graph": ref("GraphName"),
    "hits": list_of(ref("Hit")),
    "indexes": list_of(ref("Index")),
    "missing_samples": list_of({"type": "object"}),
    "nodes": list_of(TEXT),
    "pages": list_of(ref("PageWhy")),
    "path_a": list_of(TEXT) | {"description": _PATH.format("a")},
    "path_b": list_of(TEXT) | {"description": _PATH.format("b")},
    "reasons": list_of(ref("Reason")),
    "shards": ref("Shards"),
    "sides": {"type": ["array", "null"], "items": TEXT},
    "snapshots": list_of(ref("Snapshot")),
    "titles": list_of({"type": ["string", "null"]}),
    "unknown": list_of(TEXT) | {"description": "Names in the links that the index does not have."},
}
_HOW = "measure direction settings "
_LEVEL = _HOW + "confidence interval refined "
_LOSS = " fresh samples missing_samples excluded target_error error_bound shards"
_REASONS = " reasons others remaining unattributed"
_ANSWERS: dict[str, tuple[str, str]] = {
    "Hit": ("rank node score stderr low high", "title pagerank"),
    "RelatedResult": (
        _LEVEL + "certain_ranks complete hits",
        "node title nodes titles aggregate order total" + _LOSS,
    ),
    "DraftResult": (_LEVEL + "certain_ranks complete hits node unknown", "title order" + _LOSS),
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
    "Shard": ("shard replica node samples state fault waiting seconds opened restarts", ""),
    "IndexesResult": ("indexes", ""),
    "LinksResult": ("index links ignored new_nodes position", ""),
    "Status": ("status", ""),
}
"""Required and optional keys of answers and their components."""
_OWN: dict[str, dict[str, Schema]] = {
    "CompleteResult": {"nodes": list_of(ref("NodeName"))},
    "GraphName": {"name": {"type": ["string", "null"]}},
    "LinksResult": {"links": WHOLE},
    "Index": {"nodes": WHOLE, "titles": {"type": "boolean"}, "shards": list_of(ref("Shard"))},
}
"""Keys with a different meaning in one answer."""
_PROBLEM: Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": TEXT,
        "status": WHOLE,
        "detail": TEXT,
        "suggestions": list_of(TEXT),
        "retry_after": WHOLE,
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
