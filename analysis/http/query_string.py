"""Strict parsing of a query string by the fields of a form, of which the API's description is made, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Self

from django import forms
from django.http import QueryDict

LARGEST_ID = 2**63 - 1
_FLAGS = {"1": True, "true": True, "on": True, "0": False, "false": False}
_NUL = "\x00"


@dataclass(frozen=True, slots=True)
class QueryProblem:
    """What is wrong with one parameter; `code` is for programs."""

    parameter: str
    message: str
    code: str = "invalid"

    def __str__(self) -> str:
        return f"{self.parameter}: {self.message}"


class BadQuery(Exception):
    """An address that cannot be answered: which parameters are wrong, and what would be right."""

    def __init__(self, *problems: QueryProblem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class StrictQueryForm(forms.Form):
    """The parameters of an address; unknown, repeated, blank or NUL ones are refused, missing ones have `initial`."""

    repeatable: ClassVar[tuple[str, ...]] = ()

    def __init__(self, query: QueryDict | None = None, **options: Any) -> None:
        self.given = query or QueryDict()
        filled = self.given.copy()
        super().__init__(filled, **options)
        for name, field in self.fields.items():
            default = self.get_initial_for_field(field, name)
            if default is not None:
                filled.setdefault(name, default)
            field.error_messages["required"] = "is needed"
            if choices := choices_of(field):
                field.error_messages["invalid_choice"] = f"must be one of {', '.join(choices)}"

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return the form of a query string in which all is right. Raises BadQuery, which names all that is wrong."""
        form = cls(query)
        if form.problems:
            raise BadQuery(*form.problems)
        return form

    @cached_property
    def problems(self) -> tuple[QueryProblem, ...]:
        found = list(self._misused())
        seen = {problem.parameter for problem in found}
        for name, errors in self.errors.as_data().items():
            if name not in seen:
                texts = ((text, error.code or "invalid") for error in errors for text in error.messages)
                found += [QueryProblem(name, text.rstrip("."), code) for text, code in texts]
        return tuple(found)

    def _misused(self) -> Iterator[QueryProblem]:
        """Find what is wrong whatever the field: a typo must not read everything."""
        for name, values in self.given.lists():
            if name not in self.fields:
                known = f"known parameters: {', '.join(self.fields)}" if self.fields else "it has no parameters"
                yield QueryProblem(name[:80], f"there is no such parameter here; {known}", "unknown")
            elif len(values) > 1 and name not in self.repeatable:
                yield QueryProblem(name, f"given {len(values)} times; it takes one value", "repeated")
            elif "" in values:  # an unset variable in a script must not read everything
                yield QueryProblem(name, "is empty; give a value, or leave it out", "blank")
            elif any(_NUL in value for value in values):
                yield QueryProblem(name, "must not contain a NUL character")


class WholeNumberField(forms.Field):
    """A whole number in ASCII digits; without bounds, the number of a row."""

    widget = forms.NumberInput

    def __init__(self, *, min_value: int = 1, max_value: int = LARGEST_ID, **options: Any) -> None:
        super().__init__(**options)
        self.min_value, self.max_value = min_value, max_value

    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        text = str(value)
        is_number = text.isascii() and text.isdecimal() and len(text) < 20
        if not (is_number and self.min_value <= int(text) <= self.max_value):
            raise forms.ValidationError(f"must be a whole number from {self.min_value:,} to {self.max_value:,}")
        return int(text)


class CheckboxInput(forms.CheckboxInput):
    """A checkbox that hands its word on: Django's takes any word for a yes."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs, check_test=lambda value: _FLAGS.get(str(value).lower(), False))

    def format_value(self, value: Any) -> str:
        return "1"  # what a ticked box sends

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        return data.get(name)


class FlagField(forms.NullBooleanField):
    """true or false, also as 1, 0 or a ticked box's on. Left out, it is its `initial`."""

    widget = CheckboxInput

    # None is the third answer, though it inherits from a field of two
    def to_python(self, value: Any) -> bool | None:  # type: ignore[override]
        if value in self.empty_values:
            return None if self.initial is None else False  # an unticked box sends nothing
        if (word := str(value).lower()) not in _FLAGS:
            raise forms.ValidationError("must be true or false")
        return _FLAGS[word]


class MomentField(forms.DateTimeField):
    """A moment, or the day that begins with it, as ISO 8601 has it; without a zone, in UTC."""

    default_error_messages = {"invalid": "must be a moment or a day such as 2026-11-21T08:30:00Z or 2026-11-21"}

    def to_python(self, value: Any) -> datetime | None:
        found: datetime | None = super().to_python(value)
        try:
            return None if found is None else found.astimezone(UTC)
        except OverflowError as error:  # the year 1 or 9999, in another zone
            raise forms.ValidationError(self.error_messages["invalid"]) from error


def choices_of(field: forms.Field) -> list[str]:
    """List the values that may be chosen; none where the field does not offer a fixed list."""
    if not isinstance(field, forms.ChoiceField) or isinstance(field, forms.ModelChoiceField):
        return []
    # read back they are pairs; the stubs give all that may be put in
    return [str(key) for key, _ in field.choices if key != ""]  # type: ignore[misc, union-attr]


def is_row_id(word: str) -> bool:
    """Whether a row of a table can have this number: from 1 to what a column of 64 bits holds."""
    return word.isascii() and word.isdecimal() and len(word) < 20 and 0 < int(word) <= LARGEST_ID


def without_empty(query: QueryDict) -> QueryDict:
    """Drop the empty fields of a form, which only make the address long."""
    filled = QueryDict(mutable=True)
    for name, values in query.lists():
        if given := [value for value in values if value != ""]:
            filled.setlist(name, given)
    return filled
