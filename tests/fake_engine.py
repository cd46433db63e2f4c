"""A stand-in for `python -m engine`, run as a real script: it speaks the protocol, and misbehaves on request.

python -m tests.fake_engine MODE --spec '{...}' --events
python -m tests.fake_engine MODE devices --json
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from engine.result import (
    Boundary,
    DeviceFacts,
    Outcome,
    Point,
    Probe,
    Reason,
    RunResult,
    Savings,
    Waste,
)
from engine.spec import RunSpec
from engine.units import GIB

FAKE_ENGINE = (sys.executable, "-m", "tests.fake_engine")
"""The command in place of `python -m engine`; a mode follows it."""
_started_at = time.monotonic()
FACTS = DeviceFacts("cpu", "cpu", "Fake CPU", 8 * GIB, limit_bytes=GIB)


def say(event: str, **data: Any) -> None:
    line = {"event": event, "seconds": time.monotonic() - _started_at, **data}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def probe(batch_size: int, outcome: Outcome = Outcome.FITS) -> Probe:
    if outcome is not Outcome.FITS:
        return Probe(batch_size, outcome, error_type="BudgetExceeded", error_message="over the limit")
    return Probe(batch_size, outcome, steps=3, peak_allocated_bytes=GIB // 10 * batch_size, samples_per_second=9.0)


def result(spec: RunSpec, *probes: Probe) -> RunResult:
    fitting = [p for p in probes if p.fits]
    best = Point.of(fitting[-1], FACTS) if fitting else None
    refused = probes[-1].batch_size
    reason = Reason.OUT_OF_MEMORY if fitting else Reason.DOES_NOT_FIT
    return RunResult(
        spec=spec,
        device=FACTS,
        boundary=Boundary(best.batch_size if best else 0, True, refused, reason, "over the limit", 5),
        largest=best,
        fastest=best,
        recommended=best,
        current=Point.of(fitting[0], FACTS) if fitting else None,
        waste=Waste(GIB, None, None, None, None),
        speedup=1.5 if fitting else None,
        batch_size_ratio=2.0 if fitting else None,
        savings=Savings(0.6, 2.0, 100, 1.2, 0.4 if fitting else None, 40.0 if fitting else None),
        probes=probes,
        environment={},
    )


def sweep(spec: RunSpec) -> None:
    probes = (probe(4), probe(8), probe(9, Outcome.OUT_OF_MEMORY))
    say("phase", phase="searching")
    for one in probes:
        say("probe_started", batch_size=one.batch_size, purpose="search")
        say("probe", probe=one.to_dict())
    say("result", result=result(spec, *probes).to_dict())


def out_of_memory_at_1(spec: RunSpec) -> None:
    refused = probe(1, Outcome.OUT_OF_MEMORY)
    say("probe", probe=refused.to_dict())
    say("result", result=result(spec, refused).to_dict())
    sys.exit(3)


def error(spec: RunSpec) -> None:
    data = {"code": "workload_failed", "field": None, "message": "the loss is not a number", "exit_status": 1}
    say("error", error=data)
    sys.exit(1)


def crash(spec: RunSpec) -> None:
    sys.stderr.write("about to fall\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def killed(spec: RunSpec) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def garbage(spec: RunSpec) -> None:
    for line in ("not json", "[1, 2]", '{"event": "unheard-of"}', '{"event": "probe", "probe": {}}', "x" * 5_000_000):
        sys.stdout.write(line + "\n")
    sys.stdout.buffer.write(b"\xff\xfe\x00\n")
    sweep(spec)


def bad_result(spec: RunSpec) -> None:
    say("result", result={"schema": 1})


def silent_exit(spec: RunSpec) -> None:
    sys.exit(0)


def hang(spec: RunSpec) -> None:
    """Ignores SIGTERM, as C code that holds the interpreter does."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say("phase", phase="searching")
    time.sleep(600)


def wait(spec: RunSpec) -> None:
    """Works for a minute, with a child of its own, and ends when asked to."""
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    say("phase", phase="searching")
    time.sleep(60)


def flood(spec: RunSpec) -> None:
    line = json.dumps({"event": "log", "seconds": 0.0, "level": "info", "message": "again " * 20}) + "\n"
    for _ in range(200):
        sys.stdout.write(line * 1000)
    sweep(spec)


MODES = {
    "ok": sweep,
    **{f.__name__: f for f in (out_of_memory_at_1, error, crash, killed, garbage, bad_result, silent_exit, hang)},
    **{f.__name__: f for f in (wait, flood)},
}


def main(arguments: list[str]) -> None:
    mode, *rest = arguments
    if rest[0] == "devices":
        sys.stdout.write(json.dumps([FACTS.to_dict()]))
        return
    say("started", schema=1, spec=json.loads(rest[1]))
    MODES[mode](RunSpec.from_dict(json.loads(rest[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
