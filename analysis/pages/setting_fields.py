"""Form fields for the settings of a run; label, choices, bounds and hint come from `engine.spec`."""

from __future__ import annotations

from typing import Any

from django import forms

from engine.spec import DEFAULTS, SETTINGS, VALUE_TYPES

_FIELDS: dict[type, type[forms.Field]] = {
    bool: forms.BooleanField,
    int: forms.IntegerField,
    float: forms.FloatField,
}


def setting_field(name: str, **changed: Any) -> forms.Field:
    """Make the form field of one setting; `changed` are arguments of it that differ on this page."""
    each = SETTINGS[name]
    options = {"label": each.label, "help_text": each.hint or "", "required": False, **changed}
    if each.choices:
        return forms.ChoiceField(**{"choices": list(each.choices.items()), "initial": DEFAULTS.get(name), **options})
    return _FIELDS[VALUE_TYPES[name]](**options)
