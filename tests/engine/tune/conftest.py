"""What the tests of starts share."""

import pytest

from tests.engine.quiet_machine import leave_the_machine_alone


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Made-up starts say nothing of the machine that the tests run on; real ones do."""
    if "slow" not in request.keywords:
        leave_the_machine_alone(monkeypatch)
