"""Finished runs of a command of somebody's own, as the database has them."""

from dataclasses import asdict, replace
from typing import Any

from analysis.models import Run, RunKind
from analysis.runs import services
from engine.facts.not_compared import NotCompared
from engine.facts.result import RunResult
from engine.trainings.script.result import Training
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_claimed_run, make_result
from tests.factories.speeds import make_unmeasurable_result

COMMAND = ("python", "train.py", "{batch_size}")


def tuned(result: RunResult, spec: TuneSpec, **fields: Any) -> Run:
    consumed = Training(1, 1, (9,), None, 0.1, ((4, 1.0),), ())
    document = {**replace(result, spec=spec).to_dict(), "training": asdict(consumed)}
    run = make_claimed_run()
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    Run.objects.filter(pk=run.pk).update(
        kind=RunKind.COMMAND, model="train.py", spec=spec.to_dict(), result=document, **fields
    )
    return Run.objects.get(pk=run.pk)


def not_compared() -> RunResult:
    result = make_unmeasurable_result()
    assert result.speed is not None
    return replace(
        result, speed=replace(result.speed, why=NotCompared.STARTS_APART, compared=None, seconds=0.0, rounds=0)
    )
