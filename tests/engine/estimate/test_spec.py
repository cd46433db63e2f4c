"""The spec of an estimate is one document: what is trained, and what is estimated of it."""

import pytest

from engine.errors import SpecError
from engine.estimate.spec import EstimateSpec, read_training
from engine.kinds import KINDS
from engine.spec import RunSpec
from engine.tune.spec import TuneSpec

TRAINING = RunSpec("bert-tiny", current_batch_size=4)


def test_a_stored_spec_is_read_back_by_the_row_of_the_kind() -> None:
    spec = EstimateSpec(TRAINING, "a10", "grid", (128, 64), "model")
    own = {"gpu": "a10", "what_to_change": "grid", "frontier": [64, 128], "largest": "model"}
    document = spec.to_dict()
    assert document == TRAINING.to_dict() | own
    read = KINDS["estimate"].read_spec(document)
    assert isinstance(read, EstimateSpec)
    assert read.to_dict() == document
    assert read_training(document) == read.training == read_training(TRAINING.to_dict()) == TRAINING


def test_a_training_alone_is_estimated_for_all_cards() -> None:
    assert EstimateSpec.from_dict(TRAINING.to_dict()) == EstimateSpec(TRAINING, "all", "", ())


@pytest.mark.parametrize(
    ("member", "value", "why"),
    [
        ("gpu", 7, "must be text"),
        ("gpu", "a1O", "a10"),
        ("what_to_change", None, "must be text"),
        ("what_to_change", "everything", "must be one of"),
        ("frontier", "64,128", "list of whole numbers"),
        ("frontier", [64, True], "list of whole numbers"),
        ("frontier", [64, 64], "give each size once"),
        ("largest", 7, "must be text"),
        ("largest", "batch_size", "must be one of sequence_length, image_size, lora_rank, model"),
        ("largest", "image_size", "bert-tiny has no image_size; it takes sequence_length"),
        ("no_such", 1, "unknown key"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(member: str, value: object, why: str) -> None:
    with pytest.raises(SpecError, match=f"{member}: .*{why}"):
        EstimateSpec.from_dict(TRAINING.to_dict() | {"gpu": "a10", member: value})


def test_what_is_largest_is_searched_for_a_batch_of_one_where_none_is_given() -> None:
    asked = {"model": "bert-tiny", "gpu": "a10", "largest": "sequence_length"}
    assert EstimateSpec.from_dict(asked).training.current_batch_size == 1
    assert EstimateSpec.from_dict(asked | {"current_batch_size": 8}).training.current_batch_size == 8


def test_what_is_largest_is_asked_of_one_card() -> None:
    with pytest.raises(SpecError, match="largest: is for one GPU"):
        EstimateSpec(TRAINING, largest="model")


def test_a_command_has_no_training_that_could_be_estimated() -> None:
    with pytest.raises(SpecError, match="unknown key"):
        read_training(TuneSpec(("train", "{batch_size}")).to_dict())
