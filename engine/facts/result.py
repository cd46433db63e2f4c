"""What came out: one probe, the boundary, the whole result. Bytes and seconds; `None` is not measured, never zero."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from ..settings.spec import SCHEMA, SearchSpec
from ..text.from_json import from_json
from ..text.units import GIB, MIB
from .figure_kinds import figure_kinds
from .intervals import CONFIDENCE, Interval
from .memory_breakdown import MemoryBreakdown
from .not_compared import NotCompared
from .speed_rounds import ComparedSizes, SpeedClaim, SpeedRound

FOREIGN_NOTABLE_BYTES = 64 * MIB
"""A driver counts a little as used on a card that nobody uses."""
CONTEXT_MOST_BYTES = 2 * GIB
"""No context of one process is larger."""
DATA_EXHAUSTED = "DataExhausted"
"""The error type of a probe whose batch is larger than the training's data allow."""


class Outcome(StrEnum):
    """How one probe ended."""

    FITS = "fits"
    OUT_OF_MEMORY = "out_of_memory"
    SIZE_LIMIT = "size_limit"
    """A limit of the library or the launch, not of memory: 32-bit indexing, an invalid grid."""
    ERROR = "error"
    """Something else went wrong, at a size above one that trained. Below that it fails the run."""


class Purpose(StrEnum):
    """Why the probe was run."""

    SEARCH = "search"
    CONFIRM = "confirm"
    """The refusal of N+1 again, in a fresh process."""
    SOAK = "soak"
    """The boundary for many steps, in a fresh process."""
    CURVE = "curve"
    """A smaller size, run to draw the curves."""
    TIMING = "timing"
    """The speed of a size, timed in rounds beside the others. Its memory was measured by an earlier probe."""


class Reason(StrEnum):
    """Why the boundary stands where it does."""

    OUT_OF_MEMORY = "out_of_memory"
    """Certified: N trained, N+1 ran out of memory in a fresh process."""
    DOES_NOT_FIT = "does_not_fit"
    """Certified: not even batch 1 fits."""
    SIZE_LIMIT = "size_limit"
    ERROR = "error"
    """N+1 failed in a fresh process, and not for memory: what was tried below it stands."""
    GROWS = "grows"
    """N will run out of memory later: steps, or batches of an evaluation, leave more and more behind."""
    FOREIGN_MEMORY = "foreign_memory"
    """Other processes held memory when N+1 was refused, so the refusal says nothing of the training."""
    MAX_BATCH_SIZE = "max_batch_size"
    ONE_SIZE = "one_size"
    """Only the requested size was run: it trained, or it ran out of memory. No limit was searched."""
    TIME_BUDGET = "time_budget"


@dataclass(frozen=True, slots=True)
class MemoryByKind:
    """What held the device's memory at the instant of the peak, in bytes.

    On the CPU of the very step that holds the peak: the five add up to `peak_allocated_bytes`. On an
    accelerator of one further step under the profiler: tensors alone, without the allocator's rounding and
    the libraries' workspaces, so the sum is somewhat below it.
    """

    parameters_bytes: int
    gradients_bytes: int
    optimizer_state_bytes: int
    activations_bytes: int
    other_bytes: int


