"""Counts the parameters of a config's model, in a child process with limits of time and memory."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import resolve_name
from typing import Any

from ...errors import EngineError, SpecError, WorkerFailed
from ...estimate.tracing.hidden_devices import HIDDEN
from ...program import IMPORTED_FROM
from ...settings.spec import RunSpec
from ...settings.workload_settings import PARAMETERS_MAX
from ...text.units import GIB

SECONDS_MAX, MEMORY_BYTES_MAX = 120.0, 8 * GIB
"""Time limit of the child. Imports take up to half of it on a busy machine, the largest catalogue models seconds."""
COMMAND = (sys.executable, "-m", resolve_name("...measurement.count_parameters", __package__))
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def counted(spec: RunSpec, say: Callable[[str], None] = lambda _: None, seconds_max: float = SECONDS_MAX) -> RunSpec:
    """Return the spec with its config's parameters counted. Raises SpecError if it cannot be built within limits."""
    if spec.config is None:
        return spec
    uncounted = replace(spec, config_parameters=None)
    say(f"building {uncounted.workload.name} on the meta device")
    number = _answer(uncounted, seconds_max)
    if number > PARAMETERS_MAX:
        raise SpecError("config", f"describes {number:,} parameters; at most {PARAMETERS_MAX:,} are allowed")
    if number < 1:
        raise SpecError("config", "describes a model without parameters")
    known = replace(spec, config_parameters=number)  # refuses a memory limit below the weights
    say(f"{known.workload.name}: {number:,} parameters")
    return known


def _answer(spec: RunSpec, seconds_max: float) -> int:
    try:
        done = subprocess.run(
            COMMAND,
            input=json.dumps(spec.to_dict()).encode(),
            capture_output=True,
            timeout=seconds_max,
            check=False,
            env={**os.environ, **HIDDEN, **_OFFLINE},
            cwd=IMPORTED_FROM,
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired as exc:
        raise SpecError("config", f"its model was not built within {seconds_max:.0f} s: it is too large") from exc
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as exc:
        if done.returncode < 0 or b"MemoryError" in done.stderr or b"can't allocate memory" in done.stderr:
            most = MEMORY_BYTES_MAX // GIB
            raise SpecError("config", f"its model needs more than {most} GiB of memory to be described") from exc
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise WorkerFailed(f"the process that counts parameters ended with {done.returncode}: {''.join(last)}") from exc
    if "error" in answer:
        raise EngineError.from_dict(answer["error"])
    return int(answer["parameters"])


def _limit() -> None:
    """Limit the child's data segment, where the system can: what libraries map does not count."""
    try:
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError, AttributeError):
        return  # not Linux: the time limit still applies
