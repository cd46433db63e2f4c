"""The results and probes whose words are recorded: measured by the benchmarks, and made up for rarer ends."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_type_hints

from engine.describe.key_figures import key_figures
from engine.facts.memory_breakdown import LiveBlock, MemoryBreakdown, Request, entries_of
from engine.facts.result import Boundary, DeviceFacts, Outcome, Probe, Purpose, Reason, RunResult, Waste
from engine.questions.kinds import answered
from engine.settings.catalog.stored_workload import is_own_training
from engine.settings.spec import RunSpec, SearchSpec
from engine.text.from_json import from_json
from engine.text.units import GIB, MIB
from engine.trainings.script.result import Training
from engine.trainings.script.spec import TuneSpec, read_tuned_spec
from tests.factories import make_probe, make_refusal, make_result, make_result_that_does_not_fit, make_spec
from tests.factories.speeds import (
    make_ahead_result,
    make_bound_result,
    make_kept_result,
    make_result_out_of_time,
    make_timed_result,
    make_unmeasurable_result,
)

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ("bert_tiny", "accumulation", "does_not_fit", "fits", "fits_not", "maximum", "time_budget")
TUNED = ("tune_plain", "tune_speed")
CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-40GB", 40 * GIB, 40 * GIB)


def result_of(document: Mapping[str, Any]) -> RunResult:
    """Read a document back as the command line has it when the run ends."""
    types = get_type_hints(RunResult)
    members = {name: from_json(of, document[name]) for name, of in types.items() if name != "spec" and name in document}
    return RunResult(spec=_spec_of(document["spec"]), **members)


def documents() -> dict[str, dict[str, Any]]:
    """Every document, by the name of the file that holds its words."""
    stored = {name: _read(ROOT / f"benchmarks/data/results/{name}.json") for name in (*MEASURED, *TUNED)}
    stored["tuned_function"] = _read(ROOT / "tests/factories/tuned_function.json")
    stored = {name: answered(document) for name, document in stored.items()}  # by today's rules
    return stored | {name: result.to_dict() for name, result in _made().items()} | {"starts_in_turns": _in_turns()}


def probes() -> tuple[Probe, ...]:
    return (
        make_probe(16, samples_per_second=98.76),
        make_probe(1, steps=5, samples_per_second=None, purpose=Purpose.SOAK, fresh_process=True),
        make_probe(2, peak_reserved_bytes=2 * GIB, purpose=Purpose.CURVE),
        make_probe(4, purpose=Purpose.TIMING, steps=0, peak_allocated_bytes=None),
        make_probe(4, purpose=Purpose.TIMING, steps=0, samples_per_second=None, peak_allocated_bytes=None),
        Probe(2, Outcome.FITS),
        make_refusal(9, failed_phase="optimizer_step", error_message="out of memory: the peak is 2.0 GiB\nmore"),
        make_refusal(9, purpose=Purpose.CONFIRM, fresh_process=True, error_message=None),
        make_refusal(5000, outcome=Outcome.SIZE_LIMIT, error_message="int32"),
        Probe(9, Outcome.ERROR, failed_phase="optimizer_step"),
        make_refusal(70, outcome=Outcome.ERROR, error_message="the script ended with 1", failed_phase="forward"),
    )


def _made() -> dict[str, RunResult]:
    plain = make_result()
    refused = make_refusal(9, fresh_process=True, failed_phase="backward")
    kept_full = replace(make_kept_result().recommended, memory_bytes=GIB - 10 * MIB)  # type: ignore[type-var]
    whole_card = Waste(40 * GIB, None, None, None, None)
    too_late = Boundary(8, False, 9, Reason.TIME_BUDGET, "over the limit", note="moved down")
    too_large = {"spec": make_spec(current_batch_size=16), "current": None, "speedup": None}
    return {
        "figure": make_timed_result(),
        "bound": make_bound_result(),
        "ahead": make_ahead_result(),
        "kept": make_kept_result(),
        "kept_without_reserve": replace(make_kept_result(), recommended=kept_full),
        "not_measurable": make_unmeasurable_result(),
        "out_of_time": make_result_out_of_time(),
        "today_does_not_fit": replace(make_timed_result(), **too_large),
        "today_does_not_fit_none_recommended": replace(make_unmeasurable_result(), **too_large),
        "without_an_optimizer": replace(make_timed_result(), spec=make_spec(optimizer="none", current_batch_size=4)),
        "on_a_card": replace(plain, device=CARD, probes=(make_probe(8), refused), waste=whole_card),
        "size_limit": replace(plain, boundary=Boundary(8, False, 9, Reason.SIZE_LIMIT, "INT_MAX", 5)),
        "error": replace(plain, boundary=Boundary(8, False, 9, Reason.ERROR, "exit 1", 5)),
        "foreign_memory": replace(plain, boundary=Boundary(8, False, 9, Reason.FOREIGN_MEMORY, "in use", 5)),
        "foreign_memory_from_the_start": replace(
            make_result_that_does_not_fit(), boundary=Boundary(None, False, 1, Reason.FOREIGN_MEMORY, "in use")
        ),
        "not_soaked": replace(plain, boundary=too_late),
        "nothing_in_time": replace(
            make_result_that_does_not_fit(), probes=(), boundary=Boundary(None, False, None, Reason.TIME_BUDGET)
        ),
        "refused_memory": replace(plain, memory_breakdown=_breakdown()),
        "peak_memory": replace(plain, memory_breakdown=replace(_breakdown(), moment="peak", cached_bytes=None)),
    }


def _in_turns() -> dict[str, Any]:
    """A command whose sizes were compared by starts in turns."""
    training = Training(2, 2, (9, 8), 4096, 0.1, ((4, 1.0), (8, 2.0)), ("out/model.bin",))
    result = replace(make_timed_result(), spec=TuneSpec(("python", "train.py", "{batch_size}"), current_batch_size=4))
    return {**result.to_dict(), "training": asdict(training)}


def _breakdown() -> MemoryBreakdown:
    blocks = [
        LiveBlock(512 * MIB, "temporaries", "lm_head", "backward", "LogSoftmaxBackward0"),
        *(LiveBlock(64 * MIB, "activations", f"h.{number}.mlp", "forward", "gelu") for number in range(4)),
        LiveBlock(256 * MIB, "parameters", "wte"),
    ]
    request, total = Request(12 * MIB, "lm_head", "backward", "MmBackward0"), sum(each.size_bytes for each in blocks)
    entries = entries_of(blocks, total)
    return MemoryBreakdown(9, "refusal", "measured", total, GIB, request, entries, cached_bytes=96 * MIB, step=1)


def _spec_of(spec: dict[str, Any]) -> SearchSpec:
    return read_tuned_spec(spec) if is_own_training(spec) else RunSpec.from_dict(spec)


def _read(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    return dict(document.get("result", document))


def key_line(result: RunResult) -> str:
    """Write the three figures as one line: "Unused today: 93.7 % · Use: 56 · Saves: at least $0.60 a run"."""
    return " · ".join(f"{figure.title}: {figure.value}" for figure in key_figures(result))
