"""Damaged result documents and event streams, and every page, picture and API call that shows a stored run.

What is damaged is drawn with a seed: the same number is the same damage, on every machine.
"""

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from analysis.models import Run
from analysis.runs.marks.share_links import is_shareable, share_link_create
from engine.facts.progress import MEASURING_PHASES
from tests.engine.honest_worker import HonestWorker, document_of
from tests.engine.questions.answers.answers import originals
from tests.factories.reports import (
    HOST,
    STARTED_AT,
    SendingClient,
    make_document,
    make_events,
    make_function_document,
    make_probes,
    make_run_key,
)

Document = dict[str, Any]

NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, -5, 0.5, -0.5, 2**31, 2**53, 2**63 - 1, -(2**63), 1e300, 1e-300, 10**30),
    *(
        "",
        " ",
        "x",
        "xy",
        "KIND",
        "fits",
        "0",
        "-1",
        "1e9",
        "{{ x }}",
        "<b>",
        "\u202e",
        "a\nb",
        "%s",
        "é" * 50,
        "9" * 400,
    ),
    *([], [1], [1, "x"], ["x"], [[]], [None], {}, {"a": 1}, {"low": 1}, {"low": "x", "value": None, "high": []}),
)
"""Put in the place of any value."""

RUN_PAGES = (
    *("/runs/{run}/", "/runs/{run}/live/", "/runs/{run}/advice/", "/runs/{run}/export.json", "/runs/{run}/export.csv"),
    *("/runs/{run}/charts/memory.svg", "/runs/{run}/charts/throughput.svg", "/runs/{run}/charts/kinds.svg"),
    *("/compare/?ids={run},{other}", "/?from={run}"),
    *("/api/v1/runs/{run}/", "/api/v1/runs/{run}/measurements/", "/api/v1/runs/{run}/attempts/"),
    *("/api/v1/runs/{run}/events/", "/api/v1/runs/{run}/wait/?timeout=0", "/api/v1/runs/{run}/points/"),
    *("/api/v1/runs/{run}/result/", "/api/v1/runs/{run}/advice/", "/api/v1/runs/{run}/certificate/"),
)
"""What shows one run, by its number and that of another run."""

UNFINISHED_PAGES = (
    *("/runs/{run}/", "/runs/{run}/live/", "/runs/{run}/export.csv", "/compare/?ids={run},{other}"),
    *("/api/v1/runs/{run}/", "/api/v1/runs/{run}/measurements/", "/api/v1/runs/{run}/attempts/"),
    *("/api/v1/runs/{run}/events/", "/api/v1/runs/{run}/points/", "/api/v1/runs/{run}/wait/?timeout=0"),
)
"""What of these there is before a run has a result: the others are 404."""

SHARED_PAGES = (
    *("/share/{secret}/", "/share/{secret}.svg", "/share/{secret}/charts/memory.svg"),
    *("/share/{secret}/charts/throughput.svg", "/share/{secret}/charts/kinds.svg"),
)
"""What shows one finished run to a person without an account."""

LIST_PAGES = (
    *("/", "/runs/", "/fleet/", "/fleet/now/", "/matrix/", "/matrix/?cards=all", "/trend/", "/estimates/"),
    *("/validations/", "/devices/", "/runs/export.csv", "/runs/export.json", "/api/v1/runs/", "/api/v1/matrix/"),
    *("/api/v1/runs/export.csv", "/api/v1/runs/export.json", "/api/v1/devices/", "/metrics", "/api/v1/estimates/"),
    *("/api/v1/trends/?model=bert-tiny&gpu=Test%20CPU", "/trend/?model=bert-tiny&gpu=Test%20CPU"),
    "/api/v1/recommendation/?model=bert-tiny&device=cpu&current_batch_size=4",
)
"""What shows many runs."""


@dataclass
class Seen:
    """What came of it: documents and streams by answer, pages by status, and each page that broke."""

    sent: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)
    """Answers to calls with events."""
    pages: Counter[int] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    """Addresses that were answered by 4xx: wrong, or without figures of this run."""
    broken: list[str] = field(default_factory=list)

    @property
    def stored(self) -> int:
        return self.answers[201]

    def __str__(self) -> str:
        refused = self.sent - self.stored - self.answers[200]
        broken = sum(number for status, number in self.pages.items() if status >= 500)
        return (
            f"{self.sent} sent, {refused} refused, {self.stored} stored, {sum(self.pages.values())} pages opened, "
            f"{broken} answers of 500 and more; answers {sorted(self.answers.items())}, "
            f"to calls with events {sorted(self.calls.items())}, "
            f"of pages {sorted(self.pages.items())}"
        )


