"""A query string -> runs, order, columns and place, or errors alone: a mistyped filter must not find all runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from django import forms
from django.http import QueryDict

from analysis.http.query_string import WholeNumberField
from analysis.lists.runs.columns import COLUMNS, DEFAULT, Column, columns_named, moved
from analysis.lists.runs.filters import RunFilter, RunOrderForm
from analysis.lists.runs.groups import GROUPED_MAX, GROUPINGS, Group, grouped
from analysis.models import Run
from analysis.models.keyset import Page


class ColumnsField(forms.CharField):
    """Names of columns, between commas."""

    def clean(self, value: Any) -> tuple[Column, ...]:
        try:
            return columns_named(super().clean(value).split(","))
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


class HistoryForm(RunOrderForm):
    columns = ColumnsField(initial=",".join(DEFAULT))
    group_by = forms.ChoiceField(
        choices=[("", "nothing"), *((key, grouping.title) for key, grouping in GROUPINGS.items())],
        label="Group by",
        required=False,
    )
    after = WholeNumberField(required=False)
    before = WholeNumberField(required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["sort"].help_text = ""  # it says how the API writes an order
        self.fields["q"].widget.attrs["placeholder"] = "Search name, note, model, GPU"


COUNTED_MAX = 10_000


class HistoryFilter(RunFilter):
    """One view of the history; with any `problems` nothing is shown."""

    class Meta(RunFilter.Meta):
        form = HistoryForm

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.form.cleaned_data.get("columns") or columns_named(DEFAULT)

    @property
    def group_by(self) -> str:
        return self.form.cleaned_data.get("group_by") or ""

    @property
    def place(self) -> dict[str, int | None]:
        """Return the run after or before which the page begins; none on the first page."""
        return {name: self.form.cleaned_data.get(name) for name in ("after", "before")}

    @property
    def count(self) -> int:
        """Return the number of runs, at most `COUNTED_MAX` + 1."""
        return sum(part.queryset.order_by()[: COUNTED_MAX + 1].count() for part in self.parts)

    def groups(self) -> tuple[list[Group], Page[Run]]:
        """Group the first runs of this view, and return these runs as a page."""
        page = self.page(GROUPED_MAX)
        return grouped(page.rows, self.group_by), page

    @cached_property
    def chosen(self) -> list[dict[str, str]]:
        """The filters in force, "State: failed or cancelled", each with the query without it."""
        chosen = []
        for name in self.filters_set:
            field, given = self.form.fields[name], self.form.given.getlist(name)
            if isinstance(field, forms.ModelChoiceField):  # its choices are all rows there are
                text = self.form.cleaned_data.get(name) or given[0]
            else:
                choices = {str(value): str(label) for value, label in getattr(field.widget, "choices", ())}
                text = " or ".join(choices.get(value, value) for value in given if value)
            chosen.append({"label": f"{field.label}: {text}", "without": self.query(**{name: None})})
        return chosen

    @property
    def filters_set(self) -> list[str]:
        return [name for name in self.filters if any(self.form.given.getlist(name))]

    @property
    def folded_are_set(self) -> bool:
        return any(name not in RunFilter.MAIN for name in self.filters_set)

    @property
    def column_keys(self) -> tuple[str, ...]:
        return tuple(column.key for column in self.columns)

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Return what the filter form passes on unchanged: the columns stay when filters or order change."""
        return [("columns", value) for value in self.form.given.getlist("columns")[-1:] if value]

    @property
    def has_usual_columns(self) -> bool:
        return self.column_keys == DEFAULT

    def query_sorted_by(self, column: Column) -> str:
        """Return what a click on the column's title asks for: its order, then the reverse."""
        if self.sort.column is column:
            return self.query(sort=column.key if self.sort.is_reversed else f"-{column.key}")
        return self.query(sort=column.first_sort)

    def column_choices(self) -> Iterator[dict[str, Any]]:
        shown = self.column_keys
        for column in self.columns[1:]:
            yield {
                "column": column,
                "hide": self._with_columns(tuple(key for key in shown if key != column.key)),
                "earlier": self._with_columns(moved(shown, column.key, -1)),
                "later": self._with_columns(moved(shown, column.key, +1)),
            }
        for column in COLUMNS.values():
            if column.key not in shown:
                yield {"column": column, "show": self._with_columns((*shown, column.key))}

    def _with_columns(self, keys: tuple[str, ...]) -> str:
        return self.query(columns=None if keys == DEFAULT else ",".join(keys))


def parse_query(data: QueryDict) -> HistoryFilter:
    """Read a query string. An invalid query is not refused: the page shows it with its problems."""
    query = HistoryFilter(data, Run.objects.all())
    query.form.is_valid()
    return query
