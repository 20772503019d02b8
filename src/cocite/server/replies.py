"""Responses: headers, caching and compression.

An ETag contains the index's generation and the number of samples. If the client has an answer from
the same generation and at least as many samples, the response is 304, without computation. Answers
from all samples may be cached for the reload interval; answers from fewer samples, under load, may
not. With keys, shared caches may not store answers.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from cocite.errors import CociteError, StoreError
from cocite.server.requests import pairs_of
from cocite.server.service import MEDIA, Problem, fault, problem_of

if TYPE_CHECKING:
    from cocite.server.service import ServedQuery, Service

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

JSON, NDJSON = "application/json", "application/x-ndjson"
_LEAST = 1024
"""Minimum bytes for compression."""
_PIECE = 1 << 17
"""Bytes to send at a time."""
_TAG = re.compile(r'(?:W/)?"([0-9a-f]{16})-([0-9]+)"')
_CODED = re.compile(r"\s*(zstd|gzip|\*)\s*(?:;\s*q\s*=\s*([0-9.]+))?\s*", re.I)


def has_it(request: Request, asking: ServedQuery) -> bool:
    """Return whether the client has an answer from this generation and enough samples."""
    tags = request.headers.get("if-none-match")
    if not tags:
        return False
    generation, samples = asking.generation, asking.samples or 0
    return any(match[1] == generation and int(match[2]) >= samples for match in _TAG.finditer(tags))


def coding(request: Request) -> str | None:
    """Return the client's preferred encoding, ``zstd`` or ``gzip``, or None."""
    likes: dict[str, float] = {}
    for part in request.headers.get("accept-encoding", "").split(","):
        if match := _CODED.fullmatch(part):
            with suppress(ValueError):
                likes[match[1].lower()] = float(match[2] or 1)
    best = max(("zstd", "gzip"), key=lambda name: likes.get(name, 0.0))
    return best if likes.get(best, 0.0) > 0 else None


def packed(body: bytes, how: str | None) -> tuple[bytes, str | None]:
    """Return the body, compressed unless it is short, and the encoding or None."""
    if how is None or len(body) < _LEAST:
        return body, None
    if how == "zstd":
        return zstd.compress(body, 3), how
    made = zlib.compressobj(5, zlib.DEFLATED, 31)
    return made.compress(body) + made.flush(), how


def caching(service: Service, asking: ServedQuery | None) -> dict[str, str]:
    """Return an answer's caching headers."""
    vary = "Accept-Encoding"
    if service.keys is not None:
        vary += ", Authorization, X-API-Key"
    if asking is None:
        return {"Cache-Control": "no-store", "Vary": vary}
    kept = "private" if service.keys is not None else "public"
    fixed = asking.full and asking.held.fresh is None
    age = int(service.config.options.reload_interval) if fixed else 0
    control = f"{kept}, max-age={age}" if age else f"{kept}, no-cache"
    found = {"Cache-Control": control, "ETag": asking.tag, "Vary": vary}
    found |= {"Cocite-Index": asking.name, "Cocite-Generation": asking.held.generation}
    return found if asking.samples is None else found | {"Cocite-Samples": str(asking.samples)}


def reply(
    service: Service,
    content: tuple[bytes, str | None],
    media: str = JSON,
    asking: ServedQuery | None = None,
    headers: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    """Create a response with a body and its encoding, from :func:`packed`."""
    body, how = content
    fields: dict[str, Any] = caching(service, asking) | dict(headers or {})
    if how is not None:
        fields["Content-Encoding"] = how
    fields["Content-Type"] = media
    if len(body) > _PIECE:  # send chunks, to notice a client that stops reading
        fields["Content-Length"] = str(len(body))
        return StreamingResponse(_pieces(body), status, fields)
    return Response(body, status, fields)


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(body), _PIECE):
        yield body[begin : begin + _PIECE]


Handler = Callable[["Service", Request], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def guarded(
    service: Service,
    operation: str,
    handler: Handler,
    refuse: Callable[[Problem], Response] | None = None,
) -> Endpoint:
    """Return an endpoint that counts ``operation`` requests, and answers errors with ``refuse``."""
    refuse = refuse or problem_reply

    async def endpoint(request: Request) -> Response:
        state = request.scope["state"]
        state["operation"] = operation
        try:
            return await handler(service, request)
        except Problem as refused:
            return refuse(refused)
        except CociteError as error:
            sent = state["said"] if "said" in state else _sent(request)
            problem = problem_of(error, service.scrub, sent)
            if problem.status >= 500 or isinstance(error, StoreError):
                service.fault(error, operation)
            return refuse(problem)
        except Exception as error:
            service.fault(error, operation)
            return refuse(fault())

    return endpoint


def _sent(request: Request) -> list[str]:
    with suppress(CociteError):
        return [text for pair in pairs_of(request.scope["query_string"]) for text in pair]
    return []


def problem_reply(problem: Problem) -> Response:
    """Create the response for a problem."""
    fields = {"Content-Type": MEDIA, "Cache-Control": "no-store", **problem.headers}
    return Response(msgspec.json.encode(problem.to_json()), problem.status, fields)
