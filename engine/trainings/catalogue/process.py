"""The worker process, the only one that loads torch. `handle.py` starts it and sends it JSON lines.

It checks in a fork that the device exists, imports everything its workload needs, uses no device itself, and waits.
Each `open` is served by a fork of it: a process that has run nothing yet, ready in milliseconds instead of the seconds
of imports. When that one is given up (after an out-of-memory, or for a clean start) the next `open` gets another. A
`trace` is served the same way: the fake tensors and all patches for them end with its process. Where forking is not
safe (macOS, XPU) it serves one `open` or `trace` itself and ends.

    in   {"do": "trace", "spec": {...}}                            -> tracing, then traced | error
         {"do": "open", "spec": {...}, "describe": true, "idle_beside_bytes": null} -> opened | error
         {"do": "probe", "batch_size": 16, "steps": 3, "with_kinds": true} -> answer | error
         {"do": "time", "batch_size": 16, "seconds": 0.4}                -> answer | error
         {"do": "losses", "batch_size": 16, "steps": 5}                  -> answer | error
         {"do": "explain", "batch_size": 17, "steps": 3}                 -> answer | error
    out  ready, tracing, traced, opened, progress, answer, error, and
         {"event": "ended", "status": ...} when a session's or a trace's process is gone
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from ...errors import DeviceUnavailable, EngineError, EstimateImpossible, WorkerDied, WorkloadFailed
from ...estimate.tracing.hidden_devices import HIDDEN
from ...facts.progress import Paced
from ...facts.result import DeviceFacts, Outcome, Probe
from ...machine.fork import ForkFailed, in_a_fork
from ...machine.parent import die_with_parent, prefer_as_oom_victim
from ...program import MODELS_NEED, not_installed
from ...settings.spec import RunSpec
from ...text.units import format_bytes

if TYPE_CHECKING:
    from ...measurement.device import Device

Requests = dict[str, Callable[..., Any]]
"""What carries out each request, by the value of "do"; it returns a dataclass, or None."""

SEED = 0
KILLED_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)
FACTS_SECONDS = 120  # without persistence mode a driver takes seconds for each card of the host


def main(model_id: str, device_name: str) -> None:
    """Serve sessions until standard input ends. Ends at once if there is no such device or model."""
    started = time.perf_counter()
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")  # the protocol's
    os.dup2(2, 1)  # what libraries print goes to standard error
    die_with_parent()
    prefer_as_oom_victim()
    if device_name == "cpu":
        os.environ.update(HIDDEN)  # autograd opens a context on each card it finds, where others may be measuring
    try:
        facts = _device_facts(device_name)  # first, so that a missing device is reported before the slow imports
        _preload(model_id)
    except EngineError as exc:
        _say(out, event="error", error=exc.to_dict())
        return
    except ModuleNotFoundError as exc:
        if exc.name not in MODELS_NEED:
            raise
        _say(out, event="error", error=WorkloadFailed(not_installed(exc.name)).to_dict())
        return
    _say(out, event="ready", import_seconds=time.perf_counter() - started, device=facts.to_dict())
    while line := sys.stdin.readline():
        if not _can_fork():
            _serve(json.loads(line), facts, out)
            return
        _serve_in_fork(json.loads(line), facts, out)


def _device_facts(name: str) -> DeviceFacts:
    """Read the device's facts in a process that then ends: reading starts the driver, and then nothing can fork."""

    def ask() -> dict[str, Any]:
        from ...measurement.device import facts_of

        return facts_of(name).to_dict()

    try:
        return DeviceFacts.from_dict(in_a_fork(ask, FACTS_SECONDS) if _can_fork() else ask())
    except ForkFailed as exc:
        if exc.status in KILLED_FROM_OUTSIDE:
            raise WorkerDied(f"the process that read the properties of {name} was killed: {exc}") from exc
        raise DeviceUnavailable(f"the properties of {name} cannot be read: {exc}") from exc


def _preload(model_id: str) -> None:
    from ...measurement.workloads import preload

    try:
        preload(model_id)
    except ImportError as exc:
        raise WorkloadFailed(f"cannot import {model_id}: {exc}") from exc


def _can_fork() -> bool:
    """Whether this is Linux without an XPU build, whose imports may open the driver, which does not survive a fork."""
    import torch

    return sys.platform.startswith("linux") and not torch._C._has_xpu


