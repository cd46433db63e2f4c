"""The form that starts a registered command. The command's own `spec` validates; the form shows its errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from analysis.http.query_string import FlagField
from analysis.models import Device
from analysis.pages.home.forms import places_offered
from analysis.pages.setting_fields import setting_field
from analysis.pages.spec_form import SpecForm
from analysis.runs.commands import RegisteredCommand
from engine.errors import SpecError
from engine.spec import SETTINGS
from engine.tune.spec import TuneSpec

_TEXT_FIELDS = ("memory_limit_bytes",)
_BOXES = {
    "whole_run": ("Whole run", "Train the largest rows of the data, then let the script evaluate and save."),
    "compare_speed": (
        "Compare speeds",
        "Start today’s size and the recommended one in turns, to measure the speed-up: 12 starts or more.",
    ),
}


class CommandForm(SpecForm):
    """A device, and one field for each setting that the command offers. Empty means: the default."""

    device = forms.ChoiceField(label="Device")

    def __init__(self, command: RegisteredCommand, data: Any = None, *, devices: Iterable[Device]) -> None:
        super().__init__(data, prefix=command.name)
        self.command = command
        self.places = places_offered(devices)
        self.spec: TuneSpec | None = None
        device = self.fields["device"]
        assert isinstance(device, forms.ChoiceField)
        device.choices = [(value, label) for value, (label, _) in self.places.items()]
        # boxes to tick stand last, where they leave no gap in the grid
        ordered = sorted(command.settings, key=lambda name: name in _BOXES)
        self.fields.update({name: _field(name) for name in ordered})

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        given = {name: value for name in self.command.settings if (value := cleaned.get(name)) not in (None, "")}
        try:
            self.spec = self.command.spec(given)
        except SpecError as error:
            self.add_spec_error(error)
        return cleaned

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `services.run_create`, from a valid form."""
        place = self.places[self.cleaned_data["device"]][1]
        is_own_price = self.cleaned_data.get("price_per_hour_usd") is None
        return {"spec": self.spec, "place": place, "uses_device_price": is_own_price}


def _field(name: str) -> forms.Field:
    if name in _TEXT_FIELDS:
        each = SETTINGS[name]
        return forms.CharField(label=each.label, required=False, max_length=40, help_text=each.hint or "")
    if name in SETTINGS:
        return setting_field(name)
    label, help_text = _BOXES[name]
    return FlagField(label=label, required=False, help_text=help_text)
