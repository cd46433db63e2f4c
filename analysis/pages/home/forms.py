"""The form that starts a run. `engine.RunSpec` alone validates the settings; the form shows its errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django import forms

from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.models import ALL_GPUS, Device, Run
from analysis.pages.setting_fields import setting_field
from analysis.pages.spec_form import SpecForm
from analysis.presentation.formatting import exact_bytes_text, millions
from analysis.presentation.labels import short_device_name
from analysis.runs.gpu_catalog import gpu_choices, gpu_of
from analysis.runs.placement import Placement, placement_of
from engine.catalog import TASK_LABELS, WORKLOADS, Workload
from engine.catalog.from_config import CONFIG, SIZE_BYTES_MAX, TASKS
from engine.errors import SpecError
from engine.estimate.frontier import sizes_in
from engine.spec import CHOICES, DEFAULTS, RANGES, SETTINGS, TRAINING_SETTINGS, RunSpec

_KINDS = {"cuda": "GPU", "cpu": "CPU"}
_SILENT_NAMED = 3
REHEARSAL_MODEL, REHEARSAL_LIMIT = "bert-tiny", "512MiB"
"""The default of a host without an accelerator: an exact result in about a minute."""


PROMINENT = ("precision", "optimizer", "gradient_checkpointing")
RARER = tuple(n for n in TRAINING_SETTINGS if SETTINGS[n].is_in_form and n not in PROMINENT)


class RunForm(SpecForm):
    """Fields named as in RunSpec, so that an error of the spec finds its field. Empty means: the default."""

    kind = forms.ChoiceField(
        label="What to do",
        choices=((Run.Kind.MEASUREMENT, "Measure on a device here"), (Run.Kind.ESTIMATE, "Estimate for any GPU")),
        widget=forms.RadioSelect,
        initial=Run.Kind.MEASUREMENT,
        required=False,
    )
    model = forms.ChoiceField(label="Model")
    task = forms.ChoiceField(
        label="Task of the config",
        choices=[("", "choose …"), *((task, TASK_LABELS[task]) for task in TASKS)],
        required=False,
    )
    config = forms.CharField(
        label="config.json",
        required=False,
        max_length=SIZE_BYTES_MAX,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "data-file": "Read it from a file"}),
        help_text="Of a Hugging Face model, pasted. It is read as data: nothing in it is run, loaded or followed.",
    )
    device = forms.ChoiceField(label="Device", required=False)
    gpu = forms.ChoiceField(label="GPU to estimate for", required=False, initial=ALL_GPUS)
    # one field for each setting of the training, so that a new one of the engine is on the page
    vars().update({name: setting_field(name, required=name in CHOICES) for name in PROMINENT})
    vars().update({name: setting_field(name) for name in RARER})
    sequence_length = setting_field("sequence_length")
    image_size = setting_field("image_size")
    current_batch_size = setting_field("current_batch_size", label="Your batch size today", initial=16, required=True)
    memory_limit_bytes = forms.CharField(
        label=SETTINGS["memory_limit_bytes"].label,
        required=False,
        max_length=40,
        help_text=SETTINGS["memory_limit_bytes"].hint or "",
    )
    # the limit that the page filled in by itself, until the person changes it (home.js)
    suggested_limit = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    price_per_hour_usd = setting_field("price_per_hour_usd", label="Price per hour, US$")
    hours_per_run = setting_field("hours_per_run")
    runs_per_year = setting_field("runs_per_year")
    reserve_percent = forms.FloatField(
        label="Memory to leave free, percent",
        required=False,
        min_value=RANGES["reserve_fraction"][0] * 100,
        max_value=RANGES["reserve_fraction"][1] * 100,
        help_text=SETTINGS["reserve_fraction"].hint or "",
    )
    time_budget_seconds = setting_field("time_budget_seconds", label="Time budget, seconds")
    frontier = forms.CharField(
        label="Lengths or image sizes to compare",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "128, 256, 512"}),
        help_text="For one card: 2 to 16 sizes, the largest batch at each, and a budget of tokens or pixels a batch.",
    )
    priority = forms.TypedChoiceField(
        label="Priority",
        choices=Run.Priority.choices,
        coerce=int,
        empty_value=0,  # type: ignore[arg-type]  # whatever `coerce` gives; the stubs want text
        required=False,
        initial=0,
        help_text="Higher starts earlier. High is for GPU managers.",
    )
    accepts_shared_device = forms.BooleanField(
        label="Run also on a card that other processes use",
        required=False,
        help_text="The result is then marked as shared and cannot be a baseline.",
    )

    PLACEHOLDERS = ("price_per_hour_usd", "hours_per_run", "runs_per_year", "time_budget_seconds")
    QUEUE = ("priority", "accepts_shared_device")
    NOT_OF_SPEC = ("kind", "gpu", "device", "suggested_limit", "frontier", *QUEUE)
    ONLY_MEASURED = ("device", "time_budget_seconds", "reserve_percent", "accepts_shared_device")
    """Fields that estimates do not have: hidden by the browser and not read."""
    MORE = (*RARER, *PLACEHOLDERS, "reserve_percent", "frontier", *QUEUE)
    """Folded away on the page, which unfolds them when one of them is wrong."""
    SEARCHED = {"model": "Search models", "gpu": "Search cards"}

    def __init__(self, *args: Any, devices: Iterable[Device], silent: Iterable[Device] = (), **kwargs: Any) -> None:
        """`devices` can be chosen; `silent` ones cannot, because when they would start a run is unknown."""
        super().__init__(*args, **kwargs)
        self.devices = list(devices)
        self.places = places_offered(self.devices)
        self.spec: RunSpec | None = None
        self.is_limit_dropped = False  # the suggested limit is less than the chosen model needs
        self._offer("device", [(value, label) for value, (label, _) in self.places.items()])
        self.fields["device"].help_text = _describe_silent(silent)
        self._offer("gpu", gpu_choices())
        self._offer("model", [("Your own", [(CONFIG, "Your own config.json")]), *models_by_task()])
        for name, label in self.SEARCHED.items():
            self.fields[name].widget.attrs["data-search"] = label  # home.js puts a search box above it
        describe_input_sizes(self.fields)
        for name in ("task", "config"):
            self.fields[name].widget.attrs["data-models"] = f"{CONFIG}:"
        for name in self.PLACEHOLDERS:
            self.fields[name].widget.attrs["placeholder"] = f"{DEFAULTS[name]:g}"
        self.fields["reserve_percent"].widget.attrs["placeholder"] = f"{DEFAULTS['reserve_fraction'] * 100:g}"

    def _offer(self, name: str, choices: Iterable[tuple[Any, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def clean_frontier(self) -> list[int]:
        """Read the sizes; empty where there are none, and for measurements."""
        text = self.cleaned_data["frontier"]
        if not text or not self.is_estimate:
            return []
        try:
            return sizes_in(text)
        except SpecError as error:
            raise forms.ValidationError(str(error).removeprefix("frontier: ")) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        cleaned["kind"] = cleaned.get("kind") or Run.Kind.MEASUREMENT
        if not self.is_estimate and not cleaned.get("device") and "device" not in self.errors:
            self.add_error("device", "Choose the device to measure on.")
        self.spec = self._checked_spec(self._given(cleaned))
        return cleaned

    def use_default(self, field: str | None) -> bool:
        """Continue with the default of a refused field, to find further errors."""
        if self.spec is None or field not in self.fields or field in ("model", "device"):
            return False
        if field in DEFAULTS:
            self.spec = replace(self.spec, **{field: DEFAULTS[field]})
        return True

    @property
    def has_suggested_limit(self) -> bool:
        """Whether the memory limit is the one that the page filled in, for a short run on a CPU."""
        suggested = self.cleaned_data.get("suggested_limit")
        return bool(suggested) and self.cleaned_data.get("memory_limit_bytes") == suggested

    @property
    def rarer_fields(self) -> list[forms.BoundField]:
        """The settings of the training that the page folds away."""
        return [self[name] for name in RARER]

    @property
    def can_be_checked(self) -> bool:
        """Whether enough fields are valid to check quotas and placement."""
        return self.spec is not None and (self.is_estimate or "device" in self.cleaned_data)

    @property
    def candidate_devices(self) -> list[Device]:
        """The devices that could execute the run."""
        place = self.place
        if place.device is not None:
            return [place.device]
        wanted = place.device_class.lower()
        return [device for device in self.devices if device.kind == place.kind and wanted in device.name.lower()]

    @property
    def place(self) -> Placement:
        return self.places[self.cleaned_data["device"]][1]

    @property
    def is_estimate(self) -> bool:
        return self.cleaned_data.get("kind") == Run.Kind.ESTIMATE

    def estimate_submission(self) -> dict[str, Any]:
        """Return the arguments of `services.estimate_create`, from a valid form for an estimate."""
        cleaned = self.cleaned_data
        return {
            "spec": self.spec,
            "gpu": cleaned.get("gpu") or ALL_GPUS,
            "priority": cleaned.get("priority", 0),
            "frontier": cleaned.get("frontier", ()),
        }

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `services.run_create`, from a valid form for a measurement."""
        return {
            "spec": self.spec,
            "place": self.place,
            "uses_device_price": self.cleaned_data.get("price_per_hour_usd") is None,
            **{name: self.cleaned_data[name] for name in self.QUEUE if name in self.cleaned_data},
        }

    def _given(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Read the spec's keys that were filled in."""
        given = {
            name: value for name, value in cleaned.items() if value not in (None, "") and name not in self.NOT_OF_SPEC
        }
        if self.is_estimate:
            left_out = (*self.ONLY_MEASURED, *(["memory_limit_bytes"] if self.has_suggested_limit else []))
            return {name: value for name, value in given.items() if name not in left_out}
        if "reserve_percent" in given:
            given["reserve_fraction"] = round(given.pop("reserve_percent") / 100, 6)
        if "device" not in cleaned:
            return given
        return given | {"device": self.place.device.device if self.place.device else self.place.kind}

    def _checked_spec(self, given: dict[str, Any]) -> RunSpec | None:
        """Read the spec, with the default for each field that it refuses; None where that does not help."""
        while "model" in given:
            try:
                return RunSpec.from_dict(given)
            except SpecError as error:
                if error.field == "memory_limit_bytes" and self.has_suggested_limit:
                    self.is_limit_dropped = True
                else:
                    self.add_spec_error(error)
                if error.field is None or given.pop(error.field, None) is None:
                    return None
        return None


def places_offered(devices: Iterable[Device]) -> dict[str, tuple[str, Placement]]:
    """Map each value of the select to its label and placement: any of a kind, any of a class, each device."""
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
    """Write a placement as the value of an option: a device's id, or "any" with kind and class."""
    return str(place.device.pk) if place.device else f"any {place.kind} {place.device_class}".strip()


def first_values(devices: Iterable[Device]) -> dict[str, Any]:
    """Return the initial values of the form: those of a short CPU run, or of a GPU run where there is an accelerator.

    Without any device the form is for an estimate.
    """
    offered = list(devices)
    if not offered:
        return {"model": "bert", "kind": Run.Kind.ESTIMATE}
    if any(device.kind != "cpu" for device in offered):
        return {"model": "bert"}
    return {"model": REHEARSAL_MODEL, "memory_limit_bytes": REHEARSAL_LIMIT, "suggested_limit": REHEARSAL_LIMIT}


def values_of(run: Run, kind: str = "", devices: Iterable[Device] = ()) -> dict[str, Any]:
    """Read a stored run's settings as the form's first values, to change one and run again.

    `kind` turns an estimate into a measurement, where possible on a card of those it was for, or the other way round.
    """
    known = {name: value for name, value in run.spec.items() if name in RunForm.base_fields and value is not None}
    if "memory_limit_bytes" in known:
        known["memory_limit_bytes"] = exact_bytes_text(known["memory_limit_bytes"])
    if run.requested_kind == "cpu" and known.get("memory_limit_bytes") == REHEARSAL_LIMIT:
        known["suggested_limit"] = REHEARSAL_LIMIT
        if kind == Run.Kind.ESTIMATE:
            known.pop("memory_limit_bytes")
    if run.spec.get("reserve_fraction") is not None:
        known["reserve_percent"] = f"{run.spec['reserve_fraction'] * 100:.6g}"
    for name in RunForm.ONLY_MEASURED if run.is_estimate else ():
        known.pop(name, None)
    same_card = next((device for device in devices if run.gpu and _is_card(device, run.gpu)), None)
    place = Placement(device=same_card) if run.is_estimate else placement_of(run)
    if known.get("config"):
        known["model"] = CONFIG
    return known | {
        "kind": kind if kind in Run.Kind.values else Run.Kind.MEASUREMENT if run.is_validation else run.kind,
        "gpu": run.gpu or ALL_GPUS,
        "frontier": ", ".join(map(str, run.frontier)),
        **({"device": place_value(place)} if place.device or place.kind else {}),
        "priority": min(run.priority, Run.Priority.NORMAL),
        "accepts_shared_device": run.accepts_shared_device,
    }


class StartForm(StrictQueryForm):
    """The parameters that fill in the form. Values that are not allowed are shown when the form is sent."""

    vars().update({name: forms.CharField(required=False) for name in RunForm.base_fields if name != "suggested_limit"})
    clone = WholeNumberField(required=False)
    vars()["from"] = WholeNumberField(required=False)

    @property
    def filled(self) -> dict[str, Any]:
        """Return the given values; none if any parameter is wrong."""
        return {} if self.problems else {name: self.cleaned_data[name] for name in self.given}


def _is_card(device: Device, gpu_id: str) -> bool:
    gpu = gpu_of(device)
    return gpu is not None and gpu.id == gpu_id


def _any_of(kind: str, count: int) -> str:
    return f"Any {_KINDS.get(kind, f'{kind.upper()} device')} ({count})"


def _describe_silent(devices: Iterable[Device]) -> str:
    names = [f"{device.host} {device.device}" for device in devices]
    more = f" and {len(names) - _SILENT_NAMED} more" if len(names) > _SILENT_NAMED else ""
    shown = ", ".join(names[:_SILENT_NAMED])
    return f"Not offered, because their workers give no sign of life: {shown}{more}." if names else ""


def models_by_task() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the choices of the select: the models of the catalogue under the task that they are trained on."""
    by_task: dict[str, list[tuple[str, str]]] = {}
    for workload in WORKLOADS.values():
        label = f"{workload.name} · {millions(workload.parameter_count)} parameters"
        by_task.setdefault(TASK_LABELS[workload.task], []).append((workload.id, label))
    return list(by_task.items())


def describe_input_sizes(fields: Mapping[str, forms.Field]) -> None:
    """Add the defaults of the models to the two fields of the input's size."""
    for name in ("sequence_length", "image_size"):
        fields[name].help_text = _input_hint(name)
        # home.js shows the field only for the models that take it, with the default of the chosen one
        defaults = [f"{workload.id}:{workload.default_input_size}" for workload in _taking(name)]
        fields[name].widget.attrs["data-models"] = " ".join([*defaults, f"{CONFIG}:"])


def _input_hint(field: str) -> str:
    """Say what is meant where the field is left empty."""
    defaults = sorted({workload.default_input_size for workload in _taking(field)})
    unit = "tokens" if field == "sequence_length" else "pixels a side"
    return f"Left empty: {' or '.join(map(str, defaults))} {unit}, by the model."


def _taking(field: str) -> list[Workload]:
    return [workload for workload in WORKLOADS.values() if workload.input_field == field]
