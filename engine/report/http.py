"""One request to a portal, and its answer. Never raises for what the network or the portal does."""

from __future__ import annotations

import encodings.idna  # noqa: F401  (a request would import it in its thread: a fork amid that waits for ever)
import http.client
import json
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from .address import Address
from .protocol import Answer

TIMEOUT_SECONDS = 10.0
_BODY_MOST = 1_000_000


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the token is for the address that was named, and for no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Portal:
    """The API of one portal. Certificates are checked as Python does by default."""

    def __init__(self, address: Address, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.url = address.url
        self.timeout_seconds = timeout_seconds
        self._token = address.token
        self._opener = build_opener(ProxyHandler(), HTTPSHandler(), _NoRedirect())

    def get(self, path: str, *, most_bytes: int = _BODY_MOST) -> Answer:
        """Get a JSON object from a path below the portal's address."""
        return self._open(self._request(path), most_bytes)

    def post(self, path: str, body: bytes, *, key: str | None = None) -> Answer:
        """Send a JSON body to a path below the portal's address. `key`: the Idempotency-Key."""
        request = self._request(path, body)
        request.add_header("Content-Type", "application/json")
        if key:
            request.add_header("Idempotency-Key", key)
        return self._open(request, _BODY_MOST)

    def _request(self, path: str, body: bytes | None = None) -> Request:
        headers = {"Accept": "application/json", "User-Agent": "memorymark"}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return Request(f"{self.url}{path}", data=body, headers=headers)  # noqa: S310  (http or https)

    def _open(self, request: Request, most_bytes: int) -> Answer:
        deadline = time.monotonic() + self.timeout_seconds
        try:
            try:
                response = self._opener.open(request, timeout=self.timeout_seconds)
            except HTTPError as error:  # any status but 2xx
                response = error
            with response:
                content = _read(response, deadline, most_bytes)
                return self._answer(int(response.status), response.headers, content)
        except (OSError, http.client.HTTPException, ValueError) as exc:
            return Answer(0, reason=self._without_token(_reason(exc)))

    def _answer(self, status: int, headers: Any, content: bytes) -> Answer:
        location = headers.get("Location")
        reason = f"it redirects to {location}: name that address" if 300 <= status < 400 and location else ""
        text = self._without_token(content.decode(errors="replace"))
        return Answer(status, _object(text), self._without_token(reason), _seconds(headers.get("Retry-After")))

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, "...") if self._token else text


def _read(response: Any, deadline: float, most_bytes: int) -> bytes:
    """Read a body of bounded size in bounded time: a timeout of the socket is for each of its packets alone."""
    parts, size = [], 0
    while part := response.read1(65_536):
        parts.append(part)
        size += len(part)
        if size > most_bytes or time.monotonic() > deadline:
            raise TimeoutError("the answer does not end")
    return b"".join(parts)


def _reason(exc: Exception) -> str:
    cause = getattr(exc, "reason", exc)  # of a URLError
    return str(cause) or type(cause).__name__


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.strip().isdigit() else None