def base_documents() -> list[bytes]:
    contents = [document_of(HonestWorker(90, not_together=frozenset({90}))), document_of(HonestWorker(0))]
    bodies = [json.dumps(content).encode() for content in (*originals().values(), *contents)]
    return [*bodies, make_document(), make_function_document()]


def named(body: bytes) -> Document:
    content = json.loads(body)
    result = content.get("result", content)
    result["environment"] |= {"run_key": make_run_key(), "host": HOST, "started_at": STARTED_AT}
    return dict(result)


def damage(rng: random.Random, document: Any, times: int) -> None:
    for _ in range(times):
        place, key = _place(rng, document)
        if place is None:
            return
        _damage_at(rng, place, key)


def _place(rng: random.Random, document: Any) -> tuple[Any, Any]:
    """Draw a member: first its path, so that a member of the top is as likely as one of five hundred step times."""
    inner, place, key = document, None, None
    while isinstance(inner, (dict, list)) and inner:
        place, key = inner, rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        inner = inner[key]
        if rng.random() < 0.15:
            break
    return place, key


def _damage_at(rng: random.Random, place: Any, key: Any) -> None:
    value = place[key]
    how = rng.randrange(5)
    if how == 0 and isinstance(place, dict):
        del place[key]
    elif how == 1 and isinstance(value, (int, float)) and not isinstance(value, bool):
        place[key] = rng.choice((value + 1, value * 2, value / 2, -value, value * 1.000001))
    elif how == 2 and isinstance(place, list):
        place.insert(key, copy.deepcopy(rng.choice(place)))
    elif how == 3 and isinstance(place, dict):
        place[rng.choice(("bonus", "", "x" * 300, *place))] = copy.deepcopy(rng.choice(NASTY))
    else:
        place[key] = copy.deepcopy(rng.choice(NASTY))


def damaged_documents(seed: int, number: int) -> Iterator[bytes]:
    """Yield documents with one to three damaged places. Their origin stays, or nothing else would be looked at."""
    rng, bases = random.Random(seed), base_documents()
    for _ in range(number):
        document = named(rng.choice(bases))
        origin = {name: document["environment"][name] for name in ("run_key", "host", "started_at")}
        damage(rng, document, rng.choice((1, 1, 1, 2, 3)))
        if isinstance(document.get("environment"), dict) and rng.random() < 0.95:
            document["environment"] |= origin
        yield json.dumps({"exit_status": 0, "result": document}).encode()


def damaged_events(rng: random.Random) -> list[Document]:
    """Return the events of a run under way, of which a third is damaged, in an order that may be another one."""
    begun = make_events(make_probes()[:3])
    phases = [{"event": "phase", "seconds": 1.5 * n, "phase": name} for n, name in enumerate(MEASURING_PHASES)]
    estimate = next(d["estimate"] for d in originals().values() if d.get("estimate"))
    more: list[Document] = [
        {"event": "stage", "seconds": 0.1, "stage": "importing"},
        {"event": "estimate", "seconds": 1.0, "estimate": copy.deepcopy(estimate)},
        {"event": "probe_started", "seconds": 2.0, "batch_size": 16, "purpose": "search"},
        {"event": "progress", "seconds": 2.5, "batch_size": 16, "purpose": "search", "stage": "memory", "step": 2},
        {"event": "timing", "seconds": 3.0, "stage": "selection", "round": rng.choice((1, 2, 6)), "batch_sizes": [4, 8]}
        | {"seconds_spent": 1.0, "seconds_left_at_most": 41.5},
        {"event": "phase", "seconds": 0.5, "phase": "predicting", "cards": 3},
        {"event": "log", "seconds": 3.0, "level": "info", "message": "a line"},
    ]
    events = [*begun, *rng.sample([*phases, *more], len(phases) + len(more))]
    for event in events:
        if rng.random() < 1 / 3:
            name = event["event"]
            damage(rng, event, rng.choice((1, 1, 2)))
            event["event"] = name
    return events[: rng.randrange(4, len(events) + 1)]


