"""The question of the page of estimates: a model, a GPU or all, today's batch size, and settings of the training."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from django import forms
from django.http import QueryDict

from analysis.http.query_string import QueryProblem, StrictQueryForm, without_empty
from analysis.http.setting_fields import setting_field, with_fields
from analysis.models import ALL_GPUS
from analysis.pages.field_groups import GroupedForm, topics_of
from analysis.pages.form_choices import describe_input_sizes, models_by_task
from analysis.pages.kinds.estimate import CardsForm
from analysis.runs.gpu_catalog import gpu_choices, gpu_ids
from engine.errors import SpecError
from engine.estimate.spec import EstimateSpec
from engine.settings.catalog import workload_ids
from engine.settings.spec import SETTINGS, TRAINING_SETTINGS, RunSpec

_NOT_ESTIMATED = ("torch_compile",)
FOLDED = (
    *("precision", "optimizer", "sequence_length", "image_size", "gradient_checkpointing"),
    *(
        name
        for name in TRAINING_SETTINGS
        if SETTINGS[name].is_in_form
        and name not in ("precision", "optimizer", "gradient_checkpointing", *_NOT_ESTIMATED)
    ),
)
"""The settings that the page folds away. A config of one's own and a memory limit are on the start page."""
_OPEN = (*FOLDED[:5], "lora_rank")


@with_fields({name: setting_field(name) for name in FOLDED}, after="current_batch_size")
class QuestionForm(GroupedForm, StrictQueryForm):
    """The parameters of a question, named as in RunSpec. All are values of the catalogue: none is free text."""

    OPEN, TOPICS = _OPEN, topics_of([name for name in FOLDED if name not in _OPEN])

    model = forms.ChoiceField(label="Model", choices=models_by_task, initial="bert")
    gpu = forms.ChoiceField(label="GPU", choices=gpu_choices, initial=ALL_GPUS)
    current_batch_size = setting_field("current_batch_size", label="Your batch size today", initial=16, help_text="")

    def __init__(self, query: QueryDict | None = None, **options: Any) -> None:
        super().__init__(query, **options)
        for name, known in (("model", workload_ids()), ("gpu", gpu_ids())):
            message = _not_offered(self.given.get(name, ""), [*known, *([ALL_GPUS] if name == "gpu" else [])])
            self.fields[name].error_messages["invalid_choice"] = message
        describe_input_sizes(self.fields)
        self.fields["model"].widget.attrs["data-search"] = "Search models"  # home.js puts a search box above it
        self.fields["gpu"].widget.attrs["data-search"] = "Search GPUs"
        self.spec, self.refusal = (None, None) if not self.given or self.problems else self._read()

    @property
    def is_open(self) -> bool:
        """Whether a folded setting is wrong, and so has to be shown: else the answer would be far below it."""
        return bool(self.given) and any(name in self.errors for name in FOLDED)

    @property
    def unplaced(self) -> list[QueryProblem]:
        return [problem for problem in self.wrong if problem.parameter not in self.errors]

    @property
    def wrong(self) -> tuple[QueryProblem, ...]:
        return (*self.problems, *([self.refusal] if self.refusal else ()))

    @property
    def address(self) -> str:
        query = QueryDict(mutable=True)
        for name in ("model", "gpu", "current_batch_size"):
            query[name] = str(self[name].value())
        for name in FOLDED:
            if name in self.given and self.given[name] != str(self.fields[name].initial):
                query[name] = str(self.given[name])
        return query.urlencode()

    def refuse(self, field: str, message: str) -> QueryProblem:
        problem = QueryProblem(field, message.removeprefix(f"{field}: ").rstrip("."))
        if field in self.fields:
            self.add_error(field, problem.message)
        self.refusal = problem
        return problem

    def _read(self) -> tuple[EstimateSpec | None, QueryProblem | None]:
        values = {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}
        gpu = values.pop("gpu")
        try:
            return EstimateSpec(RunSpec.from_dict(values), gpu), None
        except SpecError as error:
            return None, self.refuse(error.field or "model", str(error))


def _not_offered(value: str, known: list[str]) -> str:
    nearest = get_close_matches(value[:80].casefold(), known, n=3, cutoff=0.5)
    shown = repr(value[:80]).replace("%", "%%")  # Django fills in messages of choices
    return f"{shown} is not in the catalogue" + (f"; did you mean {', '.join(nearest)}?" if nearest else "")


def question_of(query: QueryDict) -> QueryDict:
    """Return the parameters of the question, without the filter and order of its table and without empty fields."""
    asked = without_empty(query)
    for name in (*CardsForm.base_fields, "csrfmiddlewaretoken"):
        asked.pop(name, None)
    return asked


def table_of(query: QueryDict) -> QueryDict:
    shown = QueryDict(mutable=True)
    for name in CardsForm.base_fields:
        if name in query:
            shown.setlist(name, query.getlist(name))
    return shown
