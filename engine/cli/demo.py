"""`python -m engine demo`: what `tune` finds for a small training that comes with the package, on any CPU."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace

from ..describe.boundary import certificate
from ..errors import WorkloadFailed
from ..facts.result import RunResult
from ..program import PROGRAM
from ..text.units import MIB, format_bytes
from ..trainings.script.result import TuneResult
from ..trainings.script.spec import BATCH_SIZE, WARM, FunctionSpec
from .command import Command
from .exit_status import EXIT_STATUSES
from .options import output_options
from .printing.result_text import answer_lines
from .printing.terminal import BOLD, say, say_lines, width_of, wrapped
from .reporting import report_options
from .tune import measure_starts

BAR = 32
LIMIT_BYTES, MOST_SECONDS = 32 * MIB, 240.0
TUNED = f"{__package__.rpartition('.')[0]}.demo:make_step"
YOURS = f"{PROGRAM} tune -- python train.py --batch-size {BATCH_SIZE}"
HELP = f"""Tune a small training that comes with MemoryMark: a real answer in about a minute, on any CPU.

It is what `tune --function {TUNED} --warm` does with 32 MiB. Needs torch; downloads nothing.
"""


def _demo(options: SimpleNamespace) -> int:
    if find_spec("torch") is None:
        raise WorkloadFailed(f"torch is not installed for {sys.executable}: the demo trains with it")
    spec = FunctionSpec(
        TUNED,
        starting=WARM,
        device="cpu",
        memory_limit_bytes=LIMIT_BYTES,
        start_batch_size=256,  # not today's: the first start imports torch, and those of today's are timed
        time_budget_seconds=MOST_SECONDS,
    )
    return measure_starts(spec, options, show=_show)


def _show(found: TuneResult) -> None:
    result, width = found.result, width_of(sys.stdout)
    say("")
    say("\n".join(wrapped(answer_lines(result), width, hanging="")), style=BOLD)
    proof = [certificate(result)] if result.largest else []  # else it is the answer
    say_lines([*wrapped(proof, width), "", *picture(result), "", f"Your own script: {YOURS}"])


def picture(result: RunResult) -> list[str]:
    waste, points = result.waste, (result.recommended, result.largest)
    unused = waste.at_current_bytes
    rows = {} if unused is None else {result.current_batch_size: ("today", waste.capacity_bytes - unused)}
    for name, point in zip(("use this", "largest"), points, strict=True):
        if point is not None and point.memory_bytes is not None:
            rows.setdefault(point.batch_size, (name, point.memory_bytes))
    lines = []
    for size, (name, used) in rows.items():
        bar = "#" * round(BAR * used / waste.capacity_bytes)
        share = 1 - used / waste.capacity_bytes
        left = f", {share * 100:.0f} % unused" if name == "today" else ""
        lines.append(f"{name:<9}{size:>6,}  {bar:.<{BAR}}  {format_bytes(used):>9}{left}")
    return [f"Memory, of {format_bytes(waste.capacity_bytes)}:", *lines] if lines else []


COMMAND = Command("demo", _demo, params=[*output_options(), *report_options()], help=HELP, epilog=EXIT_STATUSES)
