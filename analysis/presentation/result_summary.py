"""The texts of a result that name its model and place, or set its estimate and its environment beside it."""

from __future__ import annotations

from typing import Any

from analysis.charts.bars import MemoryBar, memory_bars
from analysis.presentation.estimate_error import SAME, compare_to_estimate
from analysis.presentation.estimate_summary import how_rows
from analysis.presentation.labels import model_name, place
from engine.describe import result as describe
from engine.describe.boundary import CertificateLine, certificate_lines, is_today_refused, trains_with
from engine.describe.key_figures import SAVES, key_figures
from engine.describe.result import Answer
from engine.questions.documents.measured import Measured
from engine.questions.documents.raced import AnyRace
from engine.questions.documents.validated import Validated

_NAME_WORDS = 6
"""Words of a model's name in the leading sentence; the rest of a longer name stands among the facts."""


def headline(result: Measured) -> Answer:
    words = model_name(result.spec["model"]).split()
    return describe.headline(result, " ".join([*words[:_NAME_WORDS], *(["…"] if len(words) > _NAME_WORDS else [])]))


def reach(result: Measured) -> str:
    """Write "On this CPU, limited to 1 GiB, BERT tiny trains with up to 8 samples."; empty where nothing trained."""
    return "" if result.largest is None else f"{_model_there(result)} {trains_with(result)}."


def verdict(result: Measured) -> str:
    """Return the whole answer as one text, for messages."""
    if result.largest is None and not result.is_check:
        return f"{_model_there(result)} {describe.why_nothing_fits(result)}"
    saves = [f"{each.title} {each.value}." for each in key_figures(result) if each.title == SAVES and each.is_known]
    return " ".join([headline(result).text, *saves, *filter(None, [reach(result)])])


def _model_there(result: Measured) -> str:
    return f"{place(result.device, result.limit_bytes)} {model_name(result.spec['model'])}"


def certificate(result: Measured) -> list[CertificateLine]:
    """Return the lines of the certificate, and how far the estimate before the run was off."""
    lines = certificate_lines(result)
    if (estimate := result.estimate) is not None:
        size = f"{estimate.largest_batch_size:,}" if estimate.largest_batch_size else "no size fits"
        difference = compare_to_estimate(estimate, result)[0].difference
        text = f"Predicted before the run: {size}, {'exact' if difference == SAME else difference}."
        lines.append(CertificateLine("estimate", "estimate", text))
    return lines


def result_bars(result: Measured) -> list[MemoryBar]:
    return memory_bars(
        waste=result.waste,
        current_batch_size=result.current_batch_size,
        current_is_refused=is_today_refused(result),
        recommended=result.recommended,
        with_reserve=result.largest_with_reserve,
    )


def beside_measurement(result: Measured) -> dict[str, Any] | None:
    """Return the estimate before the run beside what was measured: the sizes of the answer, then the others."""
    if (estimate := result.estimate) is None:
        return None
    of_the_answer, rows = {None, *result.roles.values()}, compare_to_estimate(estimate, result)
    return {
        "rows": [row for row in rows if row.batch_size in of_the_answer],
        "more": [row for row in rows if row.batch_size not in of_the_answer],
        "how": [row for row in how_rows(estimate) if row[0] not in ("Memory of the GPU", "Price")],
    }


_INTERNAL = frozenset({"torchvision_schemas_declared", "run_key"})
"""Facts of the environment that only the engine and the portal understand."""


def environment_rows(result: Measured | Validated | AnyRace) -> list[tuple[str, str]]:
    device = result.device
    rows = [
        ("Device", f"{device.name} ({device.device})"),
        ("UUID", device.uuid),
        ("Driver", device.driver),
        ("Compute capability", device.compute_capability),
    ]
    rows += [(name.replace("_", " "), value) for name, value in result.environment.items() if name not in _INTERNAL]
    return [(name, str(value)) for name, value in rows if value not in (None, "", {}, [])]
