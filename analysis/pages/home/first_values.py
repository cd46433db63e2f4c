"""The first values of the form that starts a run: of an empty one, and of one with the settings of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analysis.models import ALL_GPUS, PUBLISHED_KINDS, Device, Run, RunKind
from analysis.pages.form_choices import place_value
from analysis.pages.home.forms import RunForm
from analysis.pages.kinds import BY_KIND, pages_of
from analysis.runs.gpu_catalog import gpu_of
from analysis.runs.queue.placement import Placement, placement_of
from engine.settings.catalog.from_config import CONFIG
from engine.settings.catalog.stored_workload import stored_workload
from engine.settings.profiles import PROFILES, settings_like
from engine.settings.spec import DEFAULTS
from engine.settings.spec_checks import is_of_bytes
from engine.text.units import exact_bytes

REHEARSAL_MODEL, REHEARSAL_LIMIT = "bert-tiny", "512MiB"
"""The default of a host without an accelerator: an exact result in about a minute."""


def first_values(devices: Iterable[Device]) -> dict[str, Any]:
    """Return the form's first values: a short CPU run, a GPU run with an accelerator, an estimate without a device."""
    offered = list(devices)
    if not offered:
        return {"model": "bert", "kind": Run.Kind.ESTIMATE}
    if any(device.kind != "cpu" for device in offered):
        return {"model": "bert"}
    return {"model": REHEARSAL_MODEL, "memory_limit_bytes": REHEARSAL_LIMIT, "suggested_limit": REHEARSAL_LIMIT}


def values_of(run: Run, kind: str = "", devices: Iterable[Device] = ()) -> dict[str, Any]:
    """Read a stored run's settings as first values; `kind` makes a measurement of an estimate or vice versa."""
    pages = pages_of(run)
    starts = RunKind(kind) if kind in dict(PUBLISHED_KINDS) else pages.form_kind
    spec = pages.form_settings(run)
    known = {name: value for name, value in spec.items() if name in RunForm.base_fields and value is not None}
    if "rank" in known:
        known["rank"] = ",".join(map(str, known["rank"]))
    known |= {name: exact_bytes(value) for name, value in known.items() if is_of_bytes(name)}
    if run.requested_kind == "cpu" and known.get("memory_limit_bytes") == REHEARSAL_LIMIT:
        known["suggested_limit"] = REHEARSAL_LIMIT
        if "device" in BY_KIND[starts].form_leaves_out:
            known.pop("memory_limit_bytes")
    if run.spec.get("reserve_fraction") is not None:
        known["reserve_percent"] = f"{run.spec['reserve_fraction'] * 100:.6g}"
    for name in pages.form_leaves_out:
        known.pop(name, None)
    same_card = None
    if run.gpu:
        same_card = next((device for device in devices if (gpu := gpu_of(device)) and gpu.id == run.gpu), None)
    place = Placement(device=same_card) if same_card else placement_of(run)
    if same_card and known.get("ranks", 1) > 1:  # they need several like it
        place = Placement(kind=same_card.kind, device_class=same_card.name[:100])
    if known.get("config"):
        known["model"] = CONFIG
    if not _has_settings_of_profile(known):
        known.pop("like", None)
    return known | {
        "kind": starts,
        "gpu": run.gpu or ALL_GPUS,
        "frontier": ", ".join(map(str, run.spec.get("frontier", ()))),
        "largest": run.spec.get("largest", ""),
        **({"device": place_value(place)} if place.device or place.kind else {}),
        "priority": min(run.priority, Run.Priority.NORMAL),
        "accepts_shared_device": run.accepts_shared_device,
    }


def _has_settings_of_profile(spec: dict[str, Any]) -> bool:
    """Whether the form's settings with the profile mean the same training: none was set to its default."""
    workload = stored_workload(spec)
    if spec.get("like") not in PROFILES or workload is None:
        return False
    given = {name: value for name, value in spec.items() if value != DEFAULTS.get(name)}
    size = spec.get(workload.input_field) or workload.default_input_size
    return all(value == DEFAULTS[name] for name, value in settings_like(spec["like"], given, workload, size).items())
