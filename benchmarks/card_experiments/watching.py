"""What is done while a part runs: read the driver's counters again and again, or take memory as somebody else would."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import median
from typing import Any

import pynvml

from benchmarks.card_experiments.answers import ROOT
from engine.machine import nvml

READ_SECONDS = 0.2


class Watcher:
    """Watches nothing."""

    def notice(self, event: dict[str, Any]) -> None:
        """Hear an event of the engine, as it is said."""

    def seen(self) -> dict[str, Any]:
        return {}


class _Reader(Watcher):
    """Reads something of the card all the time, in a thread; what is None is left out."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read
        self.readings: list[Any] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Any:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._is_over.wait(READ_SECONDS):
            if (reading := self.read()) is not None:
                self.readings.append(reading)


class Clocks(_Reader):
    """Clocks, power, temperature and reasons for throttling."""

    def __init__(self, uuid: str | None) -> None:
        super().__init__(lambda: nvml.readings(pynvml, uuid))

    def seen(self) -> dict[str, Any]:
        return {"clocks_while_running": summary_of_clocks(self.readings)}


class SoakMemory(_Reader):
    """The memory that the driver counts, for each process and for the whole card, while the engine's soak runs."""

    def __init__(self, uuid: str | None) -> None:
        super().__init__(self._read)
        self.uuid = uuid
        self.is_soaking = False

    def notice(self, event: dict[str, Any]) -> None:
        if event["event"] == "probe_started":
            self.is_soaking = event["purpose"] == "soak"
        elif event["event"] == "probe":
            self.is_soaking = False

    def _read(self) -> dict[str, Any] | None:
        """What the driver says now; None unless the soak runs before and after it said so."""
        facts = nvml.driver_facts(pynvml, self.uuid) if self.is_soaking else None
        return facts if self.is_soaking else None

    def seen(self) -> dict[str, Any]:
        return soak_memory(self.readings)


class Tenant(Watcher):
    """Somebody who takes memory when the run's first probe begins, and stays."""

    def __init__(self, device: str, size_bytes: int) -> None:
        command = [sys.executable, "-m", "benchmarks.card_experiments.tenant", device, str(size_bytes)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._has_been_told = False
        self._answer: dict[str, Any] = {}

    def __enter__(self) -> Tenant:
        assert self._process.stdout is not None
        self._process.stdout.readline()  # everything is imported; it holds nothing yet
        return self

    def notice(self, event: dict[str, Any]) -> None:
        if event["event"] == "probe_started" and not self._has_been_told:
            assert self._process.stdin is not None
            self._has_been_told = True
            with suppress(BrokenPipeError):  # it is gone; then it took nothing, which is seen
                self._process.stdin.write("take\n")
                self._process.stdin.flush()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        output = self._process.communicate()[0]
        self._answer = json.loads(output) if output.strip() else {}

    def seen(self) -> dict[str, Any]:
        return {"tenant": self._answer}


def soak_memory(readings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """PURE: what was counted last; for processes None where the driver hides them, as in containers.

    Not the most: an allocator that flushes its cache in the middle holds less at the end, where the engine counts, too.
    """
    listed = [[process["used_bytes"] for process in facts.get("foreign_processes", ())] for facts in readings]
    of_processes = [sum(held) for held in listed if held and None not in held]
    of_card = [facts["foreign_used_bytes"] for facts in readings if facts.get("foreign_used_bytes") is not None]
    return {
        "process_bytes_in_soak": of_processes[-1] if of_processes else None,
        "card_bytes_in_soak": of_card[-1] if of_card else None,
        "readings_in_soak": len(readings),
    }


def summary_of_clocks(readings: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """PURE: least, median and most of each figure, and how often each reason for throttling was there."""
    if not readings:
        return None

    def three(name: str) -> list[float] | None:
        values = [reading[name] for reading in readings if reading[name] is not None]
        return [min(values), median(values), max(values)] if values else None

    reasons = Counter(reason for reading in readings for reason in reading["throttle_reasons"] or ())
    figures = ("sm_clock_mhz", "sm_clock_highest_mhz", "power_watts", "temperature_celsius", "utilization_fraction")
    return {
        "readings": len(readings),
        **{name: three(name) for name in figures},
        "throttle_reasons": {name: count / len(readings) for name, count in sorted(reasons.items())},
    }
