"""A machine on which no other work is done, whatever else runs beside the tests."""

from typing import Any

import pytest

from engine.trainings.script.speed import seats


class QuietMachine:
    """Stands for `MachineWatch`."""

    def __init__(self, **_: Any) -> None:
        self.others_cores = 0.0

    def read(self) -> dict[str, Any]:
        return {"others_cores": self.others_cores}


def leave_the_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "MachineWatch", QuietMachine)
