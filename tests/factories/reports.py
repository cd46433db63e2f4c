"""Runs that a sender on another machine reports: their result documents as bytes, and the calls that bring them."""

import hashlib
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from analysis.accounts.tokens import token_create
from analysis.models import Run
from engine.facts.not_compared import NotCompared
from engine.facts.result import DeviceFacts, MemoryByKind, Probe, Purpose, RunResult, Timings
from engine.race.speed.comparison import Comparison
from engine.search.boundary import boundary_of_search, boundary_of_soak
from engine.search.unguided import Found
from engine.settings.spec import SOAK_STEPS_CPU
from engine.text.units import GIB, MIB
from engine.trainings.build_result import answer
from tests.factories import CAPACITY_BYTES, STACK, make_probe, make_refusal, make_spec

HOST, STARTED_AT = "node7", "2026-11-20T10:00:00+00:00"
DEVICE = DeviceFacts("cpu", "cpu", "Test CPU", CAPACITY_BYTES, limit_bytes=GIB)
NOT_COMPARED = Comparison(why=NotCompared.TIME_ENDED)


def make_run_key() -> str:
    return secrets.token_hex(16)


def make_probes() -> tuple[Probe, ...]:
    four, eight = _fitting(4), _fitting(8)
    refused = make_refusal(9, fresh_process=True, peak_allocated_bytes=GIB + MIB)
    return four, eight, refused, _fitting(8, purpose=Purpose.SOAK, fresh_process=True, steps=SOAK_STEPS_CPU)


def make_honest_result(device: DeviceFacts = DEVICE, *, seconds: float = 120.0, **fields: Any) -> RunResult:
    """A result that claims no more than its probes show: eight at most, without a comparison of speeds."""
    spec = make_spec(current_batch_size=4, memory_limit_bytes=GIB, **fields)
    probes = make_probes()
    boundary = boundary_of_search(Found(8, 9), probes[:3], device)
    boundary = boundary_of_soak(boundary, probes[3:], SOAK_STEPS_CPU, device, had_trained_earlier=False)
    timings = Timings(total_seconds=seconds)
    return answer(spec, device, boundary, probes, NOT_COMPARED, environment=dict(STACK), timings=timings)


def make_document(run_key: str = "", *, host: str = HOST, result: RunResult | None = None, **members: Any) -> bytes:
    """The bytes of a result file."""
    return body_of({**(result or make_honest_result()).to_dict(), **members}, run_key, host)


def body_of(document: dict[str, Any], run_key: str = "", host: str = HOST) -> bytes:
    """The bytes of the result file of this document, of a run of its own unless it is named."""
    origin = {"run_key": run_key or make_run_key(), "host": host, "started_at": STARTED_AT}
    environment = {**document["environment"], **origin}
    return json.dumps({"exit_status": 0, "result": {**document, "environment": environment}}).encode()


def make_events(probes: Sequence[Probe] = ()) -> list[dict[str, Any]]:
    environment = dict(STACK)
    begun: list[dict[str, Any]] = [
        {"event": "started", "seconds": 0.0, "schema": 1, "spec": make_spec().to_dict()},
        {"event": "phase", "seconds": 0.1, "phase": "preparing"},
        {"event": "device", "seconds": 1.0, "device": DEVICE.to_dict(), "environment": environment},
        {"event": "phase", "seconds": 1.1, "phase": "searching"},
    ]
    return begun + [{"event": "probe", "seconds": 2.0, "probe": probe.to_dict()} for probe in probes]


def digest_of(document: bytes) -> str:
    return hashlib.sha256(document).hexdigest()


class SendingClient:
    """A program on another machine with a token of its own."""

    def __init__(self, owner: User, *, raises_errors: bool = True) -> None:
        self.token, secret = token_create(owner=owner, name="cluster", may_write=True, expires_at=None)
        self._client = Client(raise_request_exception=raises_errors, headers={"Authorization": f"Bearer {secret}"})

    def begin(self, run_key: str, **members: Any) -> Any:
        spec = make_spec(current_batch_size=4, memory_limit_bytes=GIB).to_dict()
        body = {"run_key": run_key, "kind": "measurement", "host": HOST, "spec": spec, **members}
        return self._client.post("/api/v1/reports/", body, "application/json")

    def send_events(self, run_key: str, first: int, *events: dict[str, Any]) -> Any:
        body = {"first": first, "events": list(events)}
        return self._client.post(f"/api/v1/reports/{run_key}/events/", body, "application/json")

    def send_result(self, document: bytes, **headers: str) -> Any:
        headers = {"Idempotency-Key": digest_of(document), **headers}
        return self._client.post("/api/v1/results/", document, "application/json", headers=headers)

    def query_known(self, sha256: Any) -> Any:
        return self._client.post("/api/v1/results/known/", {"sha256": sha256}, "application/json")


def make_reported_run(owner: User, **members: Any) -> Run:
    answered = SendingClient(owner).send_result(make_document(**members))
    assert answered.status_code == 201, answered.content
    return Run.objects.with_places().get(pk=answered.json()["id"])


def _fitting(batch_size: int, **fields: Any) -> Probe:
    """On a CPU the kinds are those of the peak, to the byte."""
    kinds = MemoryByKind(100 * MIB, 0, 0, (batch_size - 1) * 100 * MIB, 0)
    return make_probe(batch_size, memory_by_kind=kinds, **fields)


def make_function_document(run_key: str = "", **spec: Any) -> bytes:
    """The result file of a function: what `memorymark.tune` found on a CPU for a layer of 256 x 256 (8 MiB)."""
    document = json.loads(Path(__file__).with_name("tuned_function.json").read_text())
    document["result"]["environment"]["run_key"] = run_key or make_run_key()
    document["result"]["spec"] |= spec
    return json.dumps(document).encode()
