"""`python -m engine calibrate [cuda:0] [--json]`: measure the constants of the GPU at hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

from ..estimate.calibration import Calibration
from ..machine.device_lock import held_for_command
from ..program import PROGRAM
from ..text.units import format_bytes
from .command import WHERE, Command, Text, argument
from .options import json_option, wait_option
from .printing.output import print_json
from .printing.terminal import say


def _calibrate(options: SimpleNamespace) -> int:
    from ..estimate import measure_calibration
    from ..measurement.device import facts_of  # imports torch

    name = options.device or "cuda:0"
    with held_for_command(facts_of(name), wait_seconds=math.inf if options.wait_for_device else 0.0):
        calibration = measure_calibration.measure(name)
    if options.json:
        print_json(calibration.to_dict())
    else:
        say(_as_text(calibration))
    return 0


def _as_text(calibration: Calibration) -> str:
    rows = {
        "GPU": f"{calibration.device_name} ({calibration.gpu_id or 'not in the catalogue'})",
        "memory": f"{calibration.total_bytes} B ({format_bytes(calibration.total_bytes)})",
        "context": format_bytes(calibration.context_bytes),
        "cuBLAS workspace": f"{calibration.cublas_workspace_bytes} B forward, "
        f"{calibration.autograd_workspace_bytes} B backward",
        "torch, driver": f"{calibration.torch}, {calibration.driver or 'not known'}",
    }
    return "\n".join(f"{name:<17} {text}" for name, text in rows.items())


COMMAND = Command(
    "calibrate",
    _calibrate,
    params=[
        argument("device", type=Text("id"), panel=WHERE, help="cuda:0, cuda:1, ... (default: cuda:0)"),
        wait_option(),
        json_option("Print the constants as JSON, for --calibration"),
    ],
    help=f"""Measure the constants of a GPU of this machine, for its estimates.

\b
{PROGRAM} calibrate cuda:0 --json > a100.json
{PROGRAM} estimate bert --gpu a100-80gb --calibration a100.json
""",
)
