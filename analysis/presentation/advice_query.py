"""The parameters of an advice, for its page and the API: `?global_batch=256&devices=4`."""

from __future__ import annotations

from django import forms

from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.models import Run
from engine.advice.document import Advice, advise
from engine.advice.global_batch import MAX_DEVICES, MAX_GLOBAL_BATCH_SIZE
from engine.advice.stored import basis_of


class AdviceForm(StrictQueryForm):
    global_batch = WholeNumberField(
        label="Global batch",
        required=False,
        max_value=MAX_GLOBAL_BATCH_SIZE,
        help_text="Samples of one optimizer step, matched exactly. Default: today's or the recommended size.",
    )
    devices = WholeNumberField(
        label="Devices",
        required=False,
        max_value=MAX_DEVICES,
        help_text="Devices that share the global batch. Default: 1, or the ranks of a registered command.",
    )
    gpu = forms.CharField(
        label="GPU", required=False, max_length=64, help_text="Id of the GPU, in an estimate for several."
    )


def advice_of(run: Run, form: AdviceForm) -> Advice:
    """Return the advice for a finished run. Raises SpecError where it has no size."""
    query = form.cleaned_data
    basis = basis_of(run.result, query["gpu"] or None)
    return advise(basis, global_batch_size=query["global_batch"], devices=query["devices"])
