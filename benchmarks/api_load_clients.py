"""Many clients at once against one server, each asking for the next thing as soon as it has its answer.

Started by `api_load.py`, in a process of its own, with one JSON object on standard input:

    {"host", "port", "clients", "seconds", "headers", "ids", "requests": [{"name", "method", "path", ...}]}

Each client goes through the list again and again, from a place of its own. `{n}` in a path or a body becomes a number
that no other request has, `{any}` one of the "ids". A request with "etag" sends the tag of the last answer with it.
Answers what each kind of request took in seconds, how often which unexpected status came back, and what one said.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import sys
import threading
import time
from collections import Counter, defaultdict
from typing import Any, NamedTuple

_numbers = itertools.count(1)  # one C call: no lock is needed


class Answer(NamedTuple):
    """What came back."""

    status: int
    tag: str | None
    text: bytes


class Client(threading.Thread):
    """One connection, kept open; opened again when the server closes it, as servers may between requests."""

    def __init__(self, task: dict[str, Any], place: int, until: float) -> None:
        super().__init__()
        self.task, self.place, self.until = task, place, until
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.errors: Counter[str] = Counter()
        self.said: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.dice = random.Random(place)
        self.connection = http.client.HTTPConnection(task["host"], task["port"], timeout=30)

    def run(self) -> None:
        requests = self.task["requests"]
        for request in itertools.islice(itertools.cycle(requests), self.place % len(requests), None):
            if time.monotonic() >= self.until:
                return
            self._ask(request)

    def _ask(self, request: dict[str, Any]) -> None:
        name, path = request["name"], self._filled(request["path"])
        headers = dict(self.task["headers"])
        if request.get("etag") and path in self.tags:
            headers["If-None-Match"] = self.tags[path]
        started = time.perf_counter()
        try:
            body = self._filled(json.dumps(request["body"])).encode() if request.get("body") else None
            answer = self._answer(request["method"], path, body, headers)
        except (OSError, http.client.HTTPException) as exc:
            self.errors[f"{name}: {type(exc).__name__}"] += 1
            self.connection.close()
            return
        self.seconds[name].append(time.perf_counter() - started)
        if answer.tag and request.get("etag"):
            self.tags[path] = answer.tag
        if answer.status not in request["expect"]:
            self.errors[f"{name}: {answer.status}"] += 1
            self.said.setdefault(f"{name}: {answer.status}", answer.text[:300].decode(errors="replace"))

    def _answer(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        try:
            return self._once(method, path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # the server had closed the idle connection: any client asks again on a new one
            self.connection.close()
            return self._once(method, path, body, headers)

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        return Answer(response.status, response.headers.get("ETag"), response.read())

    def _filled(self, text: str) -> str:
        if "{n}" in text:
            text = text.replace("{n}", str(next(_numbers)))
        return text.replace("{any}", str(self.dice.choice(self.task["ids"]))) if "{any}" in text else text


def main() -> None:
    task = json.load(sys.stdin)
    started = time.monotonic()
    clients = [Client(task, place, started + task["seconds"]) for place in range(task["clients"])]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    seconds: dict[str, list[float]] = defaultdict(list)
    errors: Counter[str] = Counter()
    for client in clients:
        errors += client.errors
        for name, taken in client.seconds.items():
            seconds[name] += taken
    answer = {"wall_seconds": time.monotonic() - started, "seconds": seconds, "errors": errors}
    json.dump(answer | {"said": {kind: text for client in clients for kind, text in client.said.items()}}, sys.stdout)


if __name__ == "__main__":
    main()
