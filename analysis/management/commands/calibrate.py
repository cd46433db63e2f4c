"""`python manage.py calibrate`: measures the fixed memory costs of this host's cards, each in a child process."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.database import refuse_unmigrated
from analysis.models import Device
from analysis.runs import services
from analysis.workers.device_discovery import (
    calibration_measure,
    device_of_this_host,
    devices_find,
    devices_register,
)
from analysis.workers.device_lock import device_lock
from engine.errors import DeviceBusy, EngineError
from engine.text.units import format_bytes

_LOCK_SECONDS = 5.0


class Command(BaseCommand):
    help = "Measure the memory of a GPU's context and libraries, for more accurate estimates of such GPUs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--device", help="UUID of the GPU, or cuda:0, ...; default: every NVIDIA or AMD GPU of this host"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unmigrated()
        try:
            if options["device"] is None:
                cards = [device for device in devices_register(devices_find()) if device.kind == "cuda"]
            else:
                cards = [device_of_this_host(options["device"])]
        except EngineError as exc:
            raise CommandError(str(exc), returncode=exc.exit_status) from exc
        if not cards:
            self.stdout.write("This host has no GPU: there is nothing to calibrate. A CPU has no context to measure.")
        for card in cards:
            if card.kind != "cuda":
                raise CommandError(f"{card} is not an NVIDIA or AMD GPU and cannot be calibrated")
            self._calibrate(card)

    def _calibrate(self, card: Device) -> None:
        try:
            with device_lock(card, wait_seconds=_LOCK_SECONDS) as descriptor:
                calibration = calibration_measure(card, [descriptor])
        except DeviceBusy as exc:
            raise CommandError(f"{exc}; calibrate it when its run is over") from exc
        except EngineError as exc:
            raise CommandError(f"{card}: {exc}", returncode=exc.exit_status) from exc
        services.calibration_set(device=card, calibration=calibration)
        context = format_bytes(calibration.context_bytes)
        use = (
            "estimates use it from now on"
            if calibration.gpu_id
            else "the catalogue does not have this GPU, so there are no estimates for it"
        )
        self.stdout.write(f"{card}: context {context}; {use}")
