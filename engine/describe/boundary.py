"""PURE: how far a training reaches, in words: the evidence for it, and what is not known."""

from __future__ import annotations

from dataclasses import dataclass

from ..facts.host_memory import is_of_the_host
from ..facts.not_compared import NotCompared
from ..facts.result import DATA_EXHAUSTED, Boundary, Outcome, Reason, RunResult
from ..search.differing_starts import do_starts_differ, starts_of
from ..settings.spec import SearchSpec
from ..text.units import format_bytes, format_duration
from .does_not_fit import refusing_probe
from .probe import OUTCOMES, describe_outcome
from .ranks import describe_grade

CPU_COUNTS_TENSORS = "The limit of a CPU run counts tensors only; the process uses more."
"""The small print of a CPU's certificate."""


def is_today_refused(result: RunResult) -> bool:
    """Whether today's size is known not to fit: it or a smaller one was refused. A missing figure is no proof."""
    refused = (probe.batch_size for probe in result.probes if not probe.fits)
    return result.current is None and min(refused, default=result.current_batch_size + 1) <= result.current_batch_size


def verbs(spec: SearchSpec) -> tuple[str, str]:
    """Return what the run does and did: without an optimizer it is not training."""
    if getattr(spec, "optimizer", None) == "none":
        return "runs forward and backward", "ran forward and backward"
    return "trains", "trained"


def bound_of(result: RunResult) -> str:
    """Write "up to", or "at least" where no larger size is known to fail; "about" where starts of one size differ."""
    if result.boundary.certified or result.boundary.reason is Reason.GROWS:
        return "up to"
    return "about" if _differ_starts_at_limit(result) else "at least"


def _differ_starts_at_limit(result: RunResult) -> bool:
    return result.boundary.reason is Reason.OUT_OF_MEMORY and do_starts_differ(result.probes)


def trains_with(result: RunResult) -> str:
    """Write "trains with up to 1,024 samples"."""
    size = result.boundary.largest_batch_size or 0
    return f"{verbs(result.spec)[0]} with {bound_of(result)} {size:,} {'sample' if size == 1 else 'samples'}"


def certificate(result: RunResult) -> str:
    boundary, largest = result.boundary, result.boundary.largest_batch_size
    if boundary.reason is Reason.DOES_NOT_FIT:
        return f"Does not fit: batch {boundary.refused_batch_size or 1} ran out of memory ({boundary.refusal})."
    if boundary.certified:
        among = f" among {boundary.allowed_sizes}" if boundary.allowed_sizes else ""
        ran, refused = in_a_fresh_process(result), f"{boundary.refused_batch_size} ran out of memory there"
        return f"Certified{among}{_emulated(result)}: {largest} {ran}; {refused}."
    cause = f" ({boundary.refusal})" if boundary.reason in (Reason.SIZE_LIMIT, Reason.ERROR) else ""
    reached = f"{largest or 'no batch size'} {verbs(result.spec)[1]}"
    return f"Not certified{_emulated(result)}: {reached}; {_why_open(result)}{cause}."


def _emulated(result: RunResult) -> str:
    """Write " (emulated, 3 of 8 ranks)" where nothing was measured on real ranks."""
    grade = describe_grade(result.spec.to_dict())
    return f" ({grade})" if grade else ""


def why_not_certified(result: RunResult) -> str | None:
    """Explain why no larger size is known to fail; None where the boundary is certified."""
    boundary = result.boundary
    if boundary.certified:
        return None
    if boundary.reason is Reason.ONE_SIZE:
        return "No limit was searched: only the requested size was run."
    if boundary.reason is Reason.TIME_BUDGET:
        budget = format_duration(result.spec.time_budget_seconds)
        spent = f"Not certified: the time budget of {budget} was spent before"
        if boundary.refused_batch_size:
            return f"{spent} the size had run for longer."
        return f"{spent} the limit was found. Larger sizes may fit."
    return f"Not certified: {_why_open(result)}."


def _why_open(result: RunResult) -> str:
    if _differ_starts_at_limit(result):
        return "starts of one size took different memory"
    most = f"{result.spec.max_batch_size:,}"
    return {
        Reason.SIZE_LIMIT: _what_ends(result),
        Reason.ERROR: f"{_failed_size(result.boundary)} failed, {_what_was_lacking(result)}",
        Reason.GROWS: NotCompared.GROWS.sentence,
        Reason.FOREIGN_MEMORY: "other processes held memory of the device; run it again when the device is free",
        Reason.MAX_BATCH_SIZE: f"{most} was the largest size allowed, and memory did not run out",
        Reason.TIME_BUDGET: "the time budget ended first",
    }.get(result.boundary.reason, "the next size was not shown to run out of memory in a fresh process")


