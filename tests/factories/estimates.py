"""Estimates with every member that an engine writes."""

from typing import Any

from analysis.models import Run
from analysis.runs import services
from engine.estimate.gpus import gpus
from tests.factories import make_claimed_estimate
from tests.fake_engine import estimate_of


def estimated_at(
    batch_size: int, *, fits: bool, allocated_bytes: int, reserved_bytes: int | None = None
) -> dict[str, Any]:
    memory = {"peak_allocated_bytes": allocated_bytes, "peak_reserved_bytes": reserved_bytes, "by_kind": {}}
    return {
        "batch_size": batch_size,
        "fits": fits,
        **memory,
        **dict.fromkeys(("device_used_bytes", "phase", "operator")),
    }


def estimate_of_card(card: dict[str, Any], largest: int, safe: int, **members: Any) -> dict[str, Any]:
    gpu = {"context_bytes": 0, "calibrated": False, **card}
    sizes = {"largest_batch_size": largest, "safe_batch_size": safe, "limit_bytes": gpu["total_bytes"], "at": []}
    how = {"margin_fraction": 0.0, "limits": "memory", "method": "fake_cuda", "known_error": None, "seconds": 1.0}
    return {"spec": {}, "gpu": gpu, **sizes, **how, "versions": {}, **members}


def make_stored_estimate(
    gpu: str = "a10", *, name: str = "", changes: dict[str, Any] | None = None, **spec: Any
) -> Run:
    """A finished estimate of BERT: 99 fit each GPU, 89 with the margin; `changes` go into each GPU's answer."""
    run = make_claimed_estimate(gpu, **{"model": "bert", "current_batch_size": 16, **spec})
    known = list(gpus().values()) if gpu == "all" else [gpus()[gpu]]
    made = [estimate_of(run.run_spec, each) | (changes or {}) for each in known]
    assert services.run_finish(run_id=run.pk, token=run.token, result={"estimates": made})
    return Run.objects.get(pk=run.pk)
