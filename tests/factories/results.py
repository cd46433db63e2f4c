"""Stored runs for the comparison's tests: round figures on made-up cards."""

import datetime as dt
from dataclasses import replace
from typing import Any

from analysis.lists.comparison.compared_run import ComparedRun, compared_run_of
from analysis.models import Device, Run
from analysis.runs import services
from engine.facts.result import DeviceFacts, Point, Probe, RunResult
from engine.text.units import GIB
from tests.factories import (
    make_claimed_estimate,
    make_claimed_run,
    make_device,
    make_probe,
    make_refusal,
    make_result,
    make_spec,
)
from tests.factories.estimates import estimate_of_card, estimated_at

CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-40GB", 40 * GIB, 40 * GIB, driver="580.65")
ENVIRONMENT = {"torch": "2.13.0", "cuda": "13.0", "transformers": "5.23.0", "allocator_settings": None}
BEGINNING = dt.datetime(2026, 10, 1, 4, tzinfo=dt.UTC)


def probes(largest: int, bytes_per_sample: int, speed: float = 100.0) -> tuple[Probe, ...]:
    """Powers of two up to the largest size, and the refusal above it."""
    sizes = [2**power for power in range(largest.bit_length()) if 2**power < largest]
    fitting = [
        make_probe(size, peak_allocated_bytes=size * bytes_per_sample, samples_per_second=speed * size / (size + 1))
        for size in (*sizes, largest)
    ]
    return (*fitting, make_refusal(largest + 1, fresh_process=True))


def result(
    largest: int = 8,
    *,
    bytes_per_sample: int = GIB,
    speed: float = 100.0,
    card: DeviceFacts = CARD,
    environment: dict[str, Any] | None = None,
    **fields: Any,
) -> RunResult:
    measured = probes(largest, bytes_per_sample, speed)
    best = Point.of(measured[-2], card)
    plain = make_result(
        spec=make_spec(current_batch_size=4),
        device=card,
        largest=best,
        fastest=best,
        recommended=best,
        probes=measured,
        environment={**ENVIRONMENT, **(environment or {})},
    )
    boundary = replace(plain.boundary, largest_batch_size=largest, refused_batch_size=largest + 1)
    waste = replace(plain.waste, capacity_bytes=card.capacity_bytes)
    return replace(plain, **{"boundary": boundary, "waste": waste, **fields})


def the_card() -> Device:
    place = {"device": "cuda:0", "kind": "cuda", "uuid": "GPU-1", "name": CARD.name}
    return Device.objects.filter(uuid="GPU-1").first() or make_device(**place, capacity_bytes=CARD.capacity_bytes)


def finished(answer: RunResult | None = None, *, carried: int = 0, **spec: Any) -> Run:
    """A finished run with its probes stored as the supervisor stores them; the first ones may be carried over."""
    answer = answer or result()
    run = make_claimed_run(the_card(), **spec)
    for sequence, probe in enumerate(answer.probes, start=1):
        services.measurement_add(
            run_id=run.pk, token=run.token, probe=probe, sequence=sequence, is_carried=sequence <= carried
        )
    services.run_finish(run_id=run.pk, token=run.token, result=answer.to_dict())
    run.refresh_from_db()
    return run


def finished_on_day(day: int, answer: RunResult | None = None, **spec: Any) -> Run:
    run = finished(answer, **spec)
    Run.objects.filter(pk=run.pk).update(finished_at=BEGINNING + dt.timedelta(days=day))
    return run


def estimate(largest: int = 9, cards: int = 1) -> dict[str, Any]:
    """The stored answer of the predictor, for this number of cards."""
    sizes = (1, 4, largest, largest + 1)
    points = [estimated_at(size, fits=size <= largest, allocated_bytes=size * GIB) for size in sizes]
    gpu = {"id": "a10", "name": CARD.name, "total_bytes": CARD.capacity_bytes}
    one = estimate_of_card(gpu, largest, largest - 1, spec=make_spec().to_dict(), limit_bytes=39 * GIB)
    return {"estimates": [{**one, "at": points, "versions": {"torch": "2.13.0"}}] * cards}


def finished_estimate(answer: dict[str, Any] | None = None) -> Run:
    run = make_claimed_estimate()
    services.run_finish(run_id=run.pk, token=run.token, result=answer or estimate())
    run.refresh_from_db()
    return run


def subject(number: int, answer: RunResult | None = None, **columns: Any) -> ComparedRun:
    answer = answer or result()
    columns = {"state": "finished", "model": "bert-tiny", "spec": answer.spec.to_dict(), **columns}
    return compared_run_of(Run(pk=number, result=answer.to_dict(), **columns))