def _what_was_lacking(result: RunResult) -> str:
    """Say that the limit was not memory, or only the host's: a host's memory proves nothing of the GPU."""
    refused = result.boundary.refused_batch_size
    probe = None if refused is None else refusing_probe(result.probes, refused)
    is_of_host = probe is not None and is_of_the_host(probe.error_type, probe.error_message or "")
    return "for lack of the host's memory, not the GPU's" if is_of_host else "and not for lack of memory"


def _failed_size(boundary: Boundary) -> str:
    """Write "the next size", or the smallest that failed where sizes are left between."""
    largest, failed = boundary.largest_batch_size or 0, boundary.refused_batch_size
    return "the next size" if failed in (None, largest + 1) else f"{failed:,}"


def _what_ends(result: RunResult) -> str:
    if any(p.error_type == DATA_EXHAUSTED for p in result.probes):
        return f"the data ends there, {_memory_left(result)}"
    if result.boundary.allowed_sizes and result.boundary.refused_batch_size is None:
        return "the script takes no larger size, and memory did not run out"
    return "larger sizes hit a limit of the library, not memory"


def _memory_left(result: RunResult) -> str:
    """Write "and memory is not your limit: 2,048 took 70.0 MiB of 96.0 MiB"; less where that is not known."""
    if (largest := result.largest) is None or largest.memory_bytes is None:
        return "memory does not"
    took = f"{format_bytes(largest.memory_bytes)} of {format_bytes(result.waste.capacity_bytes)}"
    return f"and memory is not your limit: {largest.batch_size:,} took {took}"


def in_a_fresh_process(result: RunResult) -> str:
    """Write "trained 5 steps in a fresh process", or "in each of 3 fresh processes" where it was started again."""
    _, trained = verbs(result.spec)
    steps = result.boundary.soak_steps
    starts = len(starts_of(result.boundary, result.probes)) if result.spec.starts_anew else 1
    where = "a fresh process" if starts <= 1 else f"each of {starts} fresh processes"
    return f"{trained} {steps} {'step' if steps == 1 else 'steps'} in {where}"


@dataclass(frozen=True, slots=True)
class CertificateLine:
    """One line of the certificate. `outcome` is fits, refused, open or estimate."""

    outcome: str
    word: str
    text: str


def _open_end(result: RunResult) -> CertificateLine:
    largest = result.boundary.largest_batch_size or 0
    refused = min((p.batch_size for p in result.probes if not p.fits and p.batch_size > largest), default=None)
    probe = refusing_probe(result.probes, refused)
    if refused is None or probe is None:
        return CertificateLine("open", "open", "No larger size is known to run out of memory.")
    between = {0: "", 1: f"; {largest + 1:,} was not tried"}
    untried = between.get(refused - largest - 1, f"; {largest + 1:,} to {refused - 1:,} were not tried")
    return CertificateLine("open", "open", f"Batch {refused:,}: {describe_outcome(probe)}{untried}.")


def certificate_lines(result: RunResult) -> list[CertificateLine]:
    boundary, lines, (_, trained) = result.boundary, [], verbs(result.spec)
    if boundary.largest_batch_size:
        shortly = f"{trained}; it was not run again for longer"
        ran = in_a_fresh_process(result) if boundary.soak_steps else shortly
        lines.append(CertificateLine("fits", "fits", f"Batch {boundary.largest_batch_size:,} {ran}."))
    if boundary.refused_batch_size:
        probe = refusing_probe(result.probes, boundary.refused_batch_size)
        outcome = describe_outcome(probe) if probe else OUTCOMES[Outcome.OUT_OF_MEMORY]
        fresh = ", in a fresh process" if probe and probe.fresh_process else ""
        text = f"Batch {boundary.refused_batch_size:,}: {outcome}{fresh}."
        lines.append(CertificateLine("refused", "does not fit", text))
    if not boundary.certified and not boundary.refused_batch_size:
        lines.append(_open_end(result))
    if boundary.note:
        lines.append(CertificateLine("open", "note", boundary.note))
    if result.device.kind == "cpu":
        lines.append(CertificateLine("open", "note", CPU_COUNTS_TENSORS))
    return lines
