"""The first hour on a GPU: twelve experiments in order, then the classic models. Every answer is kept at once.

    python benchmarks/first_hour.py                    all of it, on cuda:0
    python benchmarks/first_hour.py --minutes 9        what fits; the same again goes on where this one stopped
    python benchmarks/first_hour.py --again 6 7        forget the answers of 6 and 7, and run them
    python benchmarks/first_hour.py --report           the answers so far, as one page of Markdown
    python benchmarks/first_hour.py --report docs/figures.md    the same, into the page, between its two marks

Answers are JSON lines, appended to benchmarks/results/first_hour.<card>.jsonl (or --output): number, name, commands,
what is expected of this card, what was seen, verdict and what it means, seconds, machine, clocks. The file is all the
state: where it is carried, the next call goes on. Experiments are run in parts, each a process of its own; with
--minutes none is begun that should take longer than is left; one that does take longer is ended, and is the first of
the next call. If it does not end within the whole of a call, that is its answer.

Nobody else may use the card. On a made-up card (STAND_IN_FOLDER is set) all is smaller, every line says
`"stand_in": true`, and nothing is written into benchmarks/results or docs.

Exit status: 0 all was answered and nothing differs, 1 something differs, 2 refused, 3 not finished (call it again),
4 no such card. Experiment 1 decides whether there is a point in going on: if it fails, nothing else is run.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pynvml

from benchmarks.card_experiments.answers import (
    PUBLISHED,
    ROOT,
    Answers,
    Refused,
    check_is_not_published,
    default_path,
    is_stand_in,
)
from benchmarks.card_experiments.experiments import BY_NUMBER, EXPERIMENTS
from benchmarks.card_experiments.judging import judge
from benchmarks.card_experiments.report import into_page, report
from benchmarks.card_experiments.running import run_part
from benchmarks.card_experiments.setting import (
    FULL,
    QUICK,
    CannotRun,
    Experiment,
    Judgement,
    Machine,
    Part,
    Seen,
    Setting,
    Verdict,
)
from engine.machine import nvml

DIFFERS, REFUSED, NOT_FINISHED, NO_CARD = 1, 2, 3, 4
_MARGIN_SECONDS = 10.0  # to end a part that takes too long, and to keep what it saw


class TimeIsUp(Exception):
    """The minutes of this call are over; the next call goes on."""


@dataclass
class FirstHour:
    """The experiments in progress, on one card, into one file."""

    device: str
    machine: Machine
    answers: Answers
    deadline: float
    is_quick: bool
    has_run_any: bool = False

    @property
    def setting(self) -> Setting:
        return Setting(self.device, self.machine, QUICK if self.is_quick else FULL, self.answers.seen())

    def answer(self, experiment: Experiment) -> str:
        """The verdict on an experiment, after running what parts of it are missing. Raises TimeIsUp."""
        known = self.answers.answers().get(experiment.number)
        if known is not None:
            return str(known["verdict"])
        try:
            parts = self._run_missing(experiment)
        except CannotRun as reason:
            return self._conclude(experiment, [], Judgement(Verdict.NOT_RUN, "", str(reason)))
        seen: dict[str, Seen] = {part.name: self.setting.earlier[experiment.number][part.name] for part in parts}
        return self._conclude(experiment, parts, judge(experiment, seen, self.setting))

    def _run_missing(self, experiment: Experiment) -> list[Part]:
        """Run the parts that were not run yet; all parts, once none is missing. What one saw may call for others."""
        while True:
            parts, done = experiment.parts(self.setting), self.answers.parts(experiment.number)
            missing = [part for part in parts if part.name not in done]
            if not missing:
                return parts
            self._run(experiment, missing[0])

    def _run(self, experiment: Experiment, part: Part) -> None:
        left = self.deadline - time.monotonic() - _MARGIN_SECONDS
        wanted = part.seconds * self.setting.scale.seconds_fraction
        if left < wanted and (self.has_run_any or left <= 0):
            raise TimeIsUp
        is_first, self.has_run_any = not self.has_run_any, True
        print(f"{experiment.number} {experiment.name}, {part.name}: {part.text}", flush=True)
        before, started = nvml.readings(pynvml, self.machine.uuid), time.monotonic()
        seen = run_part(part, self.setting, min(left, 24 * 3600))
        if seen.get("timed_out") and not is_first:
            raise TimeIsUp  # the next call begins with it, and gives it all its time
        self.answers.append(
            {
                "kind": "part",
                "number": experiment.number,
                "part": part.name,
                "command": part.text,
                "seen": seen,
                "seconds": round(time.monotonic() - started, 1),
                "clocks": {"before": before, "after": nvml.readings(pynvml, self.machine.uuid)},
                **self._about(),
            }
        )

    def _conclude(self, experiment: Experiment, parts: list[Part], judgement: Judgement) -> str:
        lines = self.answers.parts(experiment.number)
        self.answers.append(
            {
                "kind": "answer",
                "number": experiment.number,
                "name": experiment.name,
                "commands": [part.text for part in parts],
                "expected": experiment.expected(self.setting),
                "seen": judgement.seen,
                "verdict": judgement.verdict,
                "meaning": judgement.meaning,
                "seconds": round(sum(line["seconds"] for line in lines.values()), 1),
                "clocks": {name: line["clocks"] for name, line in lines.items()},
                **self._about(),
            }
        )
        print(f"   {judgement.verdict}: {judgement.seen} {judgement.meaning}".rstrip(), flush=True)
        return judgement.verdict

    def _about(self) -> dict[str, Any]:
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "stand_in": self.machine.is_stand_in,
            "scale": self.setting.scale.name,
            "machine": self.machine.to_dict(),
        }


def main() -> int:
    started = time.monotonic()
    signal.signal(signal.SIGTERM, _stop)  # what runs on the card is ended, too
    options = _options()
    try:
        if options.report is not None:
            return _report(options)
        machine = _machine(options.device)
        if machine is None:
            return NO_CARD
        answers = _answers(options, machine)
    except Refused as reason:
        sys.stderr.write(f"error: {reason}\n")
        return REFUSED
    for number in options.again:
        answers.append({"kind": "forgotten", "number": number, **_about_forgotten(answers, machine, options)})
    minutes = float("inf") if options.minutes is None else options.minutes
    is_quick = options.quick or machine.is_stand_in
    hour = FirstHour(options.device, machine, answers, started + 60 * minutes, is_quick)
    return _go_through(hour, options.only or [e.number for e in EXPERIMENTS])


def _stop(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _go_through(hour: FirstHour, numbers: list[int]) -> int:
    verdicts = []
    try:
        for number in sorted(numbers):
            verdicts.append(hour.answer(BY_NUMBER[number]))
            if number == 1 and _has_failed(hour.answers):
                sys.stderr.write("experiment 1 failed: mend that first, then call again with --again 1\n")
                return DIFFERS
    except TimeIsUp:
        print(f"the time is up: {hour.answers.path} holds what there is; the same command goes on")
        return NOT_FINISHED
    print(f"done: {hour.answers.path}; --report makes a page of it")
    return DIFFERS if Verdict.DIFFERS in verdicts else 0


def _has_failed(answers: Answers) -> bool:
    """Whether experiment 1 has no result at all."""
    return not answers.seen().get(1, {}).get("run", {}).get("result")


def _about_forgotten(answers: Answers, machine: Machine, options: argparse.Namespace) -> dict[str, Any]:
    return FirstHour(options.device, machine, answers, 0, options.quick or machine.is_stand_in)._about()


def _answers(options: argparse.Namespace, machine: Machine) -> Answers:
    path = options.output or default_path(machine)
    check_is_not_published(path, machine.is_stand_in)
    answers = Answers(path)
    answers.check(machine, (QUICK if options.quick or machine.is_stand_in else FULL).name)
    return answers


def _machine(device: str) -> Machine | None:
    command = [sys.executable, "-m", "benchmarks.card_experiments.machine", device]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr[-2000:])
        return None
    return Machine(**json.loads(done.stdout.splitlines()[-1]))


def _report(options: argparse.Namespace) -> int:
    paths = [options.output] if options.output else sorted(PUBLISHED[0].glob("first_hour.*.jsonl"))
    files = [Answers(path) for path in paths]
    text = report(files)
    if options.report == "-":
        print(text)
        return 0
    page = Path(options.report)
    of_stand_in = is_stand_in() or any(line["stand_in"] for answers in files for line in answers.lines)
    check_is_not_published(page, of_stand_in)
    page.write_text(into_page(page.read_text(), text))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda:0")
    add("--minutes", type=float, help="of this call, the last part included; without it: until all is done")
    add("--only", type=int, nargs="+", choices=sorted(BY_NUMBER), metavar="N", help="these experiments and no other")
    add("--again", type=int, nargs="+", choices=sorted(BY_NUMBER), default=[], metavar="N", help="run these once more")
    add("--quick", action="store_true", help="small models and few repetitions, as on the stand-in: to try the script")
    add("--output", type=Path, metavar="FILE", help="where answers are kept, and read from")
    add("--report", nargs="?", const="-", metavar="PAGE", help="print a page of the answers, or put it into a page")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
