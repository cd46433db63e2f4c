"""The form that asks for a run. What is allowed is decided by `engine.RunSpec` alone; the form shows its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django import forms

from analysis.models import Device, Run
from analysis.placement import Placement, placement_of
from analysis.presentation.words import MODES, OPTIMIZERS, PRECISIONS, short_device_name
from analysis.templatetags.units import exact_bytes_text, millions
from engine.catalog import WORKLOADS, Workload
from engine.errors import SpecError
from engine.spec import RunSpec

_KINDS = {"cuda": "GPU", "cpu": "CPU"}
REHEARSAL_MODEL, REHEARSAL_LIMIT = "bert-tiny", "512MiB"
"""What a host without an accelerator is offered first: an exact answer in about a minute."""


class RunForm(forms.Form):
    """Fields named as in RunSpec, so that an error of the spec finds its field. Empty means: the default."""

    model = forms.ChoiceField(label="Model")
    device = forms.ChoiceField(label="Device")
    precision = forms.ChoiceField(label="Precision", choices=PRECISIONS.items(), initial="fp32")
    optimizer = forms.ChoiceField(label="Optimizer", choices=OPTIMIZERS.items(), initial="adamw")
    sequence_length = forms.IntegerField(label="Sequence length", required=False)
    image_size = forms.IntegerField(label="Image size", required=False)
    current_batch_size = forms.IntegerField(
        label="Your batch size today", initial=16, help_text="The speed-up and the waste are measured against it."
    )
    memory_limit_bytes = forms.CharField(
        label="Memory limit",
        required=False,
        max_length=40,
        help_text="Optional: pretend the device is smaller, such as 24GiB.",
    )
    mode = forms.ChoiceField(label="Mode", choices=MODES.items(), initial="train")
    gradient_checkpointing = forms.BooleanField(
        label="Gradient checkpointing", required=False, help_text="Trades speed for memory; text models have it."
    )
    price_per_hour_usd = forms.FloatField(label="Price per hour, US$", required=False)
    hours_per_run = forms.FloatField(label="Hours per training run", required=False)
    runs_per_year = forms.IntegerField(label="Training runs per year", required=False)
    time_budget_seconds = forms.FloatField(label="Time budget, seconds", required=False)
    priority = forms.TypedChoiceField(
        label="Priority", choices=Run.Priority.choices, coerce=int, empty_value=0, required=False, initial=0
    )
    accepts_shared_device = forms.BooleanField(
        label="Run also on a card that other processes use",
        required=False,
        help_text="The result is then marked as shared, and is no baseline.",
    )

    PLACEHOLDERS = ("price_per_hour_usd", "hours_per_run", "runs_per_year", "time_budget_seconds")
    QUEUE = ("priority", "accepts_shared_device")
    MORE = ("mode", *PLACEHOLDERS, *QUEUE)
    """Folded away on the page, which unfolds them when one of them is wrong."""

    def __init__(self, *args: Any, devices: Iterable[Device], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.places = places_offered(devices)
        self.fields["device"].choices = [(value, label) for value, (label, _) in self.places.items()]
        self.fields["model"].choices = [(w.id, _model_label(w)) for w in WORKLOADS.values()]
        for name in ("sequence_length", "image_size"):
            self.fields[name].help_text = _input_hint(name)
            # home.js shows the field only for the models that take it
            self.fields[name].widget.attrs["data-models"] = " ".join(_taking(name))
            self.fields[name].widget.attrs["placeholder"] = str(WORKLOADS[_taking(name)[0]].default_input_size)
        for name in self.PLACEHOLDERS:
            default = RunSpec.__dataclass_fields__[name].default
            self.fields[name].widget.attrs["placeholder"] = f"{default:g}"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.errors:
            try:
                self.spec = RunSpec.from_dict(self._asked(cleaned))
            except SpecError as error:
                self.add_spec_error(error)
        return cleaned

    def add_spec_error(self, error: SpecError) -> None:
        """Put the spec's objection beside its field; a field that this form lacks shows at the top."""
        if error.field in self.fields:
            self.add_error(error.field, str(error).removeprefix(f"{error.field}: "))
        else:
            self.add_error(None, str(error))

    def submission(self) -> dict[str, Any]:
        """The arguments of `services.run_create`, of a valid form."""
        return {
            "spec": self.spec,
            "place": self.places[self.cleaned_data["device"]][1],
            "uses_device_price": self.cleaned_data["price_per_hour_usd"] is None,
            **{name: self.cleaned_data[name] for name in self.QUEUE},
        }

    def _asked(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """The spec's keys that were filled in."""
        asked = {name: value for name, value in cleaned.items() if value not in (None, "") and name not in self.QUEUE}
        _, place = self.places[cleaned["device"]]
        return asked | {"device": place.device.device if place.device else place.kind}


def places_offered(devices: Iterable[Device]) -> dict[str, tuple[str, Placement]]:
    """Value of the select -> its label and what it means: any of a kind, any of a class, each device."""
    offered = list(devices)
    kinds, classes = Counter(d.kind for d in offered), Counter((d.kind, d.name) for d in offered)
    places = [
        *((_any_of(kind, count), Placement(kind=kind)) for kind, count in kinds.items() if count > 1),
        *(
            (f"Any {name} ({count})", Placement(kind=kind, device_class=name[:100]))
            for (kind, name), count in classes.items()
            if count > 1
        ),
        *((f"{short_device_name(d.name)} · {d.host} {d.device}", Placement(device=d)) for d in offered),
    ]
    return {place_value(place): (label, place) for label, place in places}


def place_value(place: Placement) -> str:
    """A placement as the value of an option: a device's number, or words."""
    return str(place.device.pk) if place.device else f"any {place.kind} {place.device_class}".strip()


def first_values(devices: Iterable[Device]) -> dict[str, Any]:
    """What the empty form holds: a rehearsal on a CPU, the real thing where an accelerator exists."""
    if any(device.kind != "cpu" for device in devices):
        return {"model": "bert"}
    return {"model": REHEARSAL_MODEL, "memory_limit_bytes": REHEARSAL_LIMIT}


def values_of(run: Run) -> dict[str, Any]:
    """A stored run's settings as the form's first values, to change one and run again."""
    known = {name: value for name, value in run.spec.items() if name in RunForm.base_fields and value is not None}
    if "memory_limit_bytes" in known:
        known["memory_limit_bytes"] = exact_bytes_text(known["memory_limit_bytes"])
    return known | {
        "device": place_value(placement_of(run)),
        "priority": min(run.priority, Run.Priority.NORMAL),
        "accepts_shared_device": run.accepts_shared_device,
    }


def _any_of(kind: str, count: int) -> str:
    return f"Any {_KINDS.get(kind, f'{kind.upper()} device')} ({count})"


def _model_label(workload: Workload) -> str:
    kind = "text" if workload.is_text else "images"
    return f"{workload.name} · {millions(workload.parameter_count)} · {kind}"


def _input_hint(field: str) -> str:
    """Which models take this setting, and what they use without it."""
    taking = _taking(field)
    default, unit = WORKLOADS[taking[0]].default_input_size, "tokens" if field == "sequence_length" else "pixels a side"
    return f"For {', '.join(taking)}. Left empty: {default} {unit}."


def _taking(field: str) -> list[str]:
    return [workload.id for workload in WORKLOADS.values() if workload.input_field == field]
