"""Forged result documents: figures that no probe shows (H1), rounds without end (H2, L3), pages that break (M1)."""

from __future__ import annotations

import copy
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from benchmarks.attacks.portal import HOST, Answer, Attacked, Person, Row, longest, meanwhile, row
from benchmarks.documents_at_once import document as filled_document
from tests.engine.answers.answers import originals

Document = dict[str, Any]
STARTED_AT = "2026-11-20T10:00:00+00:00"
REFUSED = "refused with 400 or 422, by the name of the field"
REFUSED_SECONDS = 5.0
"""Far from both: a tenth of a second where nothing else runs, and the 39 s of the finding."""
PAGES = (
    *("/runs/{}/", "/runs/{}/live/", "/runs/{}/advice/", "/api/v1/runs/{}/", "/api/v1/runs/{}/result/"),
    *("/", "/runs/", "/fleet/", "/matrix/", "/compare/?ids={}"),
)


def body_of(document: Document, **origin: str) -> bytes:
    """Return the bytes of a document with an origin of its own."""
    from tests.factories.reports import make_run_key

    origin = {"run_key": make_run_key(), "host": HOST, "started_at": STARTED_AT, **origin}
    environment = {**document["environment"], **origin}
    return json.dumps({"exit_status": 0, "result": {**document, "environment": environment}}).encode()


def tuned() -> Document:
    """A tuned command whose compared starts are equally fast: today's size stays."""
    from engine.tune import run as tune_run
    from engine.tune.spec import TuneSpec
    from tests.engine.answers.test_commands import made, made_up_start
    from tests.engine.quiet_machine import leave_the_machine_alone

    settings = {"memory_limit_bytes": 4_000, "compare_speed": True, "start_batch_size": 32}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune_run, "start", made_up_start)
        leave_the_machine_alone(patch)
        return made(TuneSpec(("python", "train.py", "{batch_size}"), **settings))


def with_members(document: Document, path: str, value: Any) -> Document:
    changed = copy.deepcopy(document)
    *way, last = path.split(".")
    part: Any = changed
    for step in way:
        part = part[int(step) if isinstance(part, list) else step]
    part[int(last) if isinstance(part, list) else last] = value
    return changed


def opened(person: Person, run_id: int) -> Counter[int]:
    """Open every page that shows a run, and return how often each status was answered."""
    return Counter(person.get(page.format(run_id)).status for page in PAGES)


def has_no_error(statuses: Counter[int]) -> bool:
    return all(status < 500 and status for status in statuses)


def forged_figures(portal: Attacked) -> Iterator[Row]:
    sender, honest = portal.person(), tuned()
    answer = sender.send_result(body_of(honest))
    yield row("H1", "the honest document, before anything is forged", "201", answer.status == 201, answer)
    turns = {"batch_sizes": [16, 38], "pairs": [], "ratio": {"low": 1, "value": 1.0, "high": 1}}
    for what, path, value in (
        ("turns.ratio says 50x", "training.turns", {**turns, "ratio": {"low": 1, "value": 50.0, "high": 99}}),
        ("turns.batch_sizes name 999,999, which never ran", "training.turns", {**turns, "batch_sizes": [1, 999_999]}),
        ("the speed-up is 50", "speedup", 50.0),
        ("a speed of the starts is doubled", "training.throughputs.0.samples_per_second", 1e6),
        ("the reason says it in words", "speed.reason", "use 4,096, it is 50x as fast as your 16"),
        ("the note of the certificate says it in words", "boundary.note", "independently verified: 50x as fast"),
    ):
        answer = sender.send_result(body_of(with_members(honest, path, value)))
        yield row("H1", what, REFUSED, answer.is_refused, answer)


