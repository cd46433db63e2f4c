"""`python manage.py analyze bert --device cpu --memory-limit 2GiB`: one stored run, in the foreground."""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import Field, fields
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.database import refuse_unmigrated
from analysis.models import Device, Run, State
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from analysis.runs.services import LogLine
from analysis.workers.device_discovery import accelerators_or_cpu, device_of_this_host, devices_find, devices_register
from analysis.workers.device_lock import device_lock
from analysis.workers.recovery import device_recover
from analysis.workers.supervisor import supervise
from analysis.workers.tasks import rewake
from engine.errors import DeviceBusy, EngineError
from engine.settings.catalog import workload_ids
from engine.settings.spec import SETTINGS, VALUE_TYPES, RunSpec
from engine.settings.spec_checks import is_of_bytes

_INTERRUPTED_EXIT_STATUS = 130


class Command(BaseCommand):
    """Runs with the same claim, supervision and storage as in the background; exits with the engine's status."""

    help = "Run one analysis in the foreground and store its result."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", help=f"one of {', '.join(workload_ids())}")
        for field in fields(RunSpec):
            if field.name != "model" and field.name in SETTINGS:
                _add_option(parser, field)

    def handle(self, *args: Any, **options: Any) -> None:
        given = {name: options[name] for name in SETTINGS if options[name] is not None}
        try:
            spec = RunSpec.from_dict(given)
            refuse_unmigrated()
            if spec.device == "auto":
                device = devices_register(accelerators_or_cpu(devices_find()))[0]
            else:
                name = f"{spec.device}:0" if spec.device in ("cuda", "xpu", "mps") else spec.device
                device = device_of_this_host(name)
            with device_lock(device) as descriptor:
                status = self._run(spec, device, descriptor)
        except EngineError as exc:
            raise CommandError(str(exc), returncode=exc.exit_status) from exc
        rewake(device)
        sys.exit(status)

    def _run(self, spec: RunSpec, device: Device, descriptor: int) -> int:
        device_recover(device)
        created = services.run_create(spec=spec, place=Placement(device=device))
        with stop_signals() as stops:
            run, status = self._attempt(created.pk, device, descriptor, stops)
            while run.state == State.QUEUED and not stops:  # back in the queue: another attempt may succeed
                run, status = self._attempt(created.pk, device, descriptor, stops)
        if stops:
            services.runs_cancel(run_ids=[run.pk])
            run.refresh_from_db()
        self.stdout.write(f"run {run.pk}: {_summary(run)}")
        if stops:
            return _INTERRUPTED_EXIT_STATUS
        return 1 if status is None or status < 0 else status

    def _attempt(self, run_id: int, device: Device, descriptor: int, stops: list[int]) -> tuple[Run, int | None]:
        run = services.run_claim(device=device, owner=f"{device.host}:{os.getpid()}", run_id=run_id)
        if run is None:
            raise DeviceBusy(f"run {run_id} cannot start: {device} is drained, in maintenance or in use")
        status = supervise(run, keep_open=[descriptor], should_stop=lambda: bool(stops), on_line=self._show)
        run.refresh_from_db()
        return run, status

    def _show(self, line: LogLine) -> None:
        self.stdout.write(line.message)
        self.stdout.flush()


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collect SIGTERM and Ctrl-C instead of ending the process: the engine must be ended first."""
    noted: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda number, frame: noted.append(number)) for number in numbers]
    try:
        yield noted
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _add_option(parser: ArgumentParser, field: Field[Any]) -> None:
    """Add the option of a field of the spec. The spec itself validates the value."""
    name = "memory-limit" if field.name == "memory_limit_bytes" else field.name.replace("_", "-")
    default = "chosen by the model or the engine" if field.default is None else field.default
    if VALUE_TYPES[field.name] is bool:
        parser.add_argument(f"--{name}", dest=field.name, action=BooleanOptionalAction, default=None)
        return
    kind = str if is_of_bytes(field.name) else VALUE_TYPES[field.name]
    parser.add_argument(f"--{name}", dest=field.name, type=kind, default=None, help=f"default: {default}")


def _summary(run: Run) -> str:
    if run.largest_batch_size:
        kind = "certified" if run.certified else run.boundary_reason.replace("_", " ")
        recommended = run.recommended_batch_size or "none"
        return f"largest batch size {run.largest_batch_size} ({kind}), recommended {recommended}"
    return run.error_message or run.boundary_reason.replace("_", " ") or run.state
