"""The page of what to do with the result of a run."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from analysis.accounts.middleware import may_be_public
from analysis.http.query_string import without_empty
from analysis.models import Run
from analysis.presentation import labels
from analysis.presentation.advice_query import AdviceForm, advice_of
from analysis.presentation.kinds import presentation_of, run_place, settings_of_run
from analysis.presentation.origin import origin_context
from engine.advice import text
from engine.advice.document import Advice
from engine.errors import SpecError
from engine.questions.documents.estimated import Estimated
from engine.questions.documents.words import own_setting


@may_be_public
@require_safe
def advice(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show which pairs make a global batch exactly, and the code for it. Nothing is stored."""
    run = get_object_or_404(Run.objects.with_places(), pk=run_id)
    if not run.result:
        raise Http404
    form, is_predicted = AdviceForm(without_empty(request.GET)), presentation_of(run).is_predicted
    context: dict[str, Any] = {
        "run": run,
        **origin_context(run),
        "form": form,
        "model_name": labels.model_name(run.model),
        "settings": settings_of_run(run),
        "place": run_place(run),
        "cards": [card.gpu for card in Estimated.from_dict(run.result).estimates] if is_predicted else [],
    }
    if not form.problems:
        try:
            made = advice_of(run, form)
            context |= advice_context(made)
            context["is_of_reserve"] = not is_predicted and made.recommended_batch_size is None
            if made.chosen and presentation_of(run).runs_own_code:
                context["own_setting"] = own_setting(run.spec, made.chosen.micro_batch_size)
        except SpecError as error:
            context |= {"refusal": _refusal(error), "has_no_size": error.field == "result"}
    return render(request, "analysis/advice.html", context)


def _refusal(error: SpecError) -> str:
    """Say why there is no advice; the name of a field is left out where the reader typed none."""
    if error.field == "gpu":
        return "Choose one of the GPUs."
    return f"This run {str(error).removeprefix('result: ')}." if error.field == "result" else f"{error}."


def advice_context(made: Advice) -> dict[str, Any]:
    devices = made.global_batch.devices
    rows = [
        {"pair": pair, "speed": text.describe_speed(pair), "is_chosen": pair == made.chosen}
        for pair in made.global_batch.pairs
    ]
    return {
        "advice": made,
        "plan": text.describe_plan(made),
        "rows": rows[: text.PAIRS_SHOWN],
        "more_rows": rows[text.PAIRS_SHOWN :],
        "has_speeds": any(row["speed"] for row in rows),
        "chosen": text.describe_pair(made.chosen, devices) if made.chosen else "",
        "learning_rate": text.describe_learning_rate(made),
        "not_in_code": text.describe_not_in_code(made) if made.not_in_code else "",
    }
