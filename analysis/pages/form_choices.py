"""What the forms of several pages offer: models by task, places, and the sizes of an input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from django import forms

from analysis.formatting import millions, round_bytes
from analysis.models import Device
from analysis.presentation.labels import DEVICE_LABELS, short_device_name
from analysis.runs.queue.placement import Placement
from engine.settings.catalog import TASK_LABELS, WORKLOADS
from engine.settings.catalog.from_config import CONFIG
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES
from engine.text.units import parse_bytes


def places_offered(devices: Iterable[Device], *, count: int = 1) -> dict[str, tuple[str, Placement]]:
    """Map each value of the select to its label and placement: any of a kind, any of a class, each device.

    A run on `count` devices together names no device, only a kind or class; a host has as many of it.
    """
    offered = list(devices)
    if count > 1:
        return _sets_offered(offered, count)
    kinds, classes = Counter(d.kind for d in offered), Counter((d.kind, d.name) for d in offered)
    places = [
        *(
            (f"Any {DEVICE_LABELS.get(kind, f'{kind.upper()} device')} ({count})", Placement(kind=kind))
            for kind, count in kinds.items()
            if count > 1
        ),
        *(
            (f"Any {name} ({count})", Placement(kind=kind, device_class=name[:100]))
            for (kind, name), count in classes.items()
            if count > 1
        ),
        *((f"{short_device_name(d.name)} · {d.host} {d.device}", Placement(device=d)) for d in offered),
    ]
    return {place_value(place): (label, place) for label, place in places}


def _sets_offered(devices: Sequence[Device], count: int) -> dict[str, tuple[str, Placement]]:
    of_model = Counter((d.host_id, d.kind, d.name) for d in devices)
    classes = dict.fromkeys((kind, name) for (_, kind, name), there in of_model.items() if there >= count)
    kinds = dict.fromkeys(kind for kind, _ in classes)
    places = [
        *((f"{count} × {DEVICE_LABELS.get(kind, kind.upper())} of one host", Placement(kind=kind)) for kind in kinds),
        *((f"{count} × {name}", Placement(kind=kind, device_class=name[:100])) for kind, name in classes),
    ]
    return {place_value(place): (label, place) for label, place in places}


def place_value(place: Placement) -> str:
    """Write a placement as the value of an option: a device's id, or "any" with kind and class."""
    return str(place.device.pk) if place.device else f"any {place.kind} {place.device_class}".strip()


def models_by_task() -> list[tuple[str, list[tuple[str, str]]]]:
    by_task: dict[str, list[tuple[str, str]]] = {}
    for workload in WORKLOADS.values():
        label = f"{workload.name} · {millions(workload.parameter_count)} parameters"
        by_task.setdefault(TASK_LABELS[workload.task], []).append((workload.id, label))
    return list(by_task.items())


def describe_input_sizes(fields: Mapping[str, forms.Field]) -> None:
    for name, unit in (("sequence_length", "tokens"), ("image_size", "pixels a side")):
        defaults = {each.id: each.default_input_size for each in WORKLOADS.values() if each.input_field == name}
        sizes = " or ".join(map(str, sorted(set(defaults.values()))))
        fields[name].help_text = f"Left empty: {sizes} {unit}, by the model."
        # home.js shows the field only for the models that take it, with the default of the chosen one
        models = [f"{model}:{size}" for model, size in defaults.items()]
        fields[name].widget.attrs["data-models"] = " ".join([*models, f"{CONFIG}:"])


def describe_limit(suggested: str | None) -> str:
    default, why = round_bytes(CPU_DEFAULT_LIMIT_BYTES), "Such as 24GiB, to pretend a smaller device."
    if suggested:
        why = f"{round_bytes(parse_bytes(suggested))} keeps the first run short."
    return f"{why} Empty: the whole GPU; on a CPU {default}."