def padded(rounds: int, sizes: int, left_out: list[int]) -> Document:
    """A document of so many rounds of so many sizes, each with the steps that its blocks claim."""
    from tests.engine.honest_worker import HonestWorker, document_of

    document, rng = document_of(HonestWorker(528)), random.Random(17)
    first, probe = document["speed_rounds"][0], next(p for p in document["probes"] if p["purpose"] == "timing")
    steps = {size: [rng.uniform(0.4, 0.6) for _ in range(rounds)] for size in range(1, sizes + 1)}
    document["probes"] = [each for each in document["probes"] if each["purpose"] != "timing"]
    document["probes"] += [{**probe, "batch_size": size, "timed_step_seconds": each} for size, each in steps.items()]
    document["speed_rounds"] = [
        {
            **first,
            "seconds": 100.0,
            "blocks": [
                {
                    **first["blocks"][0],
                    "batch_size": size,
                    "step_seconds": each[number],
                    "first_step": number,
                    "steps": 1,
                }
                for size, each in steps.items()
            ],
        }
        for number in range(rounds)
    ]
    document["speed"]["left_out_batch_sizes"] = left_out
    return document


def endless_rounds(portal: Attacked) -> Iterator[Row]:
    from engine.answers.document import MOST_BLOCKS, MOST_ROUNDS

    sender, most = portal.person(), f"refused within {REFUSED_SECONDS:g} s, whatever else the machine does"
    for what, rounds, sizes, left_out in (
        ("250 rounds of 25 sizes, one left out (took 39 s)", 250, 25, [1]),
        ("400 rounds of 40 sizes, one left out", 400, 40, [1]),
        ("as many rounds and blocks as are allowed, one left out", MOST_ROUNDS, MOST_BLOCKS // MOST_ROUNDS, [1]),
        ("as many sizes and blocks as are allowed, one left out", MOST_BLOCKS // 40, 40, [1]),
        ("as many sizes and blocks as are allowed, none left out", MOST_BLOCKS // 40, 40, []),
    ):
        answer = sender.send_result(body_of(padded(rounds, sizes, left_out)))
        yield row("H2", what, most, answer.is_refused and answer.seconds < REFUSED_SECONDS, answer)
    from tests.engine.honest_worker import HonestWorker, document_of

    answer = sender.send_result(body_of(document_of(HonestWorker(528, noise=0.9, others_cores=3.0))))
    held = answer.status == 201 and answer.seconds < REFUSED_SECONDS
    yield row(
        "H2",
        "the longest comparison that a noisy machine makes, which is honest",
        f"201 within {REFUSED_SECONDS:g} s",
        held,
        answer,
    )
    for what, rounds, sizes in (("120 rounds of 16 sizes", 120, 16), ("24 rounds of 40 sizes", 24, 40)):
        yield _at_once(portal, what, rounds, sizes)


def _at_once(portal: Attacked, what: str, rounds: int, sizes: int) -> Row:
    senders, bodies = [portal.person() for _ in range(16)], [body_of(padded(rounds, sizes, [1])) for _ in range(16)]
    answers: list[Answer] = []

    tasks = [partial(send_until_read, *pair, answers) for pair in zip(senders, bodies, strict=True)]
    began = time.monotonic()
    pages = meanwhile(portal.reader, "/runs/", tasks)
    seen = dict(sorted(Counter(each.status for each in answers).items()))
    held = 201 not in seen and longest(pages) < REFUSED_SECONDS
    said = (
        f"answers {seen}, the slowest after {longest(answers):.2f} s; {len(pages)} pages meanwhile, the slowest after "
    )
    said += f"{longest(pages):.2f} s"
    tried = f"16 documents of {what}, {len(bodies[0]) // 1024} KiB each, at once (nobody else was answered for 26 s)"
    expected = f"none stored; other people's pages within {REFUSED_SECONDS:g} s, whatever else the machine does"
    return row("H2", tried, expected, held, said, seconds=time.monotonic() - began)


def send_until_read(sender: Person, body: bytes, answers: list[Answer]) -> None:
    """Send a document; where the portal is busy (503), again after the time that it names."""
    for _ in range(30):
        answers.append(answer := sender.send_result(body))
        if answer.status != 503:
            return
        time.sleep(float(answer.headers.get("retry-after", 1)))


def left_out_rounds(portal: Attacked) -> Iterator[Row]:
    from tests.engine.honest_worker import HonestWorker, document_of

    sender, honest = portal.person(), document_of(HonestWorker(528, noise=0.1))
    answer = sender.send_result(body_of(honest))
    yield row("L3", "the honest document, before rounds are dropped", "201", answer.status == 201, answer)
    timed = {block["batch_size"] for each in honest["speed_rounds"] for block in each["blocks"]}
    for what, size in (("was never timed", 9_999), ("was never timed, but probed", 1), ("was timed", max(timed))):
        answers = []
        for start in range(len(honest["speed_rounds"]) - 6):
            forged = copy.deepcopy(honest)
            forged["speed"]["left_out_batch_sizes"] = [size]
            del forged["speed_rounds"][start : start + 6]
            answers.append(sender.send_result(body_of(forged)))
        tried = f"six rounds dropped behind a size that {what}, at each of {len(answers)} places"
        held = all(each.is_refused for each in answers)
        yield row("L3", tried, REFUSED, held, answers[0], seconds=longest(answers))


def breaking_documents(portal: Attacked) -> Iterator[Row]:
    sender, whole, command = portal.person(), originals()["bert_tiny"], tuned()
    unknown = copy.deepcopy(whole)
    unknown["memory_breakdown"]["entries"][1]["kind"] = "KIND"
    cases = [("a breakdown with an unknown kind", unknown)]
    turns = {"batch_sizes": [16, 38], "pairs": [], "ratio": {"low": 1, "value": 1.0, "high": 1}}
    for value in ("xy", [], None, [1, "x"]):
        forged = with_members(command, "training.turns", {**turns, "batch_sizes": value})
        cases.append((f"turns.batch_sizes {json.dumps(value)}", forged))
    for value in (None, "50x"):
        forged = with_members(command, "training.turns", {**turns, "ratio": value})
        cases.append((f"turns.ratio {json.dumps(value)}", forged))
    for what, document in cases:
        answer = sender.send_result(body_of(document))
        pages = opened(portal.reader, answer.json()["id"]) if answer.status == 201 else Counter[int]()
        yield row("M1", what, "refused, or no page answers 500", answer.is_refused or has_no_error(pages), answer)


def large_results(portal: Attacked) -> Iterator[Row]:
    sender, rng = portal.person(), random.Random(17)
    for size in (974_268, 1_164_398, 2_875_618, 3_826_318):
        body = filled_document(size, rng)
        answer = sender.send_result(body)
        yield row("M7", f"an honest document of {len(body):,} bytes", "201", answer.status == 201, answer)
    answer = sender.send_result(b" " * (4 * 2**20) + filled_document(1, rng))
    yield row("M7", "one of more than 4 MiB", "413, with the limit", answer.status == 413, answer)


def invented_run(portal: Attacked) -> Iterator[Row]:
    """Invent a whole run that fits together: it is stored, as the documents say, and counts nowhere."""
    from tests.engine.honest_worker import HonestWorker, document_of

    sender = portal.person()
    answer = sender.send_result(body_of(document_of(HonestWorker(4_096)), host="dgx-01"))
    found = portal.reader.get(f"/api/v1/runs/{answer.json()['id']}/").json()
    held = answer.status == 201 and found["is_trusted"] is False and found["reported_from"] == "dgx-01"
    said = f"201; is_trusted {found['is_trusted']}, reported_from {found['reported_from']}"
    expected = "stored, untrusted and marked (docs/security.md: invented probes that fit together cannot be detected)"
    yield row("-", "an invented run whose probes fit together", expected, held, said, seconds=answer.seconds)


ATTACKS = (forged_figures, endless_rounds, left_out_rounds, breaking_documents, large_results, invented_run)
