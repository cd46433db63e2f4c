"""The connection between two hosts of one training: messages as lines of JSON, and each side says that it is alive."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from ...errors import HostLost
from .rendezvous import Rendezvous

ALIVE_SECONDS, SILENT_SECONDS, LAST_SECONDS = 2.0, 30.0, 1.0
READ_BYTES = 1 << 16

Message = dict[str, Any]


class Link:
    """One end of the line. Whoever uses it gets HostLost where the other host is gone, or silent for too long."""

    def __init__(self, connection: socket.socket, other: str) -> None:
        self.other = other
        self._socket, self._sending, self._closed = connection, threading.Lock(), threading.Event()
        self._parts: list[bytes] = []
        self._heard_at, self._has_ended = time.monotonic(), False
        connection.settimeout(SILENT_SECONDS)  # of what is sent: the other side may not read
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def send(self, event: str, **content: Any) -> None:
        """Send a message."""
        try:
            self._send(json.dumps({"event": event, **content}).encode() + b"\n")
        except OSError as error:
            raise HostLost(f"{self.other} is gone: {error.strerror or error}") from error

    def receive(self) -> list[Message]:
        """Return the messages that have come. None is lost: those that came before the end are returned first."""
        messages: list[Message] = []
        while not self._has_ended and select.select([self._socket], [], [], 0)[0]:
            chunk = b""
            with suppress(OSError):
                chunk = self._socket.recv(READ_BYTES)
            self._has_ended = not chunk
            self._heard_at = time.monotonic()
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                self._parts.append(line)
                messages += self._message()
            self._parts.append(rest)
        if not messages and self._has_ended:
            raise HostLost(f"{self.other} is gone: its tune command has ended")
        if not messages and time.monotonic() > self._heard_at + SILENT_SECONDS:
            raise HostLost(f"{self.other} has been silent for {SILENT_SECONDS:.0f} s")
        return messages

    def close(self, event: str | None = None, **content: Any) -> None:
        """Close it; with a last message, when the other side has read that or does not read."""
        self._closed.set()
        with suppress(HostLost, OSError):
            if event is not None:
                self.send(event, **content)
                self._socket.shutdown(socket.SHUT_WR)
                self._socket.settimeout(LAST_SECONDS)
                until = time.monotonic() + LAST_SECONDS
                while time.monotonic() < until and self._socket.recv(READ_BYTES):
                    pass  # closed with something unread, the other side might not get the last message
        self._socket.close()

    def _message(self) -> list[Message]:
        line = b"".join(self._parts)
        self._parts.clear()
        if not line:  # it is alive
            return []
        message = None
        with suppress(ValueError):
            message = json.loads(line)
        if not isinstance(message, dict) or "event" not in message:
            raise HostLost(f"{self.other} sent no message of MemoryMark's")
        return [message]

    def _send(self, line: bytes) -> None:
        with self._sending:
            self._socket.sendall(line)

    def _keep_alive(self) -> None:
        with suppress(OSError):  # whoever speaks or listens next sees it, too
            while not self._closed.wait(ALIVE_SECONDS):
                self._send(b"\n")


def decides(rendezvous: Rendezvous) -> bool:
    """Whether this is the host that decides: node 0, or where none is numbered the one that has the address."""
    return rendezvous.host == 0 or (rendezvous.host is None and _is_here(rendezvous.address))


def _is_here(address: str) -> bool:
    """Whether this host has the address: only then can something be bound to it."""
    with suppress(OSError):
        for family, kind, protocol, _, place in socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM):
            with suppress(OSError), socket.socket(family, kind, protocol) as tried:
                tried.bind(place)
                return True
    return False