def _serve(first: dict[str, Any], facts: DeviceFacts, out: TextIO) -> None:
    if first["do"] == "trace":
        _trace(RunSpec.from_dict(first["spec"]), facts, out)
        return

    def report(stage: str, step: int) -> None:
        _say(out, event="progress", stage=stage, step=step)

    try:
        spec = RunSpec.from_dict(first["spec"])
        served, opened = _open(spec, describe=first["describe"], idle_beside_bytes=first["idle_beside_bytes"])
        _say(out, event="opened", pid=os.getpid(), **opened)
        while (line := sys.stdin.readline()) and (work := served.get((request := json.loads(line)).pop("do"))):
            found = work(**request, progress=Paced(report))
            _say(out, event="answer", answer=None if found is None else asdict(found))
    except EngineError as exc:
        _say(out, event="error", error=exc.to_dict())


def _serve_in_fork(first: dict[str, Any], facts: DeviceFacts, out: TextIO) -> None:
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        status = 1
        try:
            _serve(first, facts, out)
            status = 0
        except BaseException:  # noqa: BLE001 - the parent reports whatever ended the child
            traceback.print_exc()  # the process ends below, so nothing else would print it
        finally:
            out.flush()
            sys.stderr.flush()
            os._exit(status)  # no exit handlers: they belong to the process that was forked
    _, status = os.waitpid(pid, 0)
    _say(out, event="ended", status=os.waitstatus_to_exitcode(status))


def _trace(spec: RunSpec, facts: DeviceFacts, out: TextIO) -> None:
    """Trace what steps of `spec` allocate, by their device's rules; no card is visible, so none is disturbed."""
    from ...estimate.batch_model import BatchModel
    from ...estimate.prior import card_of
    from ...estimate.tracing.hidden_devices import devices_hidden
    from ...estimate.tracing.trace import memory_model

    _say(out, event="tracing", pid=os.getpid())
    try:
        with devices_hidden():
            model = memory_model(spec, card_of(facts))
        if not isinstance(model, BatchModel):
            raise EstimateImpossible("its memory is not linear in the batch size: each size must be traced")
    except EngineError as exc:
        _say(out, event="error", error=exc.to_dict())
    else:
        _say(out, event="traced", model=model.to_dict())


def _open(spec: RunSpec, *, describe: bool, idle_beside_bytes: int | None) -> tuple[Requests, dict[str, Any]]:
    import torch

    from ...measurement.attribution import attribute
    from ...measurement.environment import check_environment, environment
    from ...measurement.losses import train_losses
    from ...measurement.probe import Bench, BudgetExceeded, outcome_of, run_probe
    from ...measurement.step import apply_precision
    from ...measurement.timing import BlockTimer
    from ...measurement.workloads import build

    started = time.perf_counter()
    torch.manual_seed(SEED)
    apply_precision(spec.precision)
    device = _opened_device(spec, idle_beside_bytes)
    check_environment(spec, device.torch_device.type)
    facts = {"device": device.facts().to_dict(), **({"environment": environment(spec, device)} if describe else {})}
    try:
        if spec.weights_bytes > device.limit_bytes:  # building the model would fill the host's memory first
            raise BudgetExceeded(f"out of memory: the weights alone take {format_bytes(spec.weights_bytes)}")
        bench = Bench(spec, device, build(spec, device.torch_device))
    except EngineError:
        raise
    except Exception as exc:
        name, text = type(exc).__name__, str(exc)[:1_000]
        if outcome_of(exc, device) is not Outcome.OUT_OF_MEMORY:
            raise WorkloadFailed(f"{spec.model} cannot be built: {name}: {text}") from exc
        served: Requests = {"probe": partial(_model_does_not_fit, name, text, device), "explain": lambda **_: None}
    else:
        by_bench: Requests = {"probe": run_probe, "losses": train_losses, "explain": attribute}
        served = {"time": BlockTimer(bench).run, **{do: partial(work, bench) for do, work in by_bench.items()}}
    return served, {**facts, "model_seconds": time.perf_counter() - started}


def _opened_device(spec: RunSpec, idle_beside_bytes: int | None) -> Device:
    """Open the device. Raises DeviceUnavailable for an error of its driver."""
    from ...measurement.device import open_device

    try:
        return open_device(spec, idle_beside_bytes)
    except EngineError:
        raise
    except Exception as exc:
        reason = str(exc).partition("\n")[0][:1_000]
        raise DeviceUnavailable(f"{spec.device} cannot be opened: {type(exc).__name__}: {reason}") from exc


def _model_does_not_fit(error_type: str, text: str, device: Device, batch_size: int, **_: Any) -> Probe:
    from ...measurement.probe import memory_if_possible

    return Probe(
        batch_size,
        Outcome.OUT_OF_MEMORY,
        beside_bytes=memory_if_possible(device).beside_bytes,
        error_type=error_type,
        error_message=text,
        failed_phase="loading the model",
    )


def _say(out: TextIO, **message: Any) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
