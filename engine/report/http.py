"""One request to a portal, and its answer. No failure of the network or the portal raises."""

from __future__ import annotations

import encodings.idna  # noqa: F401  (a request would import it in its thread, and a fork during that import would hang)
import http.client
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from .address import Address
from .protocol import PortalAnswer, json_object

TIMEOUT_SECONDS = 10.0
_BODY_MOST = 1_000_000


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the token is only for the given address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Portal:
    """The API of one portal. Certificates are checked by Python's defaults."""

    def __init__(self, address: Address, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.url = address.url
        self.timeout_seconds = timeout_seconds
        self._token = address.token
        self._opener = build_opener(ProxyHandler(), HTTPSHandler(), _NoRedirect())

    def get(self, path: str, *, most_bytes: int = _BODY_MOST) -> PortalAnswer:
        return self._open(self._request(path), most_bytes)

    def post(self, path: str, body: bytes, *, key: str | None = None) -> PortalAnswer:
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

    def _open(self, request: Request, most_bytes: int) -> PortalAnswer:
        deadline = time.monotonic() + self.timeout_seconds
        try:
            try:
                response = self._opener.open(request, timeout=self.timeout_seconds)
            except HTTPError as error:  # any status but 2xx
                response = error
            with response:
                text = self._without_token(_read(response, deadline, most_bytes).decode(errors="replace"))
                status, location = int(response.status), response.headers.get("Location")
                reason = f"it redirects to {location}: name that address" if 300 <= status < 400 and location else ""
                pause = response.headers.get("Retry-After", "")
                seconds = float(pause) if pause.strip().isdigit() else None
                return PortalAnswer(status, json_object(text), self._without_token(reason), seconds)
        except (OSError, http.client.HTTPException, ValueError) as exc:
            cause = getattr(exc, "reason", exc)  # a URLError has the cause as its reason
            return PortalAnswer(0, reason=self._without_token(str(cause) or type(cause).__name__))

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, "...") if self._token else text


def _read(response: Any, deadline: float, most_bytes: int) -> bytes:
    """Read a body of bounded size in bounded time: the socket's timeout only limits each packet."""
    parts, size = [], 0
    while part := response.read1(65_536):
        parts.append(part)
        size += len(part)
        if size > most_bytes or time.monotonic() > deadline:
            raise TimeoutError("the answer does not end")
    return b"".join(parts)
