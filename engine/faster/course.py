"""Runs the rounds of one race as `race.rule` decides them, and notes what fails."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..errors import EngineError, TimeIsUp, WorkloadFailed
from ..execution import Execution
from ..race.field import TODAY, Entry, Field, NextRound, RacedRound, RaceVerdict, Timed
from ..race.rule import decide
from ..results.result import Outcome
from ..speed.comparison import TimedBlock


@dataclass
class Course:
    """One race in progress, of what `racing` holds.

    `admit` returns why an entry does not race; it is called before each of its blocks. The race ends when the run's
    clock shows `until_seconds`.
    """

    racing: Field
    execution: Execution
    label: Callable[[Entry], str]
    run_block: Callable[[Entry], TimedBlock]
    admit: Callable[[Entry], str | None]
    until_seconds: float
    rounds: list[RacedRound] = field(default_factory=list)
    blocks: list[tuple[Entry, TimedBlock]] = field(default_factory=list)
    reasons: dict[Entry, str] = field(default_factory=dict)
    rng: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - the order of blocks

    def raced(self) -> RaceVerdict:
        try:
            while isinstance(step := decide(self._in_time(), self.rounds), NextRound):
                self.rounds.append(self._round(step))
        except TimeIsUp:
            self.racing = replace(self.racing, most_seconds=0.0)
            step = decide(self.racing, self.rounds)
        assert isinstance(step, RaceVerdict)
        return step

    def _in_time(self) -> Field:
        """Return the field with the time that is left: what happens between rounds takes some of it too."""
        left = self.until_seconds - self.execution.seconds
        self.racing = replace(self.racing, most_seconds=sum(r.seconds for r in self.rounds) + left)
        return self.racing

    def _round(self, step: NextRound) -> RacedRound:
        for entry in step.entries:
            self.execution.check_deadline()
            if (reason := self.admit(entry)) is not None:
                return self._without(entry, step, reason)
        began, timed = self.execution.seconds, list[Timed]()
        for entry in self.rng.sample(step.entries, len(step.entries)):
            try:
                block = self.run_block(entry)
            except EngineError as error:
                return self._without(entry, step, str(error))
            if block.outcome is not Outcome.FITS:
                return self._without(entry, step, f"{block.error_type}: {block.error_message}")
            self.blocks.append((entry, block))
            timed.append(Timed(entry, block.samples_per_second, block.conditions.get("others_cores")))
        racing = ", ".join(self.label(entry) for entry in step.entries)
        self.execution.log(f"round {len(self.rounds) + 1}, {step.stage}: {racing}")
        return RacedRound(step.stage, step.generation, tuple(timed), self.execution.seconds - began)

    def _without(self, entry: Entry, step: NextRound, reason: str) -> RacedRound:
        if entry == TODAY:
            raise WorkloadFailed(f"today's training failed: {reason}")
        self.reasons[entry] = reason
        self.execution.log(f"{self.label(entry)} does not race: {reason}", "warning")
        return RacedRound(step.stage, step.generation, (), 0.0, entry)
