"""A made-up script that `tune --faster` races: its starts take no time, and nothing is executed."""

from typing import Any

import pytest

from engine.errors import TimeIsUp
from engine.trainings.script.faster import starts
from engine.trainings.script.faster.result import OwnRaceResult
from engine.trainings.script.faster.run import make_faster
from engine.trainings.script.faster.spec import OWN, OwnRaceSpec
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.start.launch import Watching
from tests.engine.quiet_machine import QuietMachine
from tests.engine.trainings.script.test_evidence import marks_of, reading, steps

LOSSES = [2.0, 1.9, 1.8, 1.7, 1.6]
TIMES = {"fused": 0.5, "compile": 0.8, "bf16": 2.0}
"""How long a step is with each of them, of today's."""
MODEL = {"name": "Net", "convolutions": 0, "is_channels_last": False, "uses_cache": False}
MODEL |= {"is_compiled": False, "is_autocast": False, "dtypes": ["float32"], "begins_with_rows": True}
GIB = 2**30
CARD = {"name": "NVIDIA L4", "uuid": None, "total_bytes": 24 * GIB, "free_bytes": 20 * GIB, "reserved_bytes": 2 * GIB}
CARD |= {
    "compute_capability": "8.9",
    "peak_allocated_bytes": 1 * GIB,
    "peak_reserved_bytes": 2 * GIB,
    "allocator_retries": 0,
}
ON_CARD = {"device": "cuda:0", "card": CARD}
ADAM = {"name": "Adam", "can_be_fused": True, "can_be_foreach": True, "is_fused": False, "is_foreach": False}


class Busy(QuietMachine):
    """A machine on which other programs use every core."""

    def read(self) -> dict[str, Any]:
        return {"others_cores": 100.0}


class MadeUp:
    """A training whose steps take a hundredth of a second, and what is changed of it.

    `failing` fails always, `fails_after` after so many starts; `off` is how far losses are off, `off_together` of more
    than one change; `drift` is how far those of each start are from those before. `ends_after`: the time of the run.
    `steps`: so many are made, where the script ends early. `masks`: it trains on a card, with dropout whose other masks
    put the losses off by so much.
    """

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.started: list[tuple[str, ...]] = []

    def __call__(self, _: object, __: int, watching: Watching, **___: object) -> tuple[list[Reading], Ended]:
        assert watching.faster is not None
        wanted = tuple(watching.faster["set"])
        self.started.append(wanted)
        if len(self.started) > self.changes.get("ends_after", 1_000):
            raise TimeIsUp("the time budget is spent")
        if {*wanted} & {*self.changes.get("failing", ())} or self._fails_by_now(wanted):
            failed = {"ended": "error", "error_type": "RuntimeError", "error_message": "no kernel"}
            return [reading([], **failed, faster=None)], Ended(exit_status=1, wall_seconds=1.0)
        step = 0.01
        for name in wanted:
            step *= self.changes.get("times", TIMES).get(name, 1.0)
        model = MODEL | {"draws": "masks" in self.changes}
        noted = {"loaders": [], "models": [model], "optimizers": [ADAM], "kept_bytes": 0, "framework": "torch"}
        noted |= {"matmul_precision": "highest", "cudnn_benchmark": False, "draws_random": False}
        noted |= {
            "applied": list(wanted),
            "losses": self._losses(wanted, watching.faster.get("mask_seed")),
        } | self.changes.get("noted", {})
        made = steps(32)[: self.changes.get("steps")]
        marks = [mark for mark in marks_of(made, step_seconds=step) if mark[1] not in ("loading", "loaded")]
        if self.changes.get("waits") and "workers" not in wanted:
            marks = marks_of(steps(32), step_seconds=3 * step)
            for mark in marks:  # the loader waits for most of a step
                if mark[1] == "loaded":
                    mark[0] += 1.7 * step
            marks.sort(key=lambda mark: mark[0])
        peaks = {"release-outputs": 500} | self.changes.get("peaks", {})
        peak = min((peaks.get(name, 900) for name in wanted), default=900)
        place = ON_CARD if "masks" in self.changes else {}
        return [reading(made, peak=peak, python="3.11.7", faster=noted, marks=marks, **place)], Ended(wall_seconds=1.0)

    def _fails_by_now(self, wanted: tuple[str, ...]) -> bool:
        most = self.changes.get("fails_after", {})
        return any(sum(name in each for each in self.started) > most[name] for name in wanted if name in most)

    def _losses(self, wanted: tuple[str, ...], mask_seed: int | None) -> list[float]:
        off = max((self.changes.get("off", {}).get(name, 0.0) for name in wanted), default=0.0)
        off += self.changes.get("off_together", 0.0) * (len(wanted) > 1)
        off += self.changes.get("drift", 0.0) * len(self.started)
        off += 0.0 if mask_seed is None else self.changes["masks"]
        return [loss * (1 + off) for loss in LOSSES]


def raced(*tried: str, machine: type[QuietMachine] = QuietMachine, **changes: Any) -> tuple[OwnRaceResult, MadeUp]:
    """Race a made-up script."""
    made_up = MadeUp(**changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starts, "start", made_up)
        patch.setattr(starts, "MachineWatch", machine)
        spec = OwnRaceSpec(("python", "train.py"), batch=OWN, tried=tried, price_per_hour_usd=1.0)
        return make_faster(spec), made_up
