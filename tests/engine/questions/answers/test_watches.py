"""The answer of a watched training is worked out from its facts, whatever a document says; nonsense is refused."""

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import SpecError
from engine.questions.answers import ImpossibleFiguresError
from engine.questions.kinds import RunKind, answer, answered, kind_of
from engine.text.units import GIB, MIB
from tests.factories.watched import FULL, make_watched, make_watched_on_cpu

SHARES = {"weights_bytes": 1, "gradients_bytes": 0, "states_bytes": 81 * GIB}
LATE = "It trained, then ran out of memory: either a larger batch came, or memory grew."


def test_a_document_says_again_what_the_terminal_said() -> None:
    for found in (make_watched(), make_watched(grows_bytes=MIB), make_watched(error=FULL), make_watched_on_cpu()):
        document = found.to_send(with_output=True).to_dict()
        assert kind_of(document) == RunKind.WATCH
        assert answered({**document, "headline": "9x", "report": {}}) == answered(document)
        assert answer(document).headline == found.headline


def test_growth_is_worked_out_from_the_samples() -> None:
    assert answer(make_watched(grows_bytes=MIB).to_dict()).headline.startswith("Memory grows by 1.0 MiB a step")
    steady = make_watched()
    assert steady.process is not None
    of_host = tuple((step, at, GIB + step * MIB) for step, at, *_ in steady.process.samples)
    found = replace(steady, process=replace(steady.process, host_samples=of_host), free_bytes=10 * GIB)
    assert answer(found.to_dict()).headline.startswith("The host's memory grows by 1.0 MiB a step")


def test_what_the_figures_of_a_card_decide_no_document_claims() -> None:
    document = _changed("process.death.cause", "another_process")
    assert answer(document).headline == LATE


def test_a_line_of_the_script_is_sent_where_it_is_asked_for_and_without_its_secrets() -> None:
    found = make_watched(error="ValueError: wrong --password=hunter22x for /data/train.bin")
    kept, sent = found.to_send(with_output=False), found.to_send(with_output=True)
    assert kept.process.death == replace(found.process.death, line="")
    assert sent.process.death.line == "ValueError: wrong --password=*** for /data/train.bin"
    assert kept.headline == sent.headline == found.headline


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("process.peak_bytes", 81 * GIB, "process.peak_bytes"),
        ("process.samples.3.2", -1, "process.samples[3][2]"),
        ("process.samples.3.0", 1, "process.samples[3][0]"),
        ("process.host_samples", [[2, 0.1, 5], [1, 0.2, 5]], "process.host_samples[1][0]"),
        ("process.seconds", 1e6, "process.seconds"),
        ("process.seconds", 0.0, "process.seconds"),
        ("process.batch_size", 0, "process.batch_size"),
        ("process.training_peak_bytes", 21 * GIB, "process.training_peak_bytes"),
        ("process.batches.latest", [1] * 65, "process.batches.latest.length"),
        ("process.batches.latest", [-1], "process.batches.latest[0]"),
        ("process.shares", SHARES, "process.shares.states_bytes"),
        ("process.piled_up", {"shape": [2], "count": 0, "bytes": 8, "graphs": 0}, "process.piled_up.count"),
        ("process.death.line", "a\nb", "process.death.line"),
        ("process.death.figures.free", -1, "process.death.figures.free"),
        ("status", -99_999, "status"),
        ("device_count", 0, "device_count"),
        ("device.limit_bytes", GIB, "device.limit_bytes"),
    ],
)
def test_what_no_machine_can_have_recorded_is_refused_by_its_name(path: str, value: Any, field: str) -> None:
    document = _changed(path, value)
    with pytest.raises(ImpossibleFiguresError) as refused:
        answer(document)
    assert field in [each.field for each in refused.value.found]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("process", None, "process"),
        ("process.samples", [[1, 0.1, 5, 5]] * 1_025, "process.samples"),
        ("process.death.cause", "witchcraft", "process.death.cause"),
        ("spec.command", "python train.py", "command"),
        ("spec.device", "banana", "device"),
        ("spec.turbo", True, "turbo"),
    ],
)
def test_a_malformed_document_is_refused_by_the_name_of_its_field(path: str, value: Any, field: str) -> None:
    document = _changed(path, value)
    with pytest.raises(SpecError) as refused:
        answer(document)
    assert refused.value.field == field


def _changed(path: str, value: Any) -> dict[str, Any]:
    document = answered(make_watched(error=FULL).to_send(with_output=False).to_dict())
    *places, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    part: Any = document
    for place in places:
        part = part[place]
    part[last] = value
    return document
