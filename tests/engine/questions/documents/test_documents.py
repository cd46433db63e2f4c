"""Result documents of every version are read, and those of today are written again as they were.

`tests/data/documents` has what earlier engines wrote: each version was run as it was, with `--json`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.estimate.frontier import frontier_of, grid_of, specs_of
from engine.estimate.largest import LargestOf, largest_of
from engine.estimate.predict import estimate
from engine.estimate.types import Estimate
from engine.facts.result import RecommendedBy
from engine.questions.documents.estimated import Estimated
from engine.questions.documents.measured import Measured
from engine.questions.documents.validated import Validated
from engine.questions.kinds import RunKind, answered, kind_of, read_result
from engine.settings.spec import RunSpec
from engine.text.units import GIB, MIB
from tests.engine.estimate.synthetic_models import card, model
from tests.engine.honest_worker import HonestWorker, document_of
from tests.engine.questions.answers.own_race_documents import document_of as own_race_document
from tests.engine.questions.answers.race_documents import document_of as race_document
from tests.factories import make_result, make_result_that_does_not_fit
from tests.factories.speeds import make_timed_result

ROOT = Path(__file__).resolve().parents[4]
EARLIER = {path.stem: path for path in sorted((ROOT / "tests" / "data" / "documents").glob("*.json"))}
STORED = {path.stem: path for path in sorted((ROOT / "benchmarks" / "data" / "results").glob("*.json"))}
OF_OTHER_WORDS = [name for name in EARLIER if name.endswith(("by_memory", "before_claims"))]
"""Before 0.5 was done, a result could recommend a size by memory alone."""
STORED["tuned_function"] = ROOT / "tests" / "factories" / "tuned_function.json"


def document(name: str) -> dict[str, Any]:
    content = json.loads((EARLIER | STORED)[name].read_text())
    return dict(content.get("result", content))


def made(spec: RunSpec) -> Estimate:
    return estimate(spec, card(), model(), seconds=1.0, versions={}, batch_sizes=grid_of(spec))


def estimated_today() -> dict[str, Any]:
    spec = RunSpec("bert-tiny")
    frontier = frontier_of(spec, [made(each) for each in specs_of(spec, (64, 128))])
    largest = largest_of(
        spec, LargestOf.SEQUENCE_LENGTH, 1, lambda each: each.input_size * MIB, limit_bytes=GIB, margin_fraction=0.2
    )
    return {"estimates": [made(spec).to_dict()], "frontier": frontier.to_dict(), "largest": largest.to_dict()}


def of_today() -> dict[str, dict[str, Any]]:
    return {
        "measured": make_result().to_dict(),
        "with intervals": make_timed_result().to_dict(),
        "does not fit": make_result_that_does_not_fit().to_dict(),
        "of a worker": document_of(HonestWorker(100)),
        "estimated": estimated_today(),
        "tuned": answered(document("tune_plain")),
        "validated": document("validate"),
    }


@pytest.mark.parametrize("name", [*(name for name in EARLIER if name not in OF_OTHER_WORDS), *STORED])
def test_a_document_of_any_version_is_read_and_keeps_what_it_says(name: str) -> None:
    read = read_result(document(name))
    assert type(read).from_dict(read.to_dict()) == read
    assert getattr(read, "unreadable", ()) == ()


@pytest.mark.parametrize("name", of_today())
def test_a_document_of_today_is_written_again_to_the_byte(name: str) -> None:
    text = json.dumps(of_today()[name])
    text = text.replace('"carried_seconds": 0,', '"carried_seconds": 0.0,')  # the sum of no seconds is a whole number
    assert json.dumps(read_result(json.loads(text)).to_dict()) == text


def test_a_result_of_a_later_version_is_read_without_what_this_one_does_not_know() -> None:
    data: dict[str, Any] = json.loads(json.dumps(make_result().to_dict()))
    for part in (data, data["device"], data["boundary"], data["probes"][0]):
        part["colour"] = "red"
    assert read_result(data) == read_result(make_result().to_dict())


@pytest.mark.parametrize(
    ("name", "kind", "read_as"),
    [
        ("measured_0_1", RunKind.MEASUREMENT, Measured),
        ("tune_speed", RunKind.COMMAND, Measured),
        ("tuned_function", RunKind.COMMAND, Measured),
        ("validate", RunKind.VALIDATION, Validated),
        ("estimate_0_3", RunKind.ESTIMATE, Estimated),
    ],
)
def test_the_kind_is_told_by_the_members(name: str, kind: RunKind, read_as: type) -> None:
    assert (kind_of(document(name)), type(read_result(document(name)))) == (kind, read_as)


def test_what_a_command_consumed_is_part_of_its_document_alone() -> None:
    tuned, measured = Measured.from_dict(document("tune_speed")), Measured.from_dict(document("bert_tiny"))
    assert tuned.training is not None
    assert (measured.training, "training" in measured.to_dict()) == (None, False)


@pytest.mark.parametrize("name", OF_OTHER_WORDS)
def test_a_document_in_other_words_is_read_by_its_facts(name: str) -> None:
    stored, read = document(name), read_result(answered(document(name)))
    assert isinstance(read, Measured)
    assert read.boundary.largest_batch_size == stored["boundary"]["largest_batch_size"]
    assert read.speed is not None
    assert read.speed.recommended_by is (RecommendedBy.SPEED if read.recommended else RecommendedBy.NOTHING)


def test_a_spec_that_today_refuses_is_read_as_it_stands() -> None:
    stored = document("measured_0_1")
    stored["spec"] |= {"model": "of-a-lab-that-is-gone", "optimizer": "forgotten"}
    read = Measured.from_dict(stored)
    assert (read.spec.model, read.spec["optimizer"]) == ("of-a-lab-that-is-gone", "forgotten")
    assert read.spec.reserve_fraction == 0.05, "a setting that is newer than the document has its default"
    with pytest.raises(AttributeError):
        _ = read.spec.colour


@pytest.mark.parametrize("part", ["memory_breakdown", "estimate", "estimate_error"])
def test_a_part_that_cannot_be_read_is_left_out_and_named(part: str) -> None:
    read = read_result({**make_result().to_dict(), part: {"x": []} if part != "estimate_error" else 7})
    assert isinstance(read, Measured)
    assert (read.unreadable, getattr(read, part)) == ((part,), None)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"boundary": "x"}, r"Expected `object`, got `str` - at `\$.boundary`"),
        ({"probes": [{"batch_size": "8"}]}, r"probes\[0\]"),
        ({"spec": 7}, r"at `\$.spec`"),
        ({"spec": {"model": "bert"}}, "spec.current_batch_size is missing"),
        ({"speed": "fast"}, r"\$.speed"),
        ({"estimates": [{"spec": {}}]}, r"estimates\[0\]"),
        ({"checks": 7}, r"\$"),
    ],
)
def test_what_is_of_another_type_is_refused_by_its_member(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_result({**make_result().to_dict(), **wrong})


def test_an_estimate_is_read_without_its_further_parts_where_these_cannot_be() -> None:
    read = Estimated.from_dict({**estimated_today(), "what_to_change": {"scope": "of a later version"}})
    assert (len(read.estimates), read.what_to_change, read.frontier is not None) == (1, None, True)


@pytest.mark.parametrize("document", [race_document("changes that gain"), own_race_document("one that gains")])
def test_a_race_of_a_change_that_is_gone_cannot_be_read(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="there is no change 'gone'"):
        read_result({**document, "chosen": ["gone"]})