@dataclass(frozen=True, slots=True)
class Probe:
    """One batch size tried: a few full training steps.

    `peak_*` are maxima over the `steps` of the memory pass. `timed_step_seconds` are the raw times of a
    separate pass, each measured between two device synchronisations; `step_seconds` is their median.
    `peak_*` of a refused probe is what was reached before it was refused. `failed_phase` is where: a phase
    of the step, "timing", or "loading the model". `beside_bytes` is what the device held at the outcome beside this
    process's allocator: its context, and everything of others. `timing_conditions` is what the machine did while it
    was timed: clocks, power, temperature, reasons for throttling.
    """

    batch_size: int
    outcome: Outcome
    purpose: Purpose = Purpose.SEARCH
    fresh_process: bool = False
    steps: int = 0
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    device_used_bytes: int | None = None
    beside_bytes: int | None = None
    allocator_retries: int | None = None
    peak_phase: str | None = None
    memory_by_kind: MemoryByKind | None = None
    step_seconds: float | None = None
    timed_step_seconds: tuple[float, ...] = ()
    timing_is_steady: bool | None = None
    timing_conditions: dict[str, Any] | None = None
    samples_per_second: float | None = None
    error_type: str | None = None
    error_message: str | None = None
    failed_phase: str | None = None
    wall_seconds: float = 0.0

    @property
    def fits(self) -> bool:
        return self.outcome is Outcome.FITS

    @property
    def memory_bytes(self) -> int | None:
        """What the training took from the device: reserved where a caching allocator reserves, else allocated."""
        return self.peak_allocated_bytes if self.peak_reserved_bytes is None else self.peak_reserved_bytes

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Probe:
        return from_json(cls, data)


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The device a run was measured on, as read there.

    `capacity_bytes` is the whole device; `limit_bytes` what the run was allowed of it (the same where no
    memory limit was given). `foreign_used_bytes` is what other processes held before the run opened it, and
    `beside_bytes` what the device held right after: that, and the run's own context.
    """

    device: str
    kind: str
    name: str
    capacity_bytes: int
    limit_bytes: int | None = None
    uuid: str | None = None
    driver: str | None = None
    compute_capability: str | None = None
    foreign_used_bytes: int | None = None
    foreign_processes: tuple[dict[str, Any], ...] = ()
    beside_bytes: int | None = None

    @property
    def is_shared(self) -> bool:
        """Whether others held memory, by the driver's list, its count, or more than a context beside the run."""
        is_reported = bool(self.foreign_processes) or (self.foreign_used_bytes or 0) > FOREIGN_NOTABLE_BYTES
        return is_reported or (self.beside_bytes or 0) > CONTEXT_MOST_BYTES

    @property
    def others_bytes(self) -> int | None:
        """What others held when the run began; None where the driver's count does not explain what was held."""
        reported_bytes = self.foreign_used_bytes
        if not self.is_shared:
            return reported_bytes or 0
        is_explained = reported_bytes is not None and (self.beside_bytes or 0) - reported_bytes <= CONTEXT_MOST_BYTES
        return reported_bytes if is_explained else None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "is_shared": self.is_shared}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> DeviceFacts:
        return from_json(cls, data)


@dataclass(frozen=True, slots=True)
class Boundary:
    """The largest batch size that trained, and what is known of the next one.

    `certified` means: `largest_batch_size` trained and `refused_batch_size` is one more and ran out of
    memory in a fresh process. `soak_steps` is how many steps the largest one ran in a fresh process.
    `largest_batch_size` is 0 where not even batch 1 fits, and None where nothing could be tried in time.
    `allowed_sizes`: "multiples of 8", where a script takes only those. Then the refused size is the next of these.
    `had_trained_earlier`: the size above it that failed its soak had trained in an earlier attempt.
    """

    largest_batch_size: int | None
    certified: bool
    refused_batch_size: int | None
    reason: Reason
    refusal: str | None = None
    soak_steps: int = 0
    note: str | None = None
    allowed_sizes: str | None = None
    is_of_earlier_run: bool = False
    had_trained_earlier: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """One batch size of the answer with its measured memory and speed.

    `samples_per_second_low` and `_high` are the interval; None where the speed was not timed in enough rounds.
    """

    batch_size: int
    samples_per_second: float | None
    step_seconds: float | None
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    memory_bytes: int | None
    samples_per_second_low: float | None = None
    samples_per_second_high: float | None = None

    @classmethod
    def of(cls, probe: Probe, device: DeviceFacts, speed: Interval | None = None) -> Point:
        """On a whole card the memory is what the driver counts, context and all, less what others held before."""
        memory_bytes = probe.memory_bytes
        is_whole = device.limit_bytes in (None, device.capacity_bytes)
        if is_whole and device.others_bytes is not None and probe.device_used_bytes is not None:
            memory_bytes = max(probe.device_used_bytes - device.others_bytes, memory_bytes or 0)
        samples = probe.batch_size  # of one optimizer step, over all ranks and micro-batches
        if probe.samples_per_second and probe.step_seconds:
            samples = round(probe.samples_per_second * probe.step_seconds)
        return cls(
            batch_size=probe.batch_size,
            samples_per_second=speed.value if speed else probe.samples_per_second,
            step_seconds=samples / speed.value if speed else probe.step_seconds,
            peak_allocated_bytes=probe.peak_allocated_bytes,
            peak_reserved_bytes=probe.peak_reserved_bytes,
            memory_bytes=memory_bytes,
            samples_per_second_low=speed.low if speed else None,
            samples_per_second_high=speed.high if speed else None,
        )


@dataclass(frozen=True, slots=True)
class Waste:
    """Memory the device has and the training leaves unused, of `capacity_bytes` (the limit, if one was set)."""

    capacity_bytes: int
    at_current_bytes: int | None
    at_current_fraction: float | None
    at_recommended_bytes: int | None
    at_recommended_fraction: float | None


