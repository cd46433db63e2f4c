"""What the tests of starts share."""

import sys

import pytest

from engine.trainings.script.start.environment import HOOK
from tests.engine.quiet_machine import leave_the_machine_alone

sys.path.append(str(HOOK))  # as in a process that is watched


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Made-up starts say nothing of the machine that the tests run on; real ones do."""
    if "slow" not in request.keywords:
        leave_the_machine_alone(monkeypatch)
