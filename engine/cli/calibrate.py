"""`python -m engine calibrate [cuda:0] [--json]`: measure the constants of the card at hand (a GPU is needed)."""

from __future__ import annotations

import json
import sys

from ..errors import EngineError, SpecError
from ..estimate.calibration import Calibration
from ..machine.device_lock import held_for_command
from ..units import format_bytes


def main(arguments: list[str]) -> int:
    """Measure one card and print its constants; the exit status."""
    names = [argument for argument in arguments if argument != "--json"]
    try:
        if len(names) > 1 or any(name.startswith("-") for name in names):
            raise SpecError("calibrate", "takes a device (cuda:0) and --json, nothing else")
        from ..estimate import measure_calibration
        from ..measurement.device import facts_of  # imports torch

        name = names[0] if names else "cuda:0"
        with held_for_command(facts_of(name)):
            calibration = measure_calibration.measure(name)
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    sys.stdout.write(json.dumps(calibration.to_dict()) + "\n" if "--json" in arguments else _as_text(calibration))
    return 0


def _as_text(calibration: Calibration) -> str:
    rows = {
        "card": f"{calibration.device_name} ({calibration.gpu_id or 'not in the catalogue'})",
        "memory": f"{calibration.total_bytes} B ({format_bytes(calibration.total_bytes)})",
        "context": format_bytes(calibration.context_bytes),
        "cuBLAS workspace": f"{calibration.cublas_workspace_bytes} B forward, "
        f"{calibration.autograd_workspace_bytes} B backward",
        "torch, driver": f"{calibration.torch}, {calibration.driver or 'not known'}",
    }
    return "".join(f"{name:<17} {text}\n" for name, text in rows.items())
