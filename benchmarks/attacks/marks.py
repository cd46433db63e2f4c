"""Figures of an untrusted sender: each place that shows one says who sent it, and that nobody verified it (M5)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.attacks.documents import body_of
from benchmarks.attacks.portal import Attacked, Row, row
from benchmarks.report_faults import ROOT

LARGEST, SENDER, NAME = 7351, "dgx-01", "kim"
"""The size, the host and the person that `tests/security/test_reported_runs_are_marked.py` looks for."""
MARKED = "every figure beside its origin and that it is not trusted"
READ = (
    *("/api/v1/runs/{}/", "/api/v1/runs/{}/certificate/", "/api/v1/runs/{}/result/", "/api/v1/runs/{}/points/"),
    *("/api/v1/runs/{}/advice/", "/api/v1/runs/{}/measurements/", "/api/v1/runs/{}/events/", "/api/v1/runs/"),
    *("/runs/{}/", "/runs/{}/advice/", "/compare/", "/runs/{}/export.csv", "/runs/{}/export.json"),
    *("/runs/{}/charts/memory.svg", "/runs/export.csv", "/api/v1/runs/export.csv", "/runs/"),
)


def marked_everywhere(portal: Attacked) -> Iterator[Row]:
    from analysis.models import Run
    from analysis.runs.marks.share_links import share_link_create
    from tests.engine.honest_worker import HonestWorker, document_of
    from tests.security.test_reported_runs_are_marked import FIGURE, says_it

    sender = portal.person(name=NAME)
    document = document_of(HonestWorker(LARGEST))
    answer = sender.send_result(body_of(document, host=SENDER))
    run_id = answer.json()["id"]
    yield row("M5", f"a sender nobody trusts reports {LARGEST:,}", "201", answer.status == 201, answer)
    for address in READ:
        answer = portal.reader.get(address.format(run_id))
        shows = bool(FIGURE.search(answer.text))
        says = says_it(answer.content_type, answer.text, False)
        said = f"{answer.status} {answer.content_type}: the figure is {'there' if shows else 'not there'}, "
        said += "marked" if says else "not marked"
        held = answer.status == 200 and (says or not shows)
        yield row("M5", f"GET {address.format('N')}", MARKED, held, said, seconds=answer.seconds)
    answer = portal.reader.post("/api/v1/compare/", {"ids": [run_id, portal.first_run]})
    held = answer.status == 200 and says_it("application/json", answer.text, False)
    yield row("M5", "POST /api/v1/compare/", MARKED, held, answer)
    _, secret = share_link_create(run_id=run_id, by=sender.user, days=7)
    for address in (f"/share/{secret}/", f"/share/{secret}.svg"):
        answer = portal.viewer.get(address)
        held = answer.status == 200 and re.search(r"not verified|reported", answer.text) is not None
        held = held and (not address.endswith("svg") or "#00ff88" not in answer.text)
        tried = f"GET {address.replace(secret, 'SECRET')}, which needs no login"
        yield row("M5", tried, "it says: reported, not verified by this lab; the badge is not green", held, answer)
    yield from _validations(portal)
    yield from _messages(portal, Run.objects.with_places().get(pk=run_id))
    yield from _check(portal, run_id, document)


def _validations(portal: Attacked) -> Iterator[Row]:
    """Look at the list of validations, in which a reported verdict stood beside the lab's own."""
    from analysis.models import Run
    from tests.pages.validations.test_validations_page import ended

    run = ended()
    Run.objects.filter(pk=run.pk).update(reported_from=SENDER, is_trusted=False, requested_by=portal.reader.user)
    page = portal.viewer.get("/validations/")
    # what stands in the line of this run
    line = next((part for part in re.split(r"<tr|<li", page.text) if f"/runs/{run.pk}/" in part), "")
    words = " ".join(re.sub(r"<[^>]*>", " ", line).split())
    held = page.status == 200 and "reported" in words.lower()
    yield row("M5", "a reported validation in Latest validations", "a mark beside it", held, words[:200])


def _messages(portal: Attacked, run: Any) -> Iterator[Row]:
    """Deliver the news of its end to a real receiver, and read what webhook, Slack and mail say."""
    from django.db.models.functions import Now

    from analysis.models import AllowedHost, Delivery, DeliveryState, NewsEvent, NewsKind
    from analysis.news.deliver import attempt, store_outcome, take_due
    from analysis.news.fan_out import deliver_to, dispatch_waiting
    from analysis.news.messages import body_of as message_of
    from analysis.news.messages import mail_text
    from analysis.news.subscriptions import Wish, subscription_create
    from tests.news.receiver import receiving

    while dispatch_waiting():
        pass
    event = NewsEvent.objects.get(run=run, kind=NewsKind.FINISHED)
    with receiving() as receiver:
        AllowedHost.objects.create(host=f"127.0.0.1:{receiver.port}")
        for channel, url in (("webhook", receiver.url), ("slack", receiver.url)):
            wish = Wish(channel, channel, [NewsKind.FINISHED], url)
            subscription, _ = subscription_create(owner=portal.reader.user, wish=wish)
            deliver_to(event, run, [subscription])
        Delivery.objects.filter(state=DeliveryState.WAITING).exclude(event=event).delete()
        Delivery.objects.filter(state=DeliveryState.WAITING).update(due_at=Now())
        for parcel in take_due(20, busy=()):
            store_outcome(parcel, attempt(parcel))
        texts = sorted((each.body.decode() for each in receiver.received), key=lambda text: "delivery" not in text)
    texts.append(mail_text(message_of(event, run)))
    for channel, text in zip(("webhook", "Slack", "mail"), texts, strict=True):
        held = f"Not verified by this lab, reported from {SENDER}" in text
        yield row("M5", f"the message by {channel}", "it says so before any figure", held, text[:SAID_MOST])
    content = json.loads(texts[0])
    held = content["is_trusted"] is False and content["reported_from"] == SENDER
    said = ", ".join(f"{name} {content[name]}" for name in ("origin", "reported_from", "is_trusted"))
    yield row("M5", "members of the webhook's body", "origin, reported_from, is_trusted", held, said)


SAID_MOST = 160


def _check(portal: Attacked, run_id: int, document: dict[str, Any]) -> Iterator[Row]:
    """Compare a result with this run, as a pipeline does."""
    with tempfile.TemporaryDirectory(prefix="memorymark-check-") as folder:
        path = Path(folder) / "result.json"
        path.write_text(json.dumps(document))
        for part in ("", "result/"):
            address = f"{portal.url}/api/v1/runs/{run_id}/{part}"
            for options, expected, status in (
                ((), "exit status 0, with a warning", 0),
                (("--trusted-only",), "exit status 2: refused", 2),
            ):
                command = [sys.executable, "-m", "engine", "check", str(path), "--baseline", address, *options]
                environment, began = {**os.environ, "MEMORYMARK_TOKEN": portal.viewer.secret}, time.monotonic()
                done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
                lines = [line for line in (done.stdout + done.stderr).splitlines() if "trust" in line]
                said = f"exit status {done.returncode}: {lines[0] if lines else done.stderr[-SAID_MOST:]}"
                tried = f"check --baseline .../api/v1/runs/N/{part} {' '.join(options)}".strip()
                held = done.returncode == status and bool(lines)
                yield row("M5", tried, expected, held, said, seconds=time.monotonic() - began)


ATTACKS = (marked_everywhere,)
