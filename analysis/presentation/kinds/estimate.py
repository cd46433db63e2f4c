"""An estimate in words: figures of the predictor, which needs no device."""

from __future__ import annotations

from analysis.models import Run
from analysis.presentation.estimate_summary import headline, headline_of_all
from analysis.presentation.kinds.presentation import ESTIMATED, Presentation, endings_of
from analysis.presentation.labels import model_name, short_device_name
from analysis.presentation.unreadable import read_stored
from analysis.runs.gpu_catalog import gpu_name, gpu_total_bytes
from engine.facts.progress import ESTIMATING_PHASES
from engine.questions.documents.estimated import Estimated


class Estimate(Presentation):
    noun = mark = "estimate"
    is_predicted = True
    waiting = "Waiting for a free worker; an estimate needs no device."
    starting = "The worker is starting the predictor."
    endings = endings_of("estimate", "figures", failed="no estimate could be made", who="The predictor")

    def found(self, run: Run) -> str:
        if run.estimated_cards is not None:
            return f"≈ {run.estimated_cards_that_fit} of {run.estimated_cards} GPUs"
        size = run.estimated_largest_batch_size
        return "≈ finished" if size is None else f"≈ {size:,}" if size else "≈ does not fit"

    def answer(self, run: Run) -> str:
        estimates = read_stored(Estimated.from_dict, run.result).estimates
        return headline(estimates[0], run.spec) if len(estimates) == 1 else headline_of_all(estimates, run.spec)

    def doing(self, run: Run) -> str:
        return f"Estimating the batch size of {model_name(run.model)}"

    def phases(self, run: Run) -> tuple[str, ...]:
        return ESTIMATING_PHASES

    def place(self, run: Run) -> str:
        return short_device_name(gpu_name(run.gpu))

    card = place

    def badge_claim(self, run: Run) -> tuple[str, str]:
        size = run.estimated_safe_batch_size
        return (f"batch {size} estimate" if size else "does not fit, estimate"), ESTIMATED

    def place_bytes(self, run: Run) -> int | None:
        return gpu_total_bytes(run.gpu)
