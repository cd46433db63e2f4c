"""A stand-in for `python -m engine`, run as a real script: it speaks the protocol, and misbehaves on request.

python -m tests.fake_engine MODE --spec '{...}' --events
python -m tests.fake_engine MODE devices --json
python -m tests.fake_engine MODE estimate --spec '{...}' --events
python -m tests.fake_engine MODE validate --spec '{...}' --events
python -m tests.fake_engine MODE calibrate cuda:0 --json
"""

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.estimate.calibration import Calibration, apply
from engine.estimate.gpus import Gpu, gpus
from engine.estimate.spec import EstimateSpec, read_training
from engine.facts.not_compared import NotCompared
from engine.facts.result import (
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
from engine.questions.validation.spec import ValidationSpec
from engine.questions.validation.verdict import (
    StepFigures,
    ValidationResult,
    check_of_gradients,
    check_of_memory_ratio,
)
from engine.settings.spec import RunSpec
from engine.text.units import GIB

FAKE_ENGINE = (sys.executable, "-m", "tests.fake_engine")
"""The command in place of `python -m engine`; a mode follows it."""
_started_at = time.monotonic()
FACTS = DeviceFacts("cpu", "cpu", "Fake CPU", 8 * GIB, limit_bytes=GIB)
STACK = {"torch": "0.0", "torchvision": "0.1", "transformers": "0.2", "cuda": None}


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


def with_stack(spec: RunSpec) -> None:
    """A sweep that says first what it runs on and with."""
    say("device", device=FACTS.to_dict(), environment=STACK)
    sweep(spec)


def out_of_memory_at_1(spec: RunSpec) -> None:
    refused = probe(1, Outcome.OUT_OF_MEMORY)
    say("probe", probe=refused.to_dict())
    say("result", result=result(spec, refused).to_dict())
    sys.exit(3)


def error(spec: RunSpec) -> None:
    raise_error("workload_failed", "the loss is not a number")


def raise_error(code: str, message: str) -> None:
    say("error", error={"code": code, "field": None, "message": message, "exit_status": 1})
    sys.exit(1)


def crash(spec: RunSpec) -> None:
    sys.stderr.write("about to fall\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def killed(spec: RunSpec) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def terminated(spec: RunSpec) -> None:
    """As the engine ends that was sent SIGTERM."""
    sys.exit(128 + signal.SIGTERM)


def cut_short(spec: RunSpec) -> None:
    probes = probe(4), probe(5, Outcome.OUT_OF_MEMORY)
    say("result", result=result(spec, *probes).to_dict() | {"speed": {"why": NotCompared.STOPPED}})
    terminated(spec)


def worker_died(spec: RunSpec) -> None:
    """As the engine ends whose process with torch in it was killed."""
    raise_error("engine_worker_died", "the worker process was ended by SIGKILL")


def garbage(spec: RunSpec) -> None:
    for line in ("not json", "[1, 2]", '{"event": "unheard-of"}', '{"event": "probe", "probe": {}}', "x" * 5_000_000):
        sys.stdout.write(line + "\n")
    sys.stdout.buffer.write(b"\xff\xfe\x00\n")
    sweep(spec)


def bad_result(spec: RunSpec) -> None:
    say("result", result={"schema": 1})


def long_result(spec: RunSpec) -> None:
    """Every part of it is right, but it is too long a line."""
    measured = result(spec, probe(4), probe(5, Outcome.OUT_OF_MEMORY)).to_dict()
    say("result", result={**measured, "environment": {"note": "x" * 2_000_000}})


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


def estimate_of(spec: RunSpec, gpu: Gpu) -> dict[str, Any]:
    """Round in figures: a sample takes 1/100 of the card, and ten are kept back to be safe."""

    def at(batch_size: int) -> dict[str, Any]:
        size = gpu.total_bytes // 100 * batch_size
        kinds = {f"{kind}_bytes": size // 10 * share for kind, share in KIND_SHARES.items()}
        return {
            "batch_size": batch_size,
            "fits": batch_size <= 99,
            "peak_allocated_bytes": size,
            "peak_reserved_bytes": size,
            "device_used_bytes": size + gpu.context_bytes,
            "phase": "backward",
            "operator": "aten::mm",
            "by_kind": kinds,
        }

    return {
        "schema": 1,
        "kind": "estimate",
        "spec": spec.to_dict(),
        "gpu": {name: getattr(gpu, name) for name in ("id", "name", "total_bytes", "context_bytes", "calibrated")},
        "limit_bytes": gpu.total_bytes - gpu.context_bytes,
        "largest_batch_size": 99,
        "safe_batch_size": 89,
        "margin_fraction": 0.08,
        "at": [at(size) for size in sorted({spec.current_batch_size, 89, 99, 100})],
        "limits": "memory",
        "method": "fake_cuda",
        "known_error": {"typical_fraction": 0.013, "worst_fraction": 0.079, "runs": 10, "source": "10 public runs"},
        "seconds": 4.2,
        "versions": {"torch": "0.0", "transformers": None},
        "expandable_segments": False,
    }


KIND_SHARES = {
    "parameters": 1,
    "buffers": 0,
    "gradients": 1,
    "optimizer_state": 2,
    "activations": 5,
    "temporaries": 1,
    "workspaces": 0,
}


def calibration_of(uuid: str) -> Calibration:
    """Return the facts of an A10; the card that could be seen stands where the driver's version does."""
    card = gpus()["a10"]
    return Calibration(
        device_name=card.torch_names[0],
        gpu_id=card.id,
        total_bytes=card.total_bytes,
        context_bytes=GIB // 2,
        cublas_workspace_bytes=0,
        autograd_workspace_bytes=0,
        cublaslt_workspace_bytes=None,
        torch="0.0",
        driver=uuid,
        measured_at="2026-11-21T00:00:00+00:00",
    )


def estimate(spec: RunSpec, gpu: str, calibrations: Sequence[str]) -> None:
    say("phase", phase="tracing")
    cards = list(gpus().values()) if gpu == "all" else [gpus()[gpu]]
    calibrated = {found.gpu_id: found for found in (Calibration.read(Path(path)) for path in calibrations)}
    estimates = [
        estimate_of(spec, apply(card, calibrated[card.id]) if card.id in calibrated else card) for card in cards
    ]
    if gpu == "all":
        say("log", level="warning", message="left out: precision: too much for a Voodoo 2")
    for one in estimates:
        say("estimate", estimate=one)
    say("result", result={"estimates": estimates})


def validate(spec: ValidationSpec) -> None:
    say("phase", phase="memory")
    gradients = check_of_gradients(spec.precision, 0.0068, spec.tolerance)
    checks = (check_of_memory_ratio(GIB, 5 * GIB // 2), gradients)
    steps = {"forward": StepFigures(GIB, (0.5, 0.6, 0.7)), "forward_and_backward": StepFigures(5 * GIB // 2, (1.5,))}
    say("result", result=ValidationResult(spec, FACTS, checks, steps, STACK, 12.0).to_dict())


MODES = {
    "ok": sweep,
    **{f.__name__: f for f in (out_of_memory_at_1, error, crash, killed, garbage, bad_result, silent_exit, hang)},
    **{f.__name__: f for f in (terminated, cut_short, worker_died, long_result, wait, flood, with_stack)},
}


def main(arguments: list[str]) -> None:
    mode, *rest = arguments
    if rest[0] == "devices":
        sys.stdout.write(json.dumps([FACTS.to_dict()]))
        return
    if rest[0] == "calibrate":
        sys.stdout.write(json.dumps(calibration_of(os.environ["CUDA_VISIBLE_DEVICES"]).to_dict()))
        return
    if rest[0] == "estimate" and mode == "ok":
        requested = EstimateSpec.from_dict(json.loads(rest[2]))
        estimate(requested.training, requested.gpu, calibrations=rest[5::2])
        return
    if rest[0] == "validate":
        spec = ValidationSpec.from_dict(json.loads(rest[2]))
        say("started", schema=1, spec=spec.to_dict())
        validate(spec) if mode == "ok" else MODES[mode](spec.run_spec())
        return
    rest = rest[1:] if rest[0] == "estimate" else rest
    say("started", schema=1, spec=json.loads(rest[1]))
    MODES[mode](read_training(json.loads(rest[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
