"""The table of kinds has a row for each kind of run, and what a row names is there."""

import pytest

from engine.cli.main import COMMANDS
from engine.errors import SpecError
from engine.kinds import KINDS, RunKind, answered, subcommand
from engine.validation.spec import ValidationSpec


def test_the_subcommand_of_each_kind_is_one_of_the_command_line() -> None:
    assert set(map(subcommand, RunKind)) <= {"", *COMMANDS}


def test_each_kind_reads_its_own_spec() -> None:
    spec = ValidationSpec("bert-tiny")
    assert KINDS[RunKind.VALIDATION].read_spec(spec.to_dict()) == spec
    with pytest.raises(SpecError, match="check"):
        KINDS[RunKind.MEASUREMENT].read_spec(spec.to_dict())


def test_an_estimate_is_no_result_of_another_machine() -> None:
    with pytest.raises(SpecError, match="is missing"):
        answered({"schema": 1, "estimates": [], "spec": {}})
