"""A stand-in engine that misbehaves as its run was told to: `python -m tests.faults.engine --spec ...`.

`FAKE_ENGINE_DIR/modes/<run>` names what each start of that run does, one word a line; a last word with a `*` goes
on for ever, and where no word is left the engine measures in order. What it measures depends on the spec alone, so
results can be compared. While it runs it holds a lock on `FAKE_ENGINE_DIR/cards/<card>`, as a process does that
has a card's memory: whoever finds that taken writes it down in `FAKE_ENGINE_DIR/overlaps`.
"""

import fcntl
import json
import os
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path

from engine.facts.result import Outcome, Probe, RunResult
from engine.facts.result_file import write_result
from engine.search.resume import EarlierAttempt
from engine.settings.spec import RunSpec
from tests.fake_engine import (
    FACTS,
    flood,
    hang,
    killed,
    probe,
    raise_error,
    result,
    say,
    terminated,
    worker_died,
)

FOLDER = Path(os.environ.get("FAKE_ENGINE_DIR", "."))
BATCH_SIZES = (4, 8, 16, 32)
REFUSED = 33
ENVIRONMENT = {"torch": "0.0"}


class Engine:
    """One start of one run."""

    def __init__(self, spec: RunSpec, result_file: Path, told: str) -> None:
        self.spec, self.result_file = spec, result_file
        self.run = result_file.parent.parent.name
        self.earlier = EarlierAttempt.from_dict(json.loads(told)).carried() if told else []
        self.card_name = os.environ.get("CUDA_VISIBLE_DEVICES") or spec.device
        self.probe_seconds = float(os.environ.get("FAKE_ENGINE_PROBE_SECONDS", "0.02"))

    def take_card(self) -> None:
        """The descriptors stay open until this process, and every child it forks, is dead."""
        for name in self.card_name.split(","):
            card = os.open(FOLDER / "cards" / name, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(card, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note("overlaps", f"run {self.run} found {name} taken")
                sys.exit(9)

    def measure(self) -> RunResult:
        say("device", device=FACTS.to_dict(), environment=ENVIRONMENT)
        say("phase", phase="searching")
        done = {one.batch_size: one for one in self.earlier}
        for one in done.values():
            say("probe", probe=one.to_dict(), is_carried=True)
        for batch_size in (*BATCH_SIZES, REFUSED):
            if batch_size not in done:
                done[batch_size] = self.probe(batch_size)
        return result(self.spec, *(done[size] for size in (*BATCH_SIZES, REFUSED)))

    def probe(self, batch_size: int) -> Probe:
        say("probe_started", batch_size=batch_size, purpose="search")
        time.sleep(self.probe_seconds)
        one = probe(batch_size, Outcome.OUT_OF_MEMORY if batch_size == REFUSED else Outcome.FITS)
        say("probe", probe=one.to_dict())
        return one

    def end_well(self, measured: RunResult) -> None:
        try:
            write_result(self.result_file, 0, measured)
        except OSError as exc:
            say("log", level="warning", message=f"the result could not be kept: {exc}")
        say("result", result=measured.to_dict())


def ok(engine: Engine) -> None:
    engine.end_well(engine.measure())


def segfault(engine: Engine) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def abort(engine: Engine) -> None:
    os.abort()


def ended_from_outside(engine: Engine) -> None:
    """As by somebody who sends SIGTERM to every process of the machine, before its worker knows."""
    os.kill(os.getpid(), signal.SIGTERM)


def cuda_oom(engine: Engine) -> None:
    raise_error("out_of_memory", "CUDA out of memory outside the search")


def no_result(engine: Engine) -> None:
    engine.measure()


def garbage(engine: Engine) -> None:
    for line in ("not json", "[1]", '{"event": "probe", "probe": {"batch_size": -1}}', "x" * 5_000_000):
        sys.stdout.write(line + "\n")
    sys.stdout.buffer.write(b"\xff\xfe\x00\n")
    ok(engine)


def flooding(engine: Engine) -> None:
    flood(engine.spec)


def grandchild(engine: Engine) -> None:
    """Leaves a process in a session of its own, which keeps the device's lock and the card."""
    leave_grandchild()
    ok(engine)


def grandchild_then_killed_supervisor(engine: Engine) -> None:
    leave_grandchild()
    kill_supervisor(engine)


def kill_supervisor(engine: Engine) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def finished_but_unheard(engine: Engine) -> None:
    """The result is on the disk; whoever should hear of it is killed first."""
    write_result(engine.result_file, 0, engine.measure())
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def wrongly_typed(engine: Engine) -> None:
    say("result", result=wrong_types(engine.measure()))


def full_disk(engine: Engine) -> None:
    """Every byte of the result file is refused."""
    Path(f"{engine.result_file}.partial").symlink_to("/dev/full")
    ok(engine)


def daemon(engine: Engine) -> None:
    """Leaves a process that has a session of its own and none of our descriptors, not even the card's lock."""
    leave_daemon()
    ok(engine)


def daemon_then_killed_supervisor(engine: Engine) -> None:
    leave_daemon()
    kill_supervisor(engine)


def leave_daemon() -> None:
    if (between := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            note("grandchildren", str(os.getpid()))
            os.closerange(0, 4_096)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        os._exit(0)
    os.waitpid(between, 0)


def leave_grandchild() -> None:
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        note("grandchildren", str(os.getpid()))
        os.close(1)
        os.close(2)
        time.sleep(600)
        os._exit(0)


def wrong_types(measured: RunResult) -> dict[str, object]:
    told = measured.to_dict()
    told["device"]["capacity_bytes"] = "much"
    return told


def note(file: str, line: str) -> None:
    with (FOLDER / file).open("a") as notes:
        notes.write(line + "\n")


MODES = {
    mode.__name__: mode
    for mode in (
        ok, segfault, abort, killed, terminated, worker_died, ended_from_outside, cuda_oom, no_result, garbage,
        flooding, hang, grandchild, daemon, daemon_then_killed_supervisor,
        grandchild_then_killed_supervisor, kill_supervisor, finished_but_unheard,
        wrongly_typed, full_disk,
    )
}  # fmt: skip


def mode_of(run: str) -> str:
    """This start's word; each start is counted in a file, so it also tells how often the run was started."""
    note(f"starts/{run}", str(os.getpid()))
    start = len((FOLDER / "starts" / run).read_text().splitlines())
    file = FOLDER / "modes" / run
    words = file.read_text().split() if file.exists() else []
    if start <= len(words):
        return words[start - 1].rstrip("*")
    return words[-1].rstrip("*") if words and words[-1].endswith("*") else "ok"


def main(arguments: Iterable[str]) -> None:
    parser = ArgumentParser()
    parser.add_argument("--spec", type=lambda text: RunSpec.from_dict(json.loads(text)))
    parser.add_argument("--events", action="store_true")
    parser.add_argument("--result-file", type=Path)
    parser.add_argument("--resume")
    options = parser.parse_args(list(arguments))
    engine = Engine(options.spec, options.result_file, sys.stdin.read() if options.resume else "")
    say("started", schema=1, spec=options.spec.to_dict())
    engine.take_card()
    MODES[mode_of(engine.run)](engine)


if __name__ == "__main__":
    main(sys.argv[1:])
