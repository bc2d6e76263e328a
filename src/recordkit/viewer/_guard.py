"""Guard: only the page itself may call the API, under the URL printed for the user.

The token is the first part of every path, because other servers on this machine would see a cookie.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

# Only our own files run, text cannot become markup, and the page can reach no other server.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)


class Guard:
    """Middleware that refuses requests from anything but the page.

    Args:
        app: The app behind it, which sees paths without the token.
        token: The required first part of the path.
        hosts: The host names that requests may use.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Sequence[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal, parts = self._refusal(scope), scope["path"].split("/", 2)
        if refusal is not None:
            app: ASGIApp = PlainTextResponse(refusal[1] + "\n", refusal[0])
        elif len(parts) == 2:  # the URL without its final slash
            app = RedirectResponse(f"/{self._token}/")
        else:
            app, path = self._app, f"/{parts[2]}"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {key.lower(): value.decode("latin-1") for key, value in scope["headers"]}
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "only GET, HEAD and POST are allowed"
        host = headers.get(b"host", "").lower()
        if not self._is_ours(host, scope):
            return 421, "unknown host name"
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return 403, "requests from other pages are refused"
        navigating = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == "navigate"
        if headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none") and not navigating:
            return 403, "requests from other pages are refused"
        token = scope["path"].split("/", 2)[1]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return 403, "the URL lacks its token: open the URL that was printed when the viewer started"
        return None

    def _is_ours(self, host: str, scope: Scope) -> bool:
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        name, port = (host, "") if not name else (name, port)
        server = scope.get("server")
        return name in self._hosts and (server is None or server[1] is None or port == str(server[1]))


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {key.lower() for key, _ in message["headers"]}
            policy = [] if b"content-security-policy" in own else [(b"content-security-policy", POLICY.encode())]
            added = [(key, value) for key, value in _HEADERS if key not in own]
            message = {**message, "headers": [*message["headers"], *added, *policy]}
        await send(message)

    return sending
