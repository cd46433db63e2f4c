"""A made-up worker whose figures are those of a machine that could exist, and the documents of its runs."""

import json
import random
from dataclasses import replace
from itertools import count
from typing import Any

from engine.facts.progress import Progress
from engine.facts.result import MemoryByKind, Probe
from engine.questions.size import measure
from engine.race.speed.comparison import TimedBlock
from engine.search.resume import EarlierAttempt
from engine.settings.spec import RunSpec
from engine.text.units import MIB
from tests.engine.fake_worker import FakeWorker
from tests.engine.synthetic_devices import Device

LIMIT_BYTES = 400 * MIB


class HonestWorker(FakeWorker):
    """Peaks that fit the limit, or do not, with their kinds; steps that vary by `noise` from one to the next."""

    def __init__(self, boundary: int, *, noise: float = 0.01, seed: int = 0, **fields: Any) -> None:
        fixed_bytes = 100 * MIB
        of_sample = (LIMIT_BYTES - fixed_bytes) // (boundary + 1) + 1  # so that one more is just too much
        curve = Device(
            lambda size: fixed_bytes + of_sample * size, lambda size: size <= boundary, LIMIT_BYTES, boundary
        )
        super().__init__(boundary, curve=fields.pop("curve", curve), **fields)
        self.rng, self.noise, self.numbers = random.Random(seed), noise, count()

    def probe(self, batch_size: int, *, steps: int, with_kinds: bool, seconds: float, progress: Progress) -> Probe:
        probe = super().probe(batch_size, steps=steps, with_kinds=with_kinds, seconds=seconds, progress=progress)
        peak = self.curve.memory(batch_size)
        if not probe.fits:
            over = max(peak, LIMIT_BYTES + 1) if self.soak_boundary is not None else peak
            return replace(probe, wall_seconds=0.0, peak_allocated_bytes=over)
        kinds = MemoryByKind(30 * MIB, 20 * MIB, 40 * MIB, peak - 95 * MIB, 5 * MIB) if with_kinds else None
        return replace(probe, wall_seconds=0.0, memory_by_kind=kinds)

    def time(self, batch_size: int, *, block_seconds: float, seconds: float, progress: Progress) -> TimedBlock:
        block = super().time(batch_size, block_seconds=block_seconds, seconds=seconds, progress=progress)
        steps = tuple(each * (1 + self.noise * self.rng.uniform(-1, 1)) for each in block.step_seconds)
        return replace(block, step_seconds=steps, wall_seconds=max(sum(steps), block_seconds))  # or rounds never end


def document_of(worker: FakeWorker, *, earlier: EarlierAttempt | None = None, **settings: Any) -> dict[str, Any]:
    """The document of a run with this worker, as it is read from a file. Its steps did not take their seconds."""
    spec = RunSpec(**{"model": "bert-tiny", "memory_limit_bytes": LIMIT_BYTES, "current_batch_size": 4, **settings})
    document = json.loads(json.dumps(measure(spec, worker=worker, earlier=earlier, estimates=False).to_dict()))
    document["timings"]["total_seconds"] += 1_000.0
    return dict(document)
