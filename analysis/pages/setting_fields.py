"""Form fields for the settings of a run, read off `engine.spec`: label, choices, bounds and hint are the engine's."""

from __future__ import annotations

from typing import Any

from django import forms

from engine.setting import Setting
from engine.spec import DEFAULTS, SETTINGS, RunSpec


def setting_field(name: str, **changed: Any) -> forms.Field:
    """Make the form field of one setting; `changed` are arguments of it that differ on this page."""
    each = SETTINGS[name]
    options = {"label": each.label, "help_text": each.hint or "", "required": False, **changed}
    if each.choices:
        return forms.ChoiceField(**{"choices": list(each.choices.items()), "initial": DEFAULTS.get(name), **options})
    return _plain_field(name, each)(**options)


def _plain_field(name: str, each: Setting) -> type[forms.Field]:
    declared = RunSpec.__annotations__[name]
    if declared == "bool":
        return forms.BooleanField
    return forms.FloatField if declared.startswith("float") else forms.IntegerField
