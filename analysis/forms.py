"""The form that asks for a run. What is allowed is decided by `engine.RunSpec` alone; the form shows its answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from analysis.models import Device, Run
from analysis.presentation.words import MODES, OPTIMIZERS, PRECISIONS, short_device_name
from analysis.templatetags.units import exact_bytes_text, millions
from engine.catalog import WORKLOADS, Workload
from engine.errors import SpecError
from engine.spec import RunSpec

REHEARSAL_MODEL, REHEARSAL_LIMIT = "bert-tiny", "512MiB"
"""What a host without an accelerator is offered first: an exact answer in about a minute."""


class DeviceChoiceField(forms.ModelChoiceField):
    """Devices as "A100-SXM4-40GB · lab-1 cuda:0"."""

    def label_from_instance(self, device: Device) -> str:
        return f"{short_device_name(device.name)} · {device.host} {device.device}"


class RunForm(forms.Form):
    """Fields named as in RunSpec, so that an error of the spec finds its field. Empty means: the default."""

    model = forms.ChoiceField(label="Model")
    device = DeviceChoiceField(label="Device", queryset=Device.objects.none(), empty_label=None)
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

    PLACEHOLDERS = ("price_per_hour_usd", "hours_per_run", "runs_per_year", "time_budget_seconds")
    MORE = ("mode", *PLACEHOLDERS)
    """Folded away on the page, which unfolds them when one of them is wrong."""

    def __init__(self, *args: Any, devices: Iterable[Device], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["device"].queryset = devices
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

    def _asked(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """The spec's keys that were filled in; the device's own price stands before the general default."""
        device: Device = cleaned["device"]
        asked = {name: value for name, value in cleaned.items() if value not in (None, "")}
        if device.price_per_hour_usd is not None:
            asked.setdefault("price_per_hour_usd", device.price_per_hour_usd)
        return asked | {"device": device.device}


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
    return known | {"device": run.device_id}


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
