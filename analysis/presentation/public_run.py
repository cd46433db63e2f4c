"""PURE: a run as people without an account may see it, by a link that was shared.

All that a page shows of it is taken from this copy, so no template can show what the copy lacks: what people wrote,
host, user and queue, the numbers and processes of the machine, texts of errors, which can name files, and of a training
of somebody's own its command, its name and its files. Ranks of a model of the catalogue are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import Device, Run
from analysis.presentation.kinds import presentation_of
from analysis.presentation.kinds.presentation import Presentation
from analysis.presentation.unreadable import read_or_none

OWN_TRAINING = "a training of their own"
ANOTHER_MACHINE = "another machine"
_VERSIONS = ("torch", "torchvision", "transformers", "diffusers", "cuda", "rocm", "cudnn", "python")
_COLUMNS = (
    *("pk", "kind", "gpu", "device_name", "is_trusted", "state", "created_at", "finished_at", "capacity_bytes"),
    *("limit_bytes", "largest_batch_size", "certified", "boundary_reason", "estimated_largest_batch_size"),
    *("estimated_safe_batch_size", "estimate_is_calibrated"),
)
_RESULT = (
    *("schema", "largest", "largest_with_reserve", "fastest", "recommended", "current", "waste", "fits"),
    *("speedup", "speedup_low", "speedup_high", "batch_size_ratio", "savings", "timings", "speed", "speed_rounds"),
    "memory_breakdown",
)
_DEVICE = ("kind", "name", "capacity_bytes", "limit_bytes", "compute_capability", "foreign_used_bytes", "beside_bytes")
_PROBE_HIDDEN = ("error_type", "error_message", "timing_conditions")
_SPEC_HIDDEN = ("name", "directory", "function", "script", "device", "command", "batch_in", "catalogue")
_ESTIMATE_HIDDEN = ("spec", "environment", "host")


def public_run(run: Run) -> Run:
    """Return a copy of the run, never to be saved, that holds only what everybody may see."""
    kind, result = presentation_of(run), run.result or {}
    facts = result.get("device") or {}
    card = Device(kind=facts.get("kind", ""), name=run.device_name, capacity_bytes=run.capacity_bytes or 0)
    if kind.is_predicted:
        public_result = {"estimates": [_estimate(estimate) for estimate in result.get("estimates") or ()]}
    else:
        public_result = _result(result, kind)
    return Run(
        **{name: getattr(run, name) for name in _COLUMNS},
        model=OWN_TRAINING if _is_own(run.spec, kind) else run.model,
        device=None if kind.is_predicted else card,
        reported_from=run.reported_from and ANOTHER_MACHINE,  # that it was reported, not from which host
        spec=_spec(run.spec, kind),
        result=public_result,
    )


def _spec(spec: Mapping[str, Any], kind: Presentation) -> dict[str, Any]:
    """Keep the model and its settings; of a command or function nothing but its kind."""
    public = {name: value for name, value in spec.items() if name not in _SPEC_HIDDEN}
    if _is_own(spec, kind):
        public |= {"model": OWN_TRAINING, "command": []}
    elif kind.runs_own_code:
        public |= {"command": [], "catalogue": spec["catalogue"]}
    return public


def _is_own(spec: Mapping[str, Any], kind: Presentation) -> bool:
    return kind.runs_own_code and not spec.get("catalogue")


def _result(result: Mapping[str, Any], kind: Presentation) -> dict[str, Any]:
    device, boundary = result.get("device") or {}, result.get("boundary") or {}
    public = {name: result[name] for name in _RESULT if name in result}
    public |= {
        "spec": _spec(result["spec"], kind),
        # how many others there were decides whether the card was shared; who they were stays inside
        "device": {
            **{name: device[name] for name in _DEVICE if name in device},
            "device": device.get("kind"),
            "foreign_processes": [{} for _ in device.get("foreign_processes") or ()],
        },
        "boundary": {**boundary, "refusal": None},
        "probes": [_without(probe, _PROBE_HIDDEN) for probe in result.get("probes") or ()],
        "environment": {name: text for name, text in (result.get("environment") or {}).items() if name in _VERSIONS},
    }
    if _is_own(result["spec"], kind):
        public["boundary"]["note"] = None
    if training := result.get("training"):
        hidden: dict[str, Any] = {"changed_files": [], "whole_run": None, "observed": None}
        public["training"] = {**_without(training, ("rank_hosts",)), **hidden}
    if estimate := read_or_none(_estimate, result.get("estimate")):
        public["estimate"] = estimate
    return public


def _estimate(estimate: Mapping[str, Any]) -> dict[str, Any]:
    limit = {"memory_limit_bytes": (estimate.get("spec") or {}).get("memory_limit_bytes")}
    return {**_without(estimate, _ESTIMATE_HIDDEN), "spec": limit}


def _without(document: Mapping[str, Any], hidden: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in hidden}