@dataclass(frozen=True, slots=True)
class Savings:
    """Money, derived: hours x price x (1 - 1/speedup), times runs a year. The first three are assumptions.

    `_low` and `_high` are the same at the ends of the speed-up's interval.
    """

    price_per_hour_usd: float
    hours_per_run: float
    runs_per_year: int
    cost_per_run_usd: float
    per_run_usd: float | None
    per_year_usd: float | None
    per_run_usd_low: float | None = None
    per_run_usd_high: float | None = None
    per_year_usd_low: float | None = None
    per_year_usd_high: float | None = None


class RecommendedBy(StrEnum):
    """What the recommended size was chosen by."""

    SPEED = "speed"
    """The smallest within 3 % of the fastest, of those that keep the reserve; today's where none is shown faster."""
    NOTHING = "nothing"
    """No size is recommended: none trained, the time ended first, or the speeds do not say which is better."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How far the speeds of this result can be trusted, and what they were measured beside.

    `reason` says why no figure is claimed; None where `is_measurable`. `why` is known where no speeds were compared,
    `compared` are the sizes of whose speeds no figure is claimed. `rounds` are those that the intervals rest on,
    `seconds` is what the whole comparison took, `others_cores` how many of the machine's `cores` other work used.
    """

    is_measurable: bool
    reason: str | None
    recommended_by: RecommendedBy
    reserve_fraction: float
    method: str | None = None
    rounds: int = 0
    quiet_rounds: int = 0
    seconds: float = 0.0
    confidence: float = CONFIDENCE
    others_cores: float | None = None
    cores: int | None = None
    left_out_batch_sizes: tuple[int, ...] = ()
    claim: SpeedClaim = SpeedClaim.NOTHING
    compared: ComparedSizes | None = None
    why: NotCompared | None = None


@dataclass(frozen=True, slots=True)
class EstimateError:
    """How far the estimate made before a measurement was off, as fractions: 0.01 is one per cent too much.

    `peak` is of the memory at the largest measured size, `boundary` of the largest batch size. None where there is
    nothing to compare: only a certified boundary says what the largest size is.
    """

    peak: float | None
    boundary: float | None


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the run's seconds went. `processes` counts the worker processes that touched the device.

    `model_seconds` is the sum over those processes; all but the first were made within the search, the soak
    and the curve, whose seconds hold them too. All of it is this attempt's; `carried_seconds` is what the probes
    carried over from an earlier one took there. `estimate_seconds` went into the estimate before the search,
    `timing_seconds` into the comparison of speeds after the curve, `explaining_seconds` into what filled the memory.
    """

    total_seconds: float = 0.0
    import_seconds: float = 0.0
    model_seconds: float = 0.0
    search_seconds: float = 0.0
    soak_seconds: float = 0.0
    curve_seconds: float = 0.0
    processes: int = 0
    carried_seconds: float = 0.0
    estimate_seconds: float = 0.0
    timing_seconds: float = 0.0
    explaining_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunResult:
    """The answer of a run: what `--json` prints and what the portal stores.

    `estimate` is what was predicted before anything was measured (`Estimate.to_dict()`), with its figures for each
    measured size; None where there was none. `memory_breakdown` is what filled the memory of the size that was refused,
    or of the largest one where none was; None where that was not found out. `speed_rounds` are those of the comparison
    of speeds: with the probes they are all that its verdict was decided by. `largest_with_reserve` is the largest
    measured size that keeps the reserve; None where none does, or the size at the reserve was not measured.
    `speedup` is None where only a lower bound is claimed: its interval is there all the same.
    """

    spec: SearchSpec
    device: DeviceFacts
    boundary: Boundary
    largest: Point | None
    fastest: Point | None
    recommended: Point | None
    current: Point | None
    waste: Waste
    speedup: float | None
    batch_size_ratio: float | None
    savings: Savings
    probes: tuple[Probe, ...]
    environment: dict[str, Any]
    timings: Timings = field(default_factory=Timings)
    estimate: dict[str, Any] | None = None
    estimate_error: EstimateError | None = None
    speed: Speed | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    memory_breakdown: MemoryBreakdown | None = None
    speed_rounds: tuple[SpeedRound, ...] = ()
    largest_with_reserve: Point | None = None

    @property
    def current_batch_size(self) -> int:
        return self.spec.current_batch_size

    @property
    def fits(self) -> bool | None:
        """Whether `spec.check_batch_size` trained; None where no size was requested, or it is unknown."""
        size = self.spec.check_batch_size
        if size is None or self.boundary.largest_batch_size == size:
            return None if size is None else True
        return False if self.boundary.reason in (Reason.ONE_SIZE, Reason.SIZE_LIMIT) else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **asdict(self),
            "fits": self.fits,
            "kinds": figure_kinds(self.spec.to_dict()),
            "spec": self.spec.to_dict(),
            "device": self.device.to_dict(),
            "probes": [p.to_dict() for p in self.probes],
        }
