"""The forms of what to change. `RunSpec` validates the settings; the forms show its errors."""

from __future__ import annotations

from typing import Any

from django import forms

from analysis.http.query_string import StrictQueryForm
from analysis.models import ALL_GPUS, CPU
from analysis.pages.form_choices import models_by_task
from analysis.pages.spec_form import SpecForm
from analysis.presentation.formatting import round_bytes
from analysis.runs.gpu_catalog import gpu_choices
from engine.errors import SpecError
from engine.estimate.spec import EstimateSpec
from engine.estimate.what_to_change import Scope
from engine.spec import CPU_DEFAULT_LIMIT_BYTES, MAX_BATCH_SIZE, RunSpec

SCOPES = (
    (Scope.SINGLE.value, "Each setting by itself; pairs only if none is enough"),
    (Scope.FIRST.value, "Only up to the first change that fits"),
    (Scope.GRID.value, "The grid of all combinations (minutes)"),
)


def _cards() -> list[tuple[str, object]]:
    return [
        (CPU, f"CPU, {round_bytes(CPU_DEFAULT_LIMIT_BYTES)}"),
        *((value, label) for value, label in gpu_choices() if value != ALL_GPUS),
    ]


class ChangesForm(forms.Form):
    """The batch size that is wanted, and how much is tried."""

    batch_size = forms.IntegerField(label="Batch size wanted", min_value=1, max_value=MAX_BATCH_SIZE)
    scope = forms.ChoiceField(label="What is tried", choices=SCOPES, required=False)

    def clean_scope(self) -> str:
        return self.cleaned_data["scope"] or SCOPES[0][0]


class WhereForm(StrictQueryForm):
    """A model and a GPU: which answer the page shows."""

    model = forms.ChoiceField(label="Model", choices=models_by_task, required=False)
    gpu = forms.ChoiceField(label="Device", choices=_cards, required=False)


class NewChangesForm(ChangesForm, SpecForm):
    """The same form, for a model and a GPU of which there is no run."""

    model = forms.ChoiceField(label="Model", choices=models_by_task)
    gpu = forms.ChoiceField(label="Device", choices=_cards)
    field_order = ("model", "gpu", "batch_size", "scope")

    def add_spec_error(self, error: SpecError) -> None:
        self.add_error(None, str(error))

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `services.run_create`, from a valid form. Raises SpecError."""
        values = self.cleaned_data
        training = RunSpec(values["model"], current_batch_size=values["batch_size"])
        return {"spec": EstimateSpec(training, values["gpu"], values["scope"])}
