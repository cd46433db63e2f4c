"""gunicorn's threaded worker, which gives a thread to a request only when its whole header has arrived.

gthread reads a header in the thread that will serve the request, for as long as the client likes: as many clients as
there are threads, each with half a header, would keep everybody else out. Here such connections wait in the loop that
accepts them, where they cost a socket, and are closed after HEADER_SECONDS. Bodies are read in threads as before; a
proxy that buffers requests keeps slow ones away.
"""

from __future__ import annotations

import selectors
import socket
import time
from functools import partial
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

HEADER_SECONDS = 10.0
HEADER_MAX_BYTES = 64 * 1024
"""Far above gunicorn's default: a longer header is passed to it, and refused there."""

_END = b"\r\n\r\n"


class HeaderFirstWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Its loop looks at what has arrived without taking it off the socket."""

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread, or wait for the rest of its header. Called in the loop alone."""
        # the beginning of the next request may have been read with the end of the last one
        is_there = self.cfg.is_ssl or (conn.initialized and (conn.is_http2 or conn.parser.unreader.buf.getvalue()))
        arrived_bytes = None if is_there else _bytes_of_half_header(conn.sock)
        if arrived_bytes is None:
            _wake_at(conn.sock, 1)
            conn.header_until = None
            super().enqueue_req(conn)
            return
        # the loop is not woken again by the bytes that are there already
        _wake_at(conn.sock, arrived_bytes + 1)
        if getattr(conn, "header_until", None) is None:
            conn.header_until = time.monotonic() + HEADER_SECONDS
        conn.timeout = conn.header_until
        conn.sock.setblocking(False)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def murder_pending(self) -> None:
        """Close what has waited for too long, and all of it when the server stops.

        A header that trickles in does not stand in the order of its end.
        """
        now = time.monotonic()
        for conn in [conn for conn in self.pending_conns if conn.timeout <= now or not self.alive]:
            self.pending_conns.remove(conn)
            self.poller.unregister(conn.sock)
            self.nr_conns -= 1
            conn.close()


def _bytes_of_half_header(sock: socket.socket) -> int | None:
    """Count what has arrived of a header that is not complete; None for one that is, and for an end or an error."""
    sock.setblocking(False)
    try:
        arrived = sock.recv(HEADER_MAX_BYTES, socket.MSG_PEEK)
    except BlockingIOError:
        return 0
    except OSError:
        return None
    return None if not arrived or _END in arrived or len(arrived) >= HEADER_MAX_BYTES else len(arrived)


def _wake_at(sock: socket.socket, arrived_bytes: int) -> None:
    """Let a selector name this socket as readable once `arrived_bytes` are there, or it has ended."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, arrived_bytes)
