"""The portal that is attacked, the people around it, and the rows in which each attack is written down."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report_faults import Portal, in_threads

if TYPE_CHECKING:
    from django.contrib.auth.models import User

HELD, NOT_HELD, DECIDED = "held", "did not hold", "left as it is, by the documents"
HOST = "node7"
SENTENCE_LENGTH = 220


@dataclass(frozen=True)
class Row:
    """One attack: what was tried, what is right, and what was answered."""

    finding: str
    tried: str
    expected: str
    outcome: str
    answer: str
    seconds: float
    status: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 2)}


def row(finding: str, tried: str, expected: str, held: bool, answer: Any, *, seconds: float | None = None) -> Row:
    """Write an attack down; `answer` is what the portal answered, or a sentence of what was seen."""
    if isinstance(answer, Answer):
        seconds = answer.seconds if seconds is None else seconds
        return Row(finding, tried, expected, HELD if held else NOT_HELD, answer.sentence, seconds, answer.status)
    return Row(finding, tried, expected, HELD if held else NOT_HELD, str(answer)[:600], seconds or 0.0)


def decided(finding: str, tried: str, expected: str, answer: str, *, seconds: float = 0.0) -> Row:
    """Write down what was decided to be left, and where the documents say so."""
    return Row(finding, tried, expected, DECIDED, answer, seconds)


@dataclass(frozen=True)
class Answer:
    """What the server answered. Status 0: it closed the connection."""

    status: int
    seconds: float
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def is_refused(self) -> bool:
        return self.status in (400, 413, 422)

    @property
    def sentence(self) -> str:
        """The detail of a problem and the first fields it names; else how much was answered."""
        if self.content_type.endswith("json") and self.text.startswith("{"):
            content = self.json()
            named = [f"{each.get('pointer')}: {each.get('detail')}" for each in content.get("errors", [])[:2]]
            said = " ".join(filter(None, (content.get("detail"), *named)))
            said = said or ", ".join(f"{name} {content[name]}" for name in ("id", "next") if name in content)
            return (said or f"{len(self.text):,} characters")[:SENTENCE_LENGTH]
        return f"{len(self.text):,} characters" if self.status else self.text


class Person:
    """Somebody with an account, a token and a session of their own, who talks to the real server."""

    def __init__(self, port: int, user: User, *, may_write: bool = True) -> None:
        from django.conf import settings
        from django.test import Client

        from analysis.accounts.tokens import token_create

        self.port, self.user = port, user
        self.token, self.secret = token_create(owner=user, name="node", may_write=may_write, expires_at=None)
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        self.cookie = f"{name}={client.cookies[name].value}"

    def get(self, address: str, *, timeout: float = 120.0) -> Answer:
        """Open an address: of the API with the token, else as a page, with the session."""
        own = {"Authorization": f"Bearer {self.secret}"} if address.startswith("/api/") else {"Cookie": self.cookie}
        return self._send("GET", address, None, {**own, "Accept": "text/html,*/*;q=0.8"}, timeout)

    def post(self, address: str, body: Any, *, timeout: float = 120.0) -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        own = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        return self._send("POST", address, content, own, timeout)

    def begin(self, run_key: str, **members: Any) -> Answer:
        from engine.text.units import GIB
        from tests.factories import make_spec

        spec = make_spec(current_batch_size=4, memory_limit_bytes=GIB).to_dict()
        body = {"run_key": run_key, "kind": "measurement", "host": HOST, "spec": spec, **members}
        return self.post("/api/v1/reports/", body)

    def send_events(self, run_key: str, first: int, *events: dict[str, Any]) -> Answer:
        return self.post(f"/api/v1/reports/{run_key}/events/", {"first": first, "events": list(events)})

    def send_result(self, document: bytes) -> Answer:
        return self.post("/api/v1/results/", document)

    def _send(self, method: str, address: str, body: bytes | None, headers: dict[str, str], timeout: float) -> Answer:
        connection, began = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout), time.monotonic()
        try:
            with suppress(
                BrokenPipeError, ConnectionResetError
            ):  # it answers before it has read a body that is too long
                connection.request(method, address, body, headers)
            found = connection.getresponse()
            text = found.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as exc:
            return Answer(0, time.monotonic() - began, f"{type(exc).__name__}: {exc}")
        finally:
            connection.close()
        headers = {name.lower(): value for name, value in found.headers.items()}
        return Answer(found.status, time.monotonic() - began, text, headers)


class Attacked(Portal):
    """The real web server with 16 threads, on a database of its own, and people of each role."""

    def __init__(self, folder: Path, database: str, commands: str) -> None:
        os.environ |= {"MEMORYMARK_LOCK_DIR": str(folder / "locks"), "OMP_NUM_THREADS": "1"}
        (folder / "commands.toml").write_text(commands)
        super().__init__(folder, database)
        from django.contrib.auth.models import User

        self.start()
        self.wait_until_it_answers()
        self._people = 0
        self.superuser = User.objects.create_superuser("root")
        self.manager = self.person("GPU manager")
        self.reader = self.person("operator")
        self.viewer = self.person("viewer", may_write=False)
        from tests.factories.reports import make_document

        self.first_run = int(self.reader.send_result(make_document()).json()["id"])

    def person(self, role: str = "operator", *, may_write: bool = True, name: str = "") -> Person:
        from tests.factories import make_user

        self._people += 1
        user = make_user(name or f"{role.split()[-1]}-{self._people}", role)
        return Person(self.port, user, may_write=may_write)


def meanwhile(person: Person, address: str, tasks: list[Callable[[], Any]]) -> list[Answer]:
    """Open an address again and again while these tasks run at the same moment; its answers."""
    threads, answers = in_threads(tasks), []
    while not answers or any(thread.is_alive() for thread in threads):
        answers.append(person.get(address))
        time.sleep(0.05)
    return answers


def longest(answers: list[Answer]) -> float:
    return max(answer.seconds for answer in answers)
