"""The form that starts a run. `engine.RunSpec` alone validates the settings; the form shows its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from django import forms

from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.http.setting_fields import GroupedNumberField, described_field, offer, setting_field, with_fields
from analysis.models import ALL_GPUS, Device, Run
from analysis.pages.field_groups import COMMON, TRAINING_NAMES, TRAINING_TOPICS, PlacedForm, Topic, any_needs_a_look
from analysis.pages.form_choices import describe_input_sizes, describe_limit, models_by_task
from analysis.pages.kinds import BY_KIND
from analysis.pages.kinds.page import KindPages
from analysis.runs.gpu_catalog import gpu_choices
from engine.errors import SpecError
from engine.estimate.frontier import sizes_in
from engine.estimate.spec import SETTINGS as OF_ESTIMATES
from engine.estimate.spec import EstimateSpec
from engine.settings.catalog import TASK_LABELS
from engine.settings.catalog.from_config import CONFIG, SIZE_BYTES_MAX, TASKS
from engine.settings.rank_settings import OF_SEVERAL_GPUS, OF_STARTS, RANKS_MOST, RankStarts
from engine.settings.ranks.emulation import FEWEST_RANKS
from engine.settings.spec import CHOICES, DEFAULTS, RANGES, SETTINGS, RunSpec
from engine.settings.spec_checks import numbers_setting
from engine.trainings.script.ranked_spec import spec_of_starts, with_ranks

_SILENT_NAMED = 3
_STARTS = ("emulate_ranks", "rank")


@with_fields(
    {
        name: setting_field(name, required=name in CHOICES and name in COMMON)
        for name in (*OF_SEVERAL_GPUS, *TRAINING_NAMES)
    },
    after="gpu",
)
class RunForm(PlacedForm):
    """Fields named as in RunSpec, so that an error of the spec finds its field. Empty means: the default."""

    kind = forms.ChoiceField(
        label="What to do",
        choices=[(kind, pages.form_label) for kind, pages in BY_KIND.items() if pages.form_label],
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
        help_text="A Hugging Face model's file, pasted. It is read as data: nothing in it is run, loaded or followed.",
    )
    device = forms.ChoiceField(label="Device", required=False)
    gpu = described_field(OF_ESTIMATES["gpu"], forms.ChoiceField, initial=ALL_GPUS)
    current_batch_size = setting_field("current_batch_size", label="Your batch size today", initial=16, required=True)
    memory_limit_bytes = setting_field("memory_limit_bytes")
    # the limit that the page filled in by itself, until the person changes it (home.js)
    suggested_limit = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    price_per_hour_usd = setting_field("price_per_hour_usd", label="Price per hour, US$")
    hours_per_run = setting_field("hours_per_run")
    runs_per_year = setting_field("runs_per_year")
    reserve_percent = described_field(
        SETTINGS["reserve_fraction"],
        forms.FloatField,
        label="Memory to leave free, percent",
        min_value=RANGES["reserve_fraction"][0] * 100,
        max_value=RANGES["reserve_fraction"][1] * 100,
    )
    reserve_bytes = setting_field("reserve_bytes", label="Memory to leave free, as a size")
    time_budget_seconds = setting_field("time_budget_seconds", label="Time budget, seconds")
    frontier = described_field(
        OF_ESTIMATES["frontier"], max_length=200, widget=forms.TextInput(attrs={"placeholder": "128, 256, 512"})
    )
    emulate_ranks = described_field(
        OF_STARTS["emulate_ranks"], GroupedNumberField, min_value=FEWEST_RANKS, max_value=RANKS_MOST
    )
    rank = described_field(OF_STARTS["rank"], max_length=400)
    like = setting_field("like")
    largest = described_field(
        OF_ESTIMATES["largest"], forms.ChoiceField, choices=list((OF_ESTIMATES["largest"].choices or {}).items())
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
        label="Run also on a device that other programs use",
        required=False,
        help_text="The result is then marked as shared and cannot be a baseline.",
    )

    PLACEHOLDERS = ("price_per_hour_usd", "hours_per_run", "runs_per_year", "time_budget_seconds")
    QUEUE = ("priority", "accepts_shared_device")
    OF_ESTIMATES = ("frontier", "largest")
    NOT_OF_SPEC = ("kind", "gpu", "device", "suggested_limit", *OF_ESTIMATES, *OF_STARTS, *QUEUE)
    OPEN = (*COMMON, "like", *OF_SEVERAL_GPUS, "largest")
    TOPICS = (
        *TRAINING_TOPICS,
        Topic(
            "Price, hours and runs",
            ("price_per_hour_usd", "hours_per_run", "runs_per_year"),
            "These are assumptions. They convert the measured speed-up into savings and do not affect measurements.",
        ),
        Topic("Starts of several GPUs", _STARTS),
        Topic("Search and queue", ("time_budget_seconds", "reserve_percent", "reserve_bytes", "frontier", *QUEUE)),
    )
    SEARCHED = {"model": "Search models", "gpu": "Search GPUs"}

    def __init__(self, *args: Any, devices: Iterable[Device], silent: Iterable[Device] = (), **kwargs: Any) -> None:
        """`devices` can be chosen; `silent` ones cannot, because nobody knows when they would start a run."""
        super().__init__(*args, **kwargs)
        self.devices = list(devices)
        self.spec: RunSpec | None = None
        self.is_limit_dropped = False  # the suggested limit is less than the chosen model needs
        self.offer_places(self.devices)
        self.fields["device"].help_text = _describe_silent(silent)
        offer(self, "gpu", gpu_choices())
        offer(self, "model", [("Your own", [(CONFIG, "Your own config.json")]), *models_by_task()])
        for name, label in self.SEARCHED.items():
            self.fields[name].widget.attrs["data-search"] = label  # home.js puts a search box above it
        describe_input_sizes(self.fields)
        self.fields["memory_limit_bytes"].help_text = describe_limit(self.initial.get("suggested_limit"))
        for name in ("task", "config"):
            self.fields[name].widget.attrs["data-models"] = f"{CONFIG}:"
        for name in self.PLACEHOLDERS:
            self.fields[name].widget.attrs["placeholder"] = f"{DEFAULTS[name]:g}"
        self.fields["reserve_percent"].widget.attrs["placeholder"] = f"{DEFAULTS['reserve_fraction'] * 100:g}"

    def clean_frontier(self) -> tuple[int, ...]:
        return self._numbers("frontier", sizes_in)

    def clean_rank(self) -> tuple[int, ...] | None:
        return self._numbers("rank", lambda text: numbers_setting("rank", text, "0,1,7")) or None

    def _numbers(self, name: str, read: Callable[[str], tuple[int, ...]]) -> tuple[int, ...]:
        """Read a list; empty where nothing is given, and for a kind of run without this field."""
        text = self.cleaned_data[name]
        try:
            return read(text) if text and self.reads(name) else ()
        except SpecError as error:
            raise forms.ValidationError(str(error).removeprefix(f"{name}: ")) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.reads("device") and not cleaned.get("device") and "device" not in self.errors:
            self.add_error("device", "Choose the device to measure on.")
        try:
            self.spec = self._checked_spec(with_ranks(self._given(cleaned), self._starts))
            if self.spec is not None and self.reads("device"):
                spec_of_starts(self.spec, self._starts)
        except SpecError as error:
            self.add_spec_error(error)
            self.use_default(error.field)
        return cleaned

    def use_default(self, field: str | None) -> bool:
        """Continue with the default of a refused field, to find further errors."""
        if self.spec is None or field not in self.fields or field in ("model", "device"):
            return False
        names = _with_its_pair(field) if field in DEFAULTS else ()
        changed = {name: DEFAULTS[name] for name in names if getattr(self.spec, name) != DEFAULTS[name]}
        if names and not changed:  # the default is refused, too
            return False
        self.spec = replace(self.spec, **changed)
        return True

    @property
    def has_suggested_limit(self) -> bool:
        suggested = self.cleaned_data.get("suggested_limit")
        return bool(suggested) and self.cleaned_data.get("memory_limit_bytes") == suggested

    @property
    def more_is_open(self) -> bool:
        return any_needs_a_look(self, self.OPEN) or any(group.is_open for group in self.folded_groups)

    @property
    def can_be_checked(self) -> bool:
        return self.spec is not None and ("device" in self.cleaned_data or not self.reads("device"))

    @property
    def candidate_devices(self) -> list[Device]:
        place = self.place
        if place.device is not None:
            return [place.device]
        wanted = place.device_class.lower()
        return [device for device in self.devices if device.kind == place.kind and wanted in device.name.lower()]

    @property
    def pages(self) -> KindPages:
        return BY_KIND[self.cleaned_data.get("kind") or self.fields["kind"].initial]

    def reads(self, field: str) -> bool:
        return field not in self.pages.form_leaves_out

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `services.run_create`, from a valid form. Raises SpecError."""
        cleaned = self.cleaned_data
        queue = {name: cleaned[name] for name in self.QUEUE if name in cleaned and self.reads(name)}
        assert self.spec is not None  # the form is valid
        if self.reads("device"):
            uses_device_price = cleaned.get("price_per_hour_usd") is None
            measured = spec_of_starts(self.spec, self._starts)
            return {"spec": measured, "place": self.place, "uses_device_price": uses_device_price, **queue}
        asked = {name: cleaned[name] for name in self.OF_ESTIMATES if name in cleaned}
        return {"spec": EstimateSpec(self.spec, cleaned.get("gpu") or ALL_GPUS, **asked), **queue}

    @property
    def _starts(self) -> RankStarts:
        """Read how ranks are to be measured; empty for estimates. Raises SpecError."""
        given = {name: self.cleaned_data.get(name) or None for name in _STARTS if self.reads(name)}
        if self.data.get("limit_only"):
            given["compare_speed"] = False
        return RankStarts(**given)

    def _given(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        own = [name for name in cleaned if name not in self.NOT_OF_SPEC]
        given = {name: cleaned[name] for name in own if cleaned[name] not in (None, "")}
        if given.get("like"):  # a form sends every setting: one at its default is left to the profile
            given = {name: value for name, value in given.items() if value != DEFAULTS.get(name)}
        if not self.reads("device"):
            suggested = ["memory_limit_bytes"] if self.has_suggested_limit else []
            return {name: value for name, value in given.items() if self.reads(name) and name not in suggested}
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
                found = [given.pop(name, None) for name in _with_its_pair(error.field or "")]
                if all(value is None for value in found):
                    return None
        return None


def _with_its_pair(field: str) -> tuple[str, ...]:
    """Return the field together with its partner: ranks and their strategy go together."""
    return OF_SEVERAL_GPUS if field in OF_SEVERAL_GPUS else (field,)


@with_fields(
    {name: forms.CharField(required=False) for name in RunForm.base_fields if name != "suggested_limit"}
    | {name: WholeNumberField(required=False) for name in ("clone", "from")}
)
class StartForm(StrictQueryForm):
    """The parameters that fill in the form. Values that are not allowed are shown when the form is sent."""

    @property
    def filled(self) -> dict[str, Any]:
        return {} if self.problems else {name: self.cleaned_data[name] for name in self.given}


def _describe_silent(devices: Iterable[Device]) -> str:
    names = [f"{device.host} {device.device}" for device in devices]
    more = f" and {len(names) - _SILENT_NAMED} more" if len(names) > _SILENT_NAMED else ""
    shown = ", ".join(names[:_SILENT_NAMED])
    return f"Not offered, because their workers give no sign of life: {shown}{more}." if names else ""
