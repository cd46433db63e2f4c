"""Stored runs for the matrix's tests, on made-up cards of the catalogue."""

from dataclasses import asdict
from typing import Any

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.kinds import spec_columns
from analysis.runs.matrix_store import cells_renew
from engine.estimate.gpus import gpus
from engine.facts.result import DeviceFacts
from engine.trainings.script.ranked_spec import requested_spec
from engine.trainings.script.result import Training
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_card, make_claimed_estimate, make_claimed_run
from tests.factories.estimates import estimate_of_card
from tests.factories.results import result


def card(gpu: str = "a100-40gb") -> Device:
    known = gpus()[gpu]
    found = Device.objects.filter(name=known.torch_names[0]).first()
    number = Device.objects.count()
    return found or make_card(number, name=known.torch_names[0], capacity_bytes=known.total_bytes, uuid=f"GPU-{gpu}")


def measured(gpu: str = "a100-40gb", largest: int = 20, speed: float = 100.0, **spec: Any) -> Run:
    device = card(gpu)
    facts = DeviceFacts(device.device, "cuda", device.name, device.capacity_bytes, foreign_used_bytes=0)
    run = make_claimed_run(device, **spec)
    answer = result(largest, speed=speed, card=facts)
    services.run_finish(run_id=run.pk, token=run.token, result=answer.to_dict())
    return run


def measured_on_ranks(gpu: str = "a100-40gb", largest: int = 20, speed: float = 100.0, **request: Any) -> Run:
    run, spec = measured(gpu, largest, speed), requested_spec({"model": "bert-tiny", **request})
    run.refresh_from_db()
    assert isinstance(spec, TuneSpec)
    assert spec.catalogue is not None
    consumed = Training(1, spec.catalogue["ranks"], (7, 9), None, None, ((4, 1.0),), ())
    document = {**(run.result or {}), "spec": spec.to_dict(), "training": asdict(consumed)}
    Run.objects.filter(pk=run.pk).update(**spec_columns(spec), result=document)
    cells_renew(run_ids=[run.pk])
    return Run.objects.get(pk=run.pk)


def estimated(*gpu_ids: str, largest: int = 50, **spec: Any) -> Run:
    run = make_claimed_estimate("all" if len(gpu_ids) > 1 else gpu_ids[0], **spec)
    known = [gpus()[gpu] for gpu in gpu_ids]
    cards = [{"id": gpu.id, "name": gpu.name, "total_bytes": gpu.total_bytes} for gpu in known]
    estimates = [estimate_of_card(each, largest, largest - 2, spec=run.spec) for each in cards]
    services.run_finish(run_id=run.pk, token=run.token, result={"estimates": estimates})
    return run
