"""Runs the rounds of one race as `race.rule` decides them, whatever trains in it, and notes what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..errors import EngineError, TimeIsUp, WorkloadFailed
from ..machine.execution import Execution
from .answer import verdict_of
from .field import TODAY, Entry, Field, RacedRound, RaceVerdict, Timed
from .rule import decide
from .speed.rounds import NextRound


@dataclass(kw_only=True)
class Course:
    """One race in progress, of what `racing` holds. It ends when the run's clock shows `until_seconds`.

    `begin` orders a round, `time` times an entry, `say` writes the log. Before each round `admit` returns why an entry
    does not race. Whoever raises one of `failures` drops out, except today's training.
    """

    racing: Field
    execution: Execution
    until_seconds: float
    label: Callable[[Entry], str]
    begin: Callable[[NextRound[Entry]], Sequence[Entry]]
    time: Callable[[NextRound[Entry], Entry], Timed]
    say: Callable[[NextRound[Entry], Sequence[Timed]], str]
    admit: Callable[[Entry], str | None] = lambda _: None
    failures: type[Exception] = EngineError
    failed: str = " does not race: "
    today_failed: str = "today's training failed: "
    rounds: list[RacedRound] = field(default_factory=list)
    reasons: dict[Entry, str] = field(default_factory=dict)
    is_time_up: bool = False

    def raced(self) -> RaceVerdict:
        try:
            while isinstance(step := decide(self._in_time(), self.rounds), NextRound):
                self.rounds.append(self._round(step))
        except TimeIsUp:
            self.is_time_up = True
            return verdict_of(self.racing, self.rounds)
        return step

    def _in_time(self) -> Field:
        """Return the field with the time that is left: what happens between rounds takes some of it too."""
        left = self.until_seconds - self.execution.seconds
        return replace(self.racing, most_seconds=sum(r.seconds for r in self.rounds) + left)

    def _round(self, step: NextRound[Entry]) -> RacedRound:
        for entry in step.entries:
            self.execution.check_deadline()
            if (reason := self.admit(entry)) is not None:
                self._note(entry, reason)
                return RacedRound(step.stage, step.generation, (), 0.0, entry)
        began, timed, failed = self.execution.seconds, list[Timed](), None
        for entry in self.begin(step):
            try:
                timed.append(self.time(step, entry))
            except self.failures as error:
                failed = entry
                self._note(entry, str(error))
                break
        if failed is None:
            self.execution.log(self.say(step, timed))
        return RacedRound(step.stage, step.generation, tuple(timed), self.execution.seconds - began, failed)

    def _note(self, entry: Entry, reason: str) -> None:
        """Note why an entry drops out. Raises WorkloadFailed for today's training."""
        if entry == TODAY:
            raise WorkloadFailed(f"{self.today_failed}{reason}")
        self.reasons[entry] = reason
        self.execution.log(f"{self.label(entry)}{self.failed}{reason}", "warning")
