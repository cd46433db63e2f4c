"""What is said of a result, a probe and an estimate, by the command line and on pages: the words that are recorded.

After a wanted change of words: `RECORD_WORDS=1 python -m pytest tests/in_words`, and read the difference.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from analysis.presentation import estimate_summary
from analysis.presentation.filled_memory import filled_memory
from analysis.presentation.probe_rows import probe_lines
from analysis.presentation.result_summary import headline, reach
from engine.cli.printing.estimate_table import answer as answer_of_estimates
from engine.cli.printing.estimate_table import table
from engine.cli.printing.result_text import answer_lines, details, summary
from engine.describe.boundary import certificate_lines, why_not_certified
from engine.describe.does_not_fit import ways_to_fit
from engine.describe.key_figures import figures, nothing_to_gain
from engine.describe.reserve import describe_reserve
from engine.describe.result import answer_of_check, describe_timing, time_by_part
from engine.describe.time_left.phase_facts import event_line
from engine.estimate.gpus import gpus
from engine.estimate.types import Estimate
from engine.questions.documents import words
from engine.questions.documents.estimated import EstimatedCard
from engine.questions.documents.measured import Measured
from engine.settings.spec import RunSpec
from engine.text.from_json import from_json
from tests.fake_engine import estimate_of
from tests.in_words.documents import documents, key_line, probes, result_of

SAID = Path(__file__).parent / "said"


@pytest.mark.parametrize("name", documents())
def test_a_result_is_said_as_recorded(name: str) -> None:
    document = documents()[name]
    said = [*_title("Command line"), *_printed(document), *_title("Page"), *_on_the_page(Measured.from_dict(document))]
    _hold(name, said)


def test_a_probe_is_said_as_recorded() -> None:
    said = [*_title("Log"), *(str(event_line({"event": "probe", "probe": each.to_dict()})) for each in probes())]
    rows = probe_lines(probes(), {"recommended": 16, "largest": 16, "current": 4})
    said += [*_title("Table"), *(f"{row.icon} {', '.join((row.word, *row.notes))} | {row.phase}" for row in rows)]
    _hold("probes", said)


def test_an_estimate_is_said_as_recorded() -> None:
    spec = RunSpec("bert", current_batch_size=16)
    made = estimate_of(spec, gpus()["a10"])
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"safe_batch_size": 0},
        {"largest_batch_size": 0, "safe_batch_size": 0, "limits": "does_not_fit"},
        {"largest_batch_size": 65_536, "safe_batch_size": 65_536, "limits": "max_batch_size"},
        {"method": "approximate_fake_cpu", "approximate_because": "CUDA is in use"},
    )
    events = [{"event": "estimate", "estimate": made | each} for each in changes]
    read = [EstimatedCard.from_dict(made | each) for each in changes]
    said = [
        *_title("Log"),
        *(event_line(event) or "(no line)" for event in events),
        *_title("Command line"),
        answer_of_estimates(one := [from_json(Estimate, made | each) for each in changes[:1]]),
        table(one, 4.2),
        answer_of_estimates(two := [from_json(Estimate, made | each) for each in changes[3:]]),
        table(two, 4.2),
        *_title("Page"),
        *(estimate_summary.headline(each, spec.to_dict()) for each in read),
        *(f"{name}: {text}" for name, text in estimate_summary.how_rows(read[-1])),
    ]
    _hold("estimates", said)


def _printed(document: dict[str, Any]) -> list[str]:
    result = result_of(document)
    if result.spec.check_batch_size is not None:
        return [answer_of_check(result).text]
    return [*answer_lines(result), "", details(result), "", *summary(result).splitlines()[1:-1]]


def _on_the_page(result: Measured) -> list[str]:
    need, suggestions = ways_to_fit(result)
    answer, gain, filled = headline(result), nothing_to_gain(result), filled_memory(result.memory_breakdown)
    parts: list[tuple[str, object]] = [
        ("Headline", [answer.sentence, *answer.notes]),
        ("Key", key_line(result)),
        ("Reach", reach(result)),
        ("Not certified", why_not_certified(result)),
        ("Reserve", describe_reserve(result)),
        ("Timing", describe_timing(result)),
        ("Nothing to gain", gain and [gain.text, *gain.others]),
        ("Figures", [_of_figure(each) for each in figures(result)]),
        ("Need", need),
        ("Suggestions", suggestions),
        ("Paste", words.paste(result)),
        ("Note", words.paste_note(result)),
        ("Certificate", [f"{line.word}: {line.text}" for line in certificate_lines(result)]),
        ("Training", [f"{name}: {text}" for name, text in words.training_rows(result)]),
        ("Loader", words.loader_limit(result)),
        ("Timings", [f"{name}: {seconds:.1f}" for name, seconds in time_by_part(result)]),
        ("Filled", filled and [filled.title, filled.moment, filled.sentence, filled.fragmentation]),
    ]
    said = []
    for name, texts in parts:
        lines = [texts] if isinstance(texts, str) else texts or []
        assert isinstance(lines, list)
        said += [f"{name}: {line}" for line in lines if line]
    return said


def _of_figure(figure: Any) -> str:
    shown = (figure.title, figure.value, figure.kind, figure.interval, figure.note, figure.assumption)
    return " | ".join(part for part in shown if part)


def _title(text: str) -> list[str]:
    return [f"== {text}"]


def _hold(name: str, said: list[str]) -> None:
    path, text = SAID / f"{name}.txt", "\n".join(said) + "\n"
    if os.environ.get("RECORD_WORDS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
