"""Form fields for the settings of a run; label, choices, bounds and hint come from `engine.spec`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms

from analysis.http.query_string import FlagField
from engine.settings.setting import Role
from engine.spec import DEFAULTS, SETTINGS, VALUE_TYPES

_FIELDS: dict[type, type[forms.Field]] = {
    str: forms.ChoiceField,
    bool: FlagField,
    int: forms.IntegerField,
    float: forms.FloatField,
}


def setting_field(name: str, **changed: Any) -> forms.Field:
    """Make the form field of one setting; `changed` are arguments of it that differ on this page."""
    each, kind = SETTINGS[name], VALUE_TYPES[name]
    options: dict[str, Any] = {"label": each.label, "help_text": each.hint or "", "required": False}
    if each.choices:
        options["choices"] = list(each.choices.items())
    if each.choices or each.role is Role.TRAINING:
        options["initial"] = DEFAULTS.get(name)
    return _FIELDS[kind](**options | changed)


def declare_fields(
    body: dict[str, Any], names: Iterable[str], make: Callable[[str], forms.Field] = setting_field
) -> None:
    """Declare a field for each name in the body of a form's class, `vars()` there, at this place among its fields.

    A new setting of the engine is on every form by itself, and a parameter may be a word of Python, such as `from`.
    """
    body.update({name: make(name) for name in names})
