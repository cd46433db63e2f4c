"""The table of kinds has a row for each kind of run, and what a row names is there."""

from __future__ import annotations

import pytest

from engine.cli.main import COMMANDS
from engine.errors import SpecError
from engine.kinds import KINDS, find_contradictions
from engine.validation.spec import ValidationSpec
from tests.factories import make_result


def test_the_subcommand_of_each_kind_is_one_of_the_command_line() -> None:
    assert {kind.subcommand for kind in KINDS.values()} <= {"", *COMMANDS}


def test_each_kind_reads_its_own_spec() -> None:
    spec = ValidationSpec("bert-tiny")
    assert KINDS.validation.read_spec(spec.to_dict()) == spec
    with pytest.raises(SpecError, match="check"):
        KINDS.measurement.read_spec(spec.to_dict())


@pytest.mark.parametrize("more", [{"estimates": []}, {"safe_batch_size": 8}])
def test_a_result_that_is_an_estimate_is_refused_as_a_claim(more: dict[str, object]) -> None:
    with pytest.raises(SpecError, match=f"{next(iter(more))}: is unknown"):
        find_contradictions({**make_result().to_dict(), **more})
