"""One request of a delivery: HTTP to an address that was checked, without redirects, within limits; or one e-mail."""

from __future__ import annotations

import http.client
import smtplib
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage

from analysis.news.addresses import RefusedAddressError, Target, checked_addresses, parse_target
from analysis.news.messages import mail_line, mail_text
from engine.errors import SpecError

_ANSWER_BYTES = 4096
"""Bytes of the response that are read; only the status matters."""
_CONNECT_SHARE = 0.5
"""Share of the time limit for one address, so that the next one gets a turn."""


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """How an attempt ended. `status` is None where there was no response."""

    is_delivered: bool
    seconds: float
    status: int | None = None
    reason: str = ""


def post(url: str, body: bytes, headers: Mapping[str, str], *, is_allowed: bool, seconds: float) -> DeliveryOutcome:
    """Send the body once. Never raises for what a receiver, a network or a name server does."""
    start = monotonic()
    try:
        target = parse_target(url)
        addresses = checked_addresses(target, is_allowed=is_allowed)
        status = _send(target, addresses, body, headers, until=start + seconds)
    except (RefusedAddressError, SpecError) as exc:
        return DeliveryOutcome(False, monotonic() - start, reason=str(exc))
    except (OSError, ValueError, http.client.HTTPException) as exc:  # ValueError: a name that IDNA cannot encode
        late = "" if monotonic() - start < seconds else f"no response within {seconds:g} s: "
        return DeliveryOutcome(False, monotonic() - start, reason=f"{late}{type(exc).__name__}: {exc}")
    taken = monotonic() - start
    if 200 <= status < 300:
        return DeliveryOutcome(True, taken, status)
    reason = "a redirect, which is not followed" if 300 <= status < 400 else "the receiver refused it"
    return DeliveryOutcome(False, taken, status, reason)


def _send(target: Target, addresses: list[str], body: bytes, headers: Mapping[str, str], *, until: float) -> int:
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = sock = _connect(target, addresses, until)
    # http.client limits each read, not all of them: a receiver that sends a byte a second would never end
    is_over = threading.Event()
    deadline = threading.Timer(max(until - monotonic(), 0.0), _end, [sock, is_over])
    deadline.daemon = True
    deadline.start()
    try:
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        # its own Host header: the connection does not know whether the port is the scheme's
        connection.request("POST", target.path, body, {**headers, "Host": target.host_header, "Connection": "close"})
        response = connection.getresponse()
        if is_over.is_set():  # the half of a status line would pass for a whole one
            raise TimeoutError("the response was not complete")
        with suppress(OSError, http.client.HTTPException):  # the status has arrived: the rest does not matter
            response.read(_ANSWER_BYTES)
        return response.status
    finally:
        deadline.cancel()
        connection.close()
        sock.close()


def _connect(target: Target, addresses: list[str], until: float) -> socket.socket:
    """Connect to the first of these addresses that answers. With TLS, the certificate must be the host's."""
    failure: OSError = OSError("the host has no address")
    for address in addresses:
        left = until - monotonic()
        if left <= 0:
            raise TimeoutError("no connection in time")
        try:
            sock = socket.create_connection((address, target.port), timeout=max(left * _CONNECT_SHARE, 0.01))
        except OSError as exc:
            failure = exc
            continue
        sock.settimeout(max(until - monotonic(), 0.01))
        if not target.is_tls:
            return sock
        try:
            context = ssl.create_default_context()
            return context.wrap_socket(sock, server_hostname=target.host, do_handshake_on_connect=False)
        except BaseException:
            sock.close()
            raise
    raise failure


def _end(sock: socket.socket, is_over: threading.Event) -> None:
    """Wake the thread that waits for this socket, with an end of file."""
    is_over.set()
    with suppress(OSError):
        # the plain class's method: an SSLSocket's own shutdown would drop the state that the other thread is using
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


_SUBJECT_LENGTH = 120


def mail_is_configured() -> bool:
    return bool(settings.EMAIL_HOST)


def send_mail(address: str, delivery_id: str, body: dict[str, Any]) -> DeliveryOutcome:
    """Send one mail. Its Message-ID stays the same over all attempts: mail programs show a repeated one once."""
    start = monotonic()
    if not mail_is_configured() or not address:
        missing = "your account has no address" if mail_is_configured() else "EMAIL_HOST is not set"
        return DeliveryOutcome(False, 0.0, reason=f"no mail can be sent: {missing}")
    subject = mail_line(f"MemoryMark: {body['verdict']}")[:_SUBJECT_LENGTH]
    headers = {"Message-ID": f"<{delivery_id}@memorymark>", "Auto-Submitted": "auto-generated"}
    try:
        EmailMessage(subject, mail_text(body), None, [address], headers=headers).send()
    except (OSError, smtplib.SMTPException, ValueError) as exc:  # ValueError: an address that cannot be a header
        return DeliveryOutcome(False, monotonic() - start, reason=f"{type(exc).__name__}: {exc}")
    return DeliveryOutcome(True, monotonic() - start)
