"""What to change: its forms, and its context: an estimate's page has the answer, a measurement's starts it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User

from analysis.formatting import round_bytes
from analysis.http.query_string import StrictQueryForm
from analysis.http.setting_fields import GroupedNumberField
from analysis.models import ALL_GPUS, CPU, Device, Run
from analysis.pages.form_choices import models_by_task, places_offered
from analysis.pages.spec_form import SpecForm
from analysis.presentation.what_to_change import changes_plot, changes_shown, variant_text
from analysis.runs.earlier.what_to_change import changes_found, devices_for, measured_variants, newest_changes
from analysis.runs.gpu_catalog import gpu_choices
from analysis.runs.kinds import rules_of
from engine.errors import SpecError
from engine.estimate.spec import EstimateSpec
from engine.estimate.what_to_change import Scope
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES, MAX_BATCH_SIZE, RunSpec

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
    batch_size = GroupedNumberField(label="Batch size wanted", min_value=1, max_value=MAX_BATCH_SIZE)
    scope = forms.ChoiceField(label="What is tried", choices=SCOPES, required=False)

    def clean_scope(self) -> str:
        return self.cleaned_data["scope"] or SCOPES[0][0]


class WhereForm(StrictQueryForm):
    model = forms.ChoiceField(label="Model", choices=models_by_task, required=False)
    gpu = forms.ChoiceField(label="Device", choices=_cards, required=False)


class NewChangesForm(ChangesForm, SpecForm):
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


def changes_context(run: Run, user: User | None) -> dict[str, Any]:
    found = changes_found(run)
    if found is None:
        is_refused = (run.estimated_safe_batch_size or 0) < int(run.spec["current_batch_size"])
        return {"change_start": change_start(run, is_refused=is_refused)}
    devices = devices_for(run, Device.objects.enabled().allowing(user).best_first())
    return {
        "changes": changes_shown(found, measured_variants(run, found, user)),
        "changes_chart": changes_plot(found),
        "changes_places": [(value, label) for value, (label, _) in places_offered(devices).items()],
        "changes_run": run,
    }


def change_start(run: Run, *, is_refused: bool) -> dict[str, Any] | None:
    """Return the context of the form of "what to change"; None where the run's device cannot be estimated."""
    if rules_of(run).place(run) is None:
        return None
    earlier = newest_changes(run)
    found = changes_found(earlier) if earlier else None
    size = size_wanted(run, is_refused=is_refused)
    return {
        "batch_size": size,
        "form": ChangesForm(initial={"batch_size": size}, auto_id="change-%s"),
        "is_refused": is_refused,
        "earlier": earlier,
        "found": found,
        "advice": [(variant_text(each), each.costs) for each in found.advised[:3]] if found else [],
    }


def size_wanted(run: Run, *, is_refused: bool) -> int:
    """Return the size to ask about: today's where it does not fit, else the first size too large."""
    today = int(run.spec["current_batch_size"])
    if is_refused:
        return today
    return min(max(run.estimated_largest_batch_size or 0, run.largest_batch_size or 0, today) + 1, MAX_BATCH_SIZE)
