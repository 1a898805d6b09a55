"""Who may look, who may act. Texts on the pages are foreign, and a browser carries other sites' requests.

Loopback needs no token to look. Every act needs a token that only the served page holds, so that another
site's form cannot act; a `Host` that was not announced is refused, so that another name cannot reach us.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
COOKIE = "autosft_token"
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass
class Gate:
    """What a server lets through.

    Attributes:
        hosts: Names it answers to.
        token: What looking needs; None on loopback.
        acts: Whether acts are served at all.
        act_token: What every act must bring.
    """

    hosts: frozenset[str]
    token: str | None
    acts: bool = True
    act_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def knows_host(self, header: str | None) -> bool:
        """Return whether a `Host` header names this server."""
        host = (header or "").strip().lower()
        name = host[1 : host.find("]")] if host.startswith("[") else host.rsplit(":", 1)[0]
        return name in self.hosts

    def may_look(self, given: str | None) -> bool:
        """Return whether a token lets its bearer look."""
        return self.token is None or (given is not None and hmac.compare_digest(given, self.token))

    def may_act(self, given: str | None) -> bool:
        """Return whether a form's token lets it act."""
        return self.acts and given is not None and hmac.compare_digest(given, self.act_token)


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone."""
    return host in _LOOPBACK


def guard(app: Any, gate: Gate) -> None:
    """Put the gate before every route, and headers behind it."""
    from fastapi import Request
    from fastapi.responses import PlainTextResponse, RedirectResponse, Response

    @app.middleware("http")  # type: ignore[untyped-decorator]
    async def check(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        if not gate.knows_host(request.headers.get("host")):
            return PlainTextResponse("this server does not answer to that name\n", status_code=421)
        asked = request.query_params.get("token")
        given = asked or request.cookies.get(COOKIE)
        if not gate.may_look(given):
            return PlainTextResponse(
                "a token is needed: open the address that was printed\n", status_code=401
            )
        response: Response
        if asked is not None and request.method == "GET":
            # Out of the address bar, so that it is in no history and no referrer.
            response = RedirectResponse(request.url.remove_query_params("token").path, status_code=303)
            response.set_cookie(COOKIE, asked, httponly=True, samesite="strict")
        else:
            response = await go_on(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"
        return response
