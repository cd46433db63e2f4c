"""Every kind of run has its rules, and every spec its kind."""

from typing import get_args

import pytest

from analysis.models import RunKind, RunOrigin
from analysis.runs.kinds import BY_KIND, spec_columns
from analysis.runs.kinds.rules import Spec
from analysis.runs.origins import BY_ORIGIN
from engine.estimate.spec import EstimateSpec
from engine.faster.spec import FasterSpec
from engine.tune.faster.spec import OWN, OwnRaceSpec
from engine.tune.spec import TuneSpec
from engine.validation.spec import ValidationSpec
from tests.factories import make_spec


def test_every_origin_has_its_rules() -> None:
    assert list(BY_ORIGIN) == list(RunOrigin)


def test_every_type_of_a_spec_is_of_exactly_one_kind() -> None:
    types = [each for rules in BY_KIND.values() for each in rules.spec_types]
    assert set(types) == set(get_args(Spec))
    assert len(types) == len(set(types))


@pytest.mark.parametrize(
    ("spec", "kind", "empty"),
    [
        (make_spec(), "measurement", ()),
        (TuneSpec(("train", "{batch_size}")), "command", ("precision", "optimizer")),
        (EstimateSpec(make_spec(memory_limit_bytes=2**30), "a10"), "estimate", ("needs_bytes",)),
        (ValidationSpec("bert-tiny"), "validation", ("current_batch_size",)),
        (FasterSpec("bert-tiny"), "race", ()),
        (OwnRaceSpec(("train",), batch=OWN), "own_race", ("precision", "optimizer")),
    ],
    ids=list(RunKind),
)
def test_a_spec_decides_the_kind_and_what_is_known_of_a_run(spec: Spec, kind: str, empty: tuple[str, ...]) -> None:
    columns = spec_columns(spec)
    assert columns["kind"] == kind
    assert all(columns.get(name) is None for name in empty)
