"""What every request goes through, before and behind the routes.

    Front ──► (CORS, if asked for) ──► Guard ──► routes (app.py)

Front bounds the address, adds the headers that all answers have, counts and logs. Guard asks for a
key where keys are needed, and refuses questions that could not be answered in time before they are
read; not /healthz and /readyz.

Cost: some 20 µs a request.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cocite.service.hosts import is_known
from cocite.service.keys import shown_key
from cocite.service.problems import Problem, Refused
from cocite.service.replies import problem_reply

if TYPE_CHECKING:
    from cocite.service.service import Service

__all__ = ["OPEN", "Front", "Guard"]

_HELD_BACK = 0.05, 0.15
"""Seconds that a refusal waits, at random between these, so that who asks again at once leaves time
for answers, and that all do not ask again at the same moment.
"""
OPEN = ("/healthz", "/readyz")
"""What is told to anybody."""
_CHALLENGE = 'Basic realm="cocite", charset="UTF-8", Bearer realm="cocite"'


class Front:
    """The outermost application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        ancestors = " ".join(service.config.ancestors) or "'none'"
        self._policy = f"default-src 'none'; frame-ancestors {ancestors}".encode()
        self._headers = [
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]
        if not service.config.ancestors:
            self._headers.append((b"x-frame-options", b"DENY"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status = time.perf_counter(), 500
        scope["state"] = {}

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"]
                headers.extend(self._headers)
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers.append((b"content-security-policy", self._policy))
            if message.get("more_body"):
                async with asyncio.timeout(self.service.config.limits.send_time):
                    await send(message)
            else:
                await send(message)

        raw, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
        try:
            if len(raw) + len(query) > self.service.config.limits.url:
                await self._too_long(scope, receive, sending)
            else:
                await self.app(scope, receive, sending)
        except TimeoutError:  # of sending: there is nobody to tell
            self.service.log.say("a client that reads nothing is given up", "warning")
        finally:
            self._told(scope, raw, query, status, time.perf_counter() - began)
        return None

    async def _too_long(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = self.service.config.limits.url
        problem = Problem(
            "url-too-long",
            f"path and query have more than {most:,} bytes; ask for many nodes with POST /v1/batch",
        )
        await problem_reply(problem)(scope, receive, send)

    def _told(self, scope: Scope, raw: bytes, query: bytes, status: int, seconds: float) -> None:
        verb = scope["state"].get("verb", "other")
        self.service.metrics.requested(verb, status, seconds)
        log = self.service.log
        if log.requests:
            client = scope.get("client")
            path = (raw + b"?" * bool(query) + query).decode("latin-1")
            log.say(
                "request",
                method=scope["method"],
                path=path[:1024],
                status=status,
                milliseconds=round(1000 * seconds, 2),
                client=client[0] if client else "",
            )


class Guard:
    """Lets through who means us, who has a key where keys are needed, whom there is time for."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self.asked = service.config.local and service.keys is None
        """Whether the name is looked at that the server is asked by."""
        self.names = frozenset(name.lower() for name in service.config.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            return await self.app(scope, receive, send)
        keys, head = self.service.keys, Headers(scope=scope)
        if self.asked and not is_known(head.get("host", ""), self.names):
            return await _unknown_host(head["host"])(scope, receive, send)
        if keys is not None and keys.holder(shown_key(head)) is None:
            return await _no_key()(scope, receive, send)
        busy = self.service.overloaded(scope["path"])
        if busy is None:
            return await self.app(scope, receive, send)
        scope["state"]["verb"] = "refused"
        await asyncio.sleep(random.uniform(*_HELD_BACK))
        headers = list(busy.raw_headers)  # others are added to them
        await send({"type": "http.response.start", "status": busy.status, "headers": headers})
        await send({"type": "http.response.body", "body": busy.body})
        return None


def _unknown_host(host: str) -> Response:
    detail = (
        f"this server is asked by the name {host[:100]!r}; it listens at its machine alone, and "
        "is asked as localhost, by its address, or by a name that was given with --allow-host"
    )
    return problem_reply(Problem("unknown-host", detail))


def _no_key() -> Response:
    detail = "show a key: Authorization: Bearer KEY, X-API-Key: KEY, or KEY as a password"
    return problem_reply(Problem("no-key", detail, {}, {"WWW-Authenticate": _CHALLENGE}))


async def body_of(service: Service, request_headers: Headers, receive: Receive) -> bytes:
    """The body of a request, within its bounds; raises :class:`Refused`."""
    limits = service.config.limits
    told = request_headers.get("content-length", "0")
    too_large = Refused(
        Problem(
            "body-too-large", f"the body has more than {limits.body:,} bytes; send less at once"
        )
    )
    if told.isdecimal() and int(told) > limits.body:
        raise too_large
    pieces, size = [], 0
    try:
        async with asyncio.timeout(limits.body_time):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(Problem("slow-body", "the connection was closed"))
                piece = message.get("body", b"")
                size += len(piece)
                if size > limits.body:
                    raise too_large
                pieces.append(piece)
                if not message.get("more_body"):
                    return b"".join(pieces)
    except TimeoutError:
        raise Refused(
            Problem("slow-body", f"the body took longer than {limits.body_time:g} s")
        ) from None
