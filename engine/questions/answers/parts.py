"""PURE: bounds of what pages show beside the figures of a measurement: what filled its memory, and its estimate."""

from __future__ import annotations

from collections.abc import Iterator

from ...estimate.types import Estimate
from ...facts.memory_breakdown import CONTENT_LABELS, MOST_ENTRIES, MemoryBreakdown
from ...settings.setting import Role
from ...settings.spec import MEMORY_STEPS, SETTINGS, RunSpec
from ...text.printable import is_line
from .document import MOST_PROBES
from .impossible import Impossible, within
from .limits import BATCH_SIZE_MOST, DRIVER_COUNTS, LINE_MOST, ONE_LINE, OVERCOMMITTED, SLACK_SECONDS
from .size_facts import SizeFacts

MOST_FRACTION = 10.0
"""No error of an estimate, and no margin for it, is more than ten times the memory itself."""
_MOST_COUNT = 10**6
_MODULE_MOST = 300
_MOST_KERNELS = 16
_MOST_ESTIMATE_SECONDS = 86_400.0
MOST_BYTES = 2**50
"""More than any card has, and than any training would be given."""
_OF_THE_TRAINING = tuple(name for name, each in SETTINGS.items() if each.role in (Role.TRAINING, Role.WORKLOAD))


def impossible_breakdown(facts: SizeFacts, breakdown: MemoryBreakdown) -> Iterator[Impossible]:
    """Yield what cannot have filled the memory of a run: pages draw each entry by its kind, as a share of the whole."""
    path, device = "memory_breakdown", facts.device
    yield from impossible_entries(path, breakdown)
    if breakdown.method != "measured":
        yield Impossible(f"{path}.method", breakdown.method, "measured")
    if breakdown.total_bytes > device.capacity_bytes:
        yield Impossible(f"{path}.total_bytes", breakdown.total_bytes, device.capacity_bytes)
    if breakdown.limit_bytes not in (None, device.limit_bytes):
        yield Impossible(f"{path}.limit_bytes", breakdown.limit_bytes, device.limit_bytes)
    most_bytes, most_seconds = (
        OVERCOMMITTED * device.capacity_bytes,
        facts.stored.timings.explaining_seconds + SLACK_SECONDS,
    )
    for name, value, most in (
        ("cached_bytes", breakdown.cached_bytes, most_bytes),
        ("request.size_bytes", breakdown.request.size_bytes, MOST_BYTES),  # what was refused has no bound
        ("step", breakdown.step, MEMORY_STEPS),
        ("seconds", breakdown.seconds, most_seconds),
    ):
        yield from within(f"{path}.{name}", value, 0, most)


def impossible_entries(path: str, breakdown: MemoryBreakdown) -> Iterator[Impossible]:
    """Yield impossible kinds, counts and texts of entries, and a total other than their sum."""
    request = breakdown.request
    places = {f"request.{name}": getattr(request, name) for name in ("module", "phase", "operator")}
    for number, entry in enumerate(breakdown.entries):
        if entry.kind not in CONTENT_LABELS:
            yield Impossible(f"{path}.entries[{number}].kind", entry.kind, sorted(CONTENT_LABELS))
        for name, least in (("blocks", 0), ("modules", 1)):
            yield from within(f"{path}.entries[{number}].{name}", getattr(entry, name), least, _MOST_COUNT)
        places |= {f"entries[{number}].{name}": getattr(entry, name) for name in ("module", "phase", "operator")}
    for place, text in places.items():
        if text and not is_line(text, _MODULE_MOST):
            yield Impossible(f"{path}.{place}", text, ONE_LINE.format(_MODULE_MOST))
    if (kind := request.kind) is not None and kind not in CONTENT_LABELS:
        yield Impossible(f"{path}.request.kind", kind, sorted(CONTENT_LABELS))
    if len(breakdown.entries) > MOST_ENTRIES + len(CONTENT_LABELS):
        yield Impossible(f"{path}.entries", len(breakdown.entries), MOST_ENTRIES + len(CONTENT_LABELS))
    together = sum(entry.size_bytes for entry in breakdown.entries)
    if together != breakdown.total_bytes:
        yield Impossible(f"{path}.total_bytes", breakdown.total_bytes, together)


def impossible_estimate(estimate: Estimate) -> Iterator[Impossible]:
    """Yield what no estimate can contain: sizes out of range, a card without memory or a name, an error of any size."""
    if not is_line(estimate.gpu.name, LINE_MOST):
        yield Impossible("estimate.gpu.name", estimate.gpu.name, ONE_LINE.format(LINE_MOST))
    total, known = estimate.gpu.total_bytes, estimate.known_error
    for name, value, least, most in (
        ("largest_batch_size", estimate.largest_batch_size, 0, BATCH_SIZE_MOST),
        ("safe_batch_size", estimate.safe_batch_size, 0, estimate.largest_batch_size),
        ("gpu.total_bytes", total, 1, MOST_BYTES),
        ("gpu.context_bytes", estimate.gpu.context_bytes, 0, total),
        ("limit_bytes", estimate.limit_bytes, 0, total),
        ("communication_bytes", estimate.communication_bytes, 0, total),
        ("margin_fraction", estimate.margin_fraction, 0, MOST_FRACTION),
        ("seconds", estimate.seconds, 0, _MOST_ESTIMATE_SECONDS),
        ("window_tokens", estimate.window_tokens, 1, BATCH_SIZE_MOST),
        ("known_error.typical_fraction", known.typical_fraction if known else None, 0, MOST_FRACTION),
        ("known_error.worst_fraction", known.worst_fraction if known else None, 0, MOST_FRACTION),
        ("known_error.runs", known.runs if known else None, 1, _MOST_COUNT),
        ("attention_kernels", len(estimate.attention_kernels), 0, _MOST_KERNELS),
        ("at", len(estimate.at), 0, MOST_PROBES),
        *(
            (f"at[{number}].{name}", value, least, most)
            for number, point in enumerate(estimate.at)
            for name, value, least, most in (
                ("batch_size", point.batch_size, 1, BATCH_SIZE_MOST),
                # today's size is estimated, too, however far it is above the limit
                ("peak_allocated_bytes", point.peak_allocated_bytes, 0, MOST_BYTES),
                ("peak_reserved_bytes", point.peak_reserved_bytes, 0, MOST_BYTES),
            )
        ),
    ):
        yield from within(f"estimate.{name}", value, least, most)
    if len({point.batch_size for point in estimate.at}) < len(estimate.at):
        yield Impossible("estimate.at", len(estimate.at), "each size once")
    if estimate.breakdown is not None:
        yield from impossible_entries("estimate.breakdown", estimate.breakdown)


def estimate_of_others(facts: SizeFacts, estimate: Estimate) -> Iterator[Impossible]:
    """Yield where an estimate is of another training than its result: the error would count for that training."""
    of_today = RunSpec.from_dict(estimate.spec.to_dict())  # a setting newer than the document follows its profile
    for name in _OF_THE_TRAINING:
        given, own = (getattr(spec, name, None) for spec in (of_today, facts.spec))
        if given != own:
            yield Impossible(f"estimate.spec.{name}", given, own)
    if estimate.gpu.total_bytes > facts.device.capacity_bytes * DRIVER_COUNTS:
        yield Impossible("estimate.gpu.total_bytes", estimate.gpu.total_bytes, facts.device.capacity_bytes)
