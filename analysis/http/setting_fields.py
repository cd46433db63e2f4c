"""Form fields for the settings of a run; label, choices, bounds and hint come from `engine.settings.spec`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django import forms
from django.core.validators import RegexValidator
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from analysis.http.query_string import FlagField
from engine.settings.setting import Role, Setting
from engine.settings.spec import DEFAULTS, SETTINGS, VALUE_TYPES
from engine.settings.spec_checks import is_of_bytes

AnyForm = TypeVar("AnyForm", bound=forms.Form)


class GroupedNumberField(forms.IntegerField):
    """A whole number that a person may type as pages write it: 1,024."""

    def to_python(self, value: Any) -> int | None:
        is_grouped = isinstance(value, str) and re.fullmatch(r"\s*\d{1,3}(,\d{3})+\s*", value)
        number: int | None = super().to_python(value.replace(",", "") if is_grouped else value)
        return number


_FIELDS: dict[type, type[forms.Field]] = {
    str: forms.ChoiceField,
    bool: FlagField,
    int: GroupedNumberField,
    float: forms.FloatField,
}


class SuggestingInput(forms.TextInput):
    """A line of text with values to choose from, which the browser offers."""

    def __init__(self, suggested: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.suggested = suggested

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Write the input and its list, which belong together by the list's id."""
        offered = f"{(attrs or {}).get('id', name)}_offered"
        line = super().render(name, value, {**(attrs or {}), "list": offered}, renderer)
        options = format_html_join("", '<option value="{}">{}</option>', self.suggested)
        return format_html('{}<datalist id="{}">{}</datalist>', line, offered, options)


def setting_field(name: str, **changed: Any) -> forms.Field:
    each, kind = SETTINGS[name], VALUE_TYPES[name]
    options: dict[str, Any] = {"label": each.label, "help_text": each.hint or "", "required": False}
    if each.choices:
        options["choices"] = list(each.choices.items())
    if each.choices or each.role is Role.TRAINING:
        options["initial"] = DEFAULTS.get(name)
    if (texts := each.text_values) is not None:
        suggested = options.pop("choices")
        refused = f"must be one of {', '.join(each.choices or ())}, or {texts.allowed}"
        options |= {"max_length": texts.max_length, "widget": SuggestingInput(suggested)}
        options["validators"] = [RegexValidator(each.pattern, refused)]
        return forms.CharField(**options | changed)
    if is_of_bytes(name):
        return forms.CharField(**{"max_length": 40} | options | changed)
    return _FIELDS[kind](**options | changed)


def described_field(each: Setting, kind: type[forms.Field] = forms.CharField, **options: Any) -> forms.Field:
    """Make a field that the form reads in its own way, with the label and the hint of a setting."""
    described: dict[str, Any] = {"label": each.label, "help_text": each.hint or "", "required": False}
    return kind(**described | options)


def offer(form: forms.Form, name: str, choices: Iterable[tuple[Any, Any]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    field.choices = list(choices)


def with_fields(made: Mapping[str, forms.Field], *, after: str = "") -> Callable[[type[AnyForm]], type[AnyForm]]:
    """Declare further fields of a form, after its field of this name or first; a name may be a keyword, as `from`."""

    def declare(form: type[AnyForm]) -> type[AnyForm]:
        own = list(form.base_fields.items())
        place = 1 + [name for name, _ in own].index(after) if after else 0
        form.base_fields.clear()  # changed in place: forms that are derived from this one inherit the same table
        form.base_fields.update([*own[:place], *made.items(), *own[place:]])
        return form

    return declare
