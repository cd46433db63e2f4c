"""A database that goes away for a while, and comes back."""

from __future__ import annotations

import select
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from django.db import connection


class Database(Protocol):
    """What the workers speak to. The test itself speaks to the server directly."""

    url: str

    def away(self) -> contextmanager[None]: ...

    def close(self) -> None: ...


class SqliteDatabase:
    """Goes away by a transaction that lasts: every write waits for it, and fails in the end."""

    def __init__(self) -> None:
        self.path = str(connection.settings_dict["NAME"])
        self.url = f"sqlite:///{quote(self.path)}"

    @contextmanager
    def away(self) -> Iterator[None]:
        connection.close()
        with closing(sqlite3.connect(self.path, timeout=20, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            yield
            other.execute("ROLLBACK")

    def close(self) -> None:
        """Nothing was opened."""


class PostgresDatabase:
    """Goes away by a proxy that drops every connection and takes no new one."""

    def __init__(self) -> None:
        self._proxy = Proxy(_server_address())
        told = connection.settings_dict
        self.url = f"postgresql://{told['USER'] or 'postgres'}:@127.0.0.1:{self._proxy.port}/{told['NAME']}"

    @contextmanager
    def away(self) -> Iterator[None]:
        self._proxy.drop()
        try:
            yield
        finally:
            self._proxy.listen()

    def close(self) -> None:
        self._proxy.drop()


class Proxy:
    """Passes TCP connections on to a PostgreSQL server, as long as it listens."""

    def __init__(self, server: str | tuple[str, int]) -> None:
        self._server, self.port = server, 0
        self._open: set[socket.socket] = set()
        self.listen()

    def listen(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def drop(self) -> None:
        for each in (self._listener, *list(self._open)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client = listener.accept()[0]
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        is_path = isinstance(self._server, str)
        with client, socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as server, suppress(OSError):
            server.connect(self._server)
            pair = {client: server, server: client}
            self._open |= set(pair)
            try:
                while True:
                    for ready in select.select(list(pair), [], [])[0]:
                        if not (data := ready.recv(65_536)):
                            return
                        pair[ready].sendall(data)
            except ValueError:  # closed meanwhile
                return
            finally:
                self._open -= set(pair)


def _server_address() -> str | tuple[str, int]:
    told = connection.get_connection_params()
    host, port = str(told.get("host") or "127.0.0.1"), int(told.get("port") or 5432)
    return str(Path(host) / f".s.PGSQL.{port}") if host.startswith("/") else (host, port)