class Pages:
    """Opens pages as a manager, and shared ones as nobody, and counts what they answer."""

    def __init__(self, reader: User, other: Run, seen: Seen) -> None:
        self.seen, self.other, self.reader = seen, other, reader
        self.client, self.nobody = (Client(raise_request_exception=False) for _ in range(2))
        self.client.force_login(reader)

    def open_unfinished(self, run_id: int, why: str) -> None:
        for page in UNFINISHED_PAGES:
            self._open(self.client, page.format(run=run_id, other=self.other.pk), why)

    def open_run(self, run_id: int, why: str) -> None:
        for page in RUN_PAGES:
            self._open(self.client, page.format(run=run_id, other=self.other.pk), why)
        self._post("/api/v1/compare/", {"ids": [run_id, self.other.pk]}, why)
        if is_shareable(Run.objects.get(pk=run_id)):
            link, secret = share_link_create(run_id=run_id, by=self.reader, days=7)
            for page in SHARED_PAGES:
                self._open(self.nobody, page.format(secret=secret), why)
            link.delete()

    def open_lists(self, why: str) -> None:
        for page in LIST_PAGES:
            self._open(self.client, page, why)

    def _open(self, client: Client, address: str, why: str) -> None:
        answer = client.get(address)
        if answer.streaming:
            b"".join(answer.streaming_content)
        self._count(address, answer, why)

    def _post(self, address: str, body: Any, why: str) -> None:
        self._count(address, self.client.post(address, body, "application/json"), why)

    def _count(self, address: str, answer: Any, why: str) -> None:
        self.seen.pages[answer.status_code] += 1
        if 400 <= answer.status_code < 500:
            self.seen.refused.append(f"{address}: {answer.status_code} <- {why}")
        if answer.status_code >= 500:
            cause = getattr(answer, "exc_info", None)
            text = "" if cause is None else _where(cause)
            self.seen.broken.append(f"{address}: {answer.status_code} {text} <- {why}")


def _where(cause: Any) -> str:
    trace = cause[2]
    frames = []
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    own = [f"{name.rsplit('/', 3)[-1]}:{line}" for name, line in frames if "site-packages" not in name]
    return f"{cause[0].__name__}: {str(cause[1])[:200]} at {', '.join(own[-3:])}"


def send_documents(sender: SendingClient, pages: Pages, seed: int, number: int, lists_every: int = 20) -> None:
    """Send damaged documents; open every page of those that are stored."""
    seen = pages.seen
    for count, body in enumerate(damaged_documents(seed, number)):
        answer = sender.send_result(body)
        seen.sent += 1
        seen.answers[answer.status_code] += 1
        why = f"document {count} of seed {seed}"
        if answer.status_code >= 500:
            seen.broken.append(f"/api/v1/results/: {answer.status_code} {answer.content[:300]!r} <- {why}")
        if answer.status_code == 201:
            pages.open_run(answer.json()["id"], why)
            if seen.stored % lists_every == 0:
                pages.open_lists(why)
    pages.open_lists("all of them")


def send_streams(sender: SendingClient, pages: Pages, seed: int, number: int, lists_every: int = 40) -> None:
    """Send damaged event streams, a call for each few events; open every page of the run, live and after its end."""
    seen = pages.seen
    for count in range(number):
        rng, why = random.Random(f"{seed} {count}"), f"stream {count} of seed {seed}"
        begun = sender.begin(key := make_run_key())
        seen.sent += 1
        seen.answers[begun.status_code] += 1
        events, first = damaged_events(rng), 0
        while events:
            part, events = events[: (most := rng.randrange(1, 12))], events[most:]
            answer = sender.send_events(key, first, *part)
            seen.calls[answer.status_code] += 1
            if answer.status_code >= 500:
                seen.broken.append(f"events: {answer.status_code} {answer.content[:300]!r} <- {why}")
            first += len(part) if answer.status_code == 200 else 0  # a refused call changes nothing
        pages.open_unfinished(begun.json()["id"], why)
        error = {"event": "error", "seconds": 9.0, "error": {"code": rng.choice(("stopped", "x")), "message": "gone"}}
        sender.send_events(key, first, error)
        pages.open_unfinished(begun.json()["id"], f"{why}, ended")
        if count % lists_every == 0:
            pages.open_lists(why)


def damage_stored(run_id: int, pages: Pages, seed: int, number: int) -> None:
    """Damage the rows of a finished and of a running run, as if an earlier version had stored it; open their pages.

    Only what an earlier version did not read before it stored it: breakdown, estimate, progress.
    """
    run = Run.objects.get(pk=run_id)
    attempt = run.attempts.get()
    whole = {"result": run.result, "environment": attempt.environment, "progress": attempt.progress}
    for count in range(number):
        rng, rows = random.Random(f"{seed} {count}"), copy.deepcopy(whole)
        part = rng.choice([each for each in _LENIENT if _at(rows, each)])
        damage(rng, {"part": _at(rows, part)} if rng.random() < 0.1 else _at(rows, part), rng.choice((1, 2, 5)))
        Run.objects.filter(pk=run_id).update(result=rows["result"])
        run.attempts.update(environment=rows["environment"], progress=rows["progress"])
        pages.seen.sent += 1
        pages.seen.answers[201] += 1
        pages.open_run(run_id, f"rows {count} of seed {seed}: {' '.join(part)}")


_LENIENT = (
    *(("result", "memory_breakdown"), ("result", "estimate")),
    *(("environment", "estimate"), ("environment", "device"), ("progress",)),
)


def _at(rows: Document, path: tuple[str, ...]) -> Any:
    part: Any = rows
    for name in path:
        part = part.get(name) if isinstance(part, dict) else None
    return part
