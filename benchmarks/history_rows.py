"""Made-up history: a million runs with ten probes each, written as rows, as fast as the database takes them.

Each run is one of a few hundred templates, made with the engine's own types, with its own person, device, time,
figures, tags and words. Results are as large as real ones: a list that touched them would show it. Nothing here was
measured, and no figure of it is printed anywhere but as a duration of the portal.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

GPUS = (
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA L4",
    "NVIDIA A10G",
    "NVIDIA GeForce RTX 4090",
    "Tesla V100-SXM2-16GB",
)
MODELS = ("bert", "gpt2", "resnet", "resnet18", "distilbert", "bert-tiny")
PRECISIONS, OPTIMIZERS = ("fp32", "bf16", "fp16", "tf32"), ("adamw", "sgd", "momentum")
HOSTS, DEVICES, PEOPLE, TEMPLATES = 10, 40, 50, 240
TAGS = ("nightly", "sweep", "paper", "v2", *(f"topic-{number}" for number in range(15)), "rare")
WORDS = tuple(f"word{number}" for number in range(5_000))
WAITING, GIB = 20, 1024**3
PROBES = 10
OLDEST = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=90)


def make_people_and_devices() -> None:
    """The few rows that runs point to, through the models. The first person is the one who looks."""
    from django.contrib.auth.models import Group, User

    from analysis.models import Device, Host, Tag
    from analysis.permissions import OPERATOR

    User.objects.bulk_create(User(username=f"person-{number:02}") for number in range(PEOPLE))
    Group.objects.get(name=OPERATOR).user_set.set(User.objects.all())
    hosts = Host.objects.bulk_create(Host(name=f"host-{number:02}") for number in range(HOSTS))
    Device.objects.bulk_create(
        Device(
            host=hosts[number % HOSTS],
            device=f"cuda:{number // HOSTS}",
            kind="cuda",
            name=GPUS[number % len(GPUS)],
            uuid=f"GPU-{number:04}",
            capacity_bytes=80 * GIB,
            compute_capability="8.0",
        )
        for number in range(DEVICES)
    )
    Tag.objects.bulk_create(Tag(name=name) for name in TAGS)


class History:
    """Rows of the runs `first` to `last`, each table by itself, so that each is written in one stroke."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.templates = [_Template(number) for number in range(TEMPLATES)]

    def tables(self) -> Iterator[tuple[Any, Iterable[tuple[Any, ...]]]]:
        """The models and their rows, columns in the model's order."""
        from analysis.models import Attempt, Measurement, Run, RunSetting, RunText

        yield Run, self.runs()
        yield Attempt, self.attempts()
        yield Measurement, self.measurements()
        yield Run.tags.through, self.tags()
        yield RunText, self.words()
        yield RunSetting, self.settings()

    def numbers(self) -> range:
        return range(self.first, self.last + 1)

    def runs(self) -> Iterator[tuple[Any, ...]]:
        for number in self.numbers():
            yield self.run(number)

    def run(self, number: int) -> tuple[Any, ...]:
        dice = random.Random(number)
        template = self.templates[number % TEMPLATES]
        row = dict(template.finished)
        created = OLDEST + STEP * number
        took = timedelta(seconds=dice.randint(40, 900))
        row |= {
            "id": number,
            "created_at": _moment(created),
            "updated_at": _moment(created + took),
            "started_at": _moment(created),
            "finished_at": _moment(created + took),
            "name": name_of(number),
            "requested_by_id": 1 + min(int(dice.expovariate(0.12)), PEOPLE - 1),
        }
        row |= self._fate(number, dice, template, row)
        return tuple(row.values())

    def _fate(self, number: int, dice: random.Random, template: _Template, row: dict[str, Any]) -> dict[str, Any]:
        """Most are finished; a tenth are estimates; the newest few wait."""
        if number > self.last - WAITING:
            ended = {"started_at": None, "finished_at": None, "device_id": None}
            return template.nothing_measured | ended | {"state": "queued", "attempt": 0, "device_name": ""}
        chance = dice.random()
        if chance < 0.1:
            found = {"kind": "estimate", "gpu": "a100-80gb", "device_id": None, "requested_device_id": None}
            return template.nothing_measured | found | {"estimated_largest_batch_size": dice.randint(1, 4000)}
        if chance < 0.2:
            state = dice.choice(("failed", "failed", "cancelled", "interrupted"))
            return template.nothing_measured | {"state": state, "error_code": "engine_died"}
        return {name: row[name] * dice.uniform(0.7, 1.3) for name in template.figures} | {
            "largest_batch_size": max(1, int(row["largest_batch_size"] * dice.uniform(0.5, 1.5))),
            "is_baseline": int(dice.random() < 0.0005),
            "device_id": (device := dice.randrange(DEVICES)) + 1,
            "device_name": GPUS[device % len(GPUS)],
        }

    def attempts(self) -> Iterator[tuple[Any, ...]]:
        from analysis.models import Attempt

        row = _defaults(Attempt) | {"number": 1, "owner": "made up", "device_id": 1, "outcome": "finished"}
        for number in self.numbers():
            started = _moment(OLDEST + STEP * number)
            yield tuple((row | {"id": number, "run_id": number, "started_at": started}).values())

    def measurements(self) -> Iterator[tuple[Any, ...]]:
        for number in self.numbers():
            first = (number - 1) * PROBES
            for place, rest in enumerate(self.templates[number % TEMPLATES].probes, start=1):
                yield (first + place, number, *rest)

    def tags(self) -> Iterator[tuple[int, int, int]]:
        """Common tags on a tenth of the runs, the last one on a handful."""
        for number in self.numbers():
            if number % 10 == 0:
                yield number, number, 1 + number // 10 % (len(TAGS) - 1)
            elif number % 20_001 == 1:
                yield number, number, len(TAGS)

    def settings(self) -> Iterator[tuple[int, int, str]]:
        from analysis.runs.columns.run_settings import FILTERED, settings_of

        of_templates = [settings_of(json.loads(template.finished["spec"])) for template in self.templates]
        for number in self.numbers():
            for place, setting in enumerate(of_templates[number % TEMPLATES]):
                yield number * len(FILTERED) + place, number, setting

    def words(self) -> Iterator[tuple[int, str]]:
        from analysis.runs.columns.run_text import words_of

        for number in self.numbers():
            finished = self.templates[number % TEMPLATES].finished
            yield number, words_of(name_of(number), "", finished["model"], finished["device_name"])


class _Template:
    """What many runs share: the columns of a finished run, and its probes."""

    figures = (
        "speedup",
        "recommended_samples_per_second",
        "saving_per_run_usd",
        "saving_per_year_usd",
        "cost_per_million_samples_usd",
    )

    def __init__(self, number: int) -> None:
        from analysis.models import Run
        from analysis.runs.columns.result_columns import measured_columns
        from engine.questions.documents.measured import Measured

        result = _result(random.Random(number), number)
        stored = result.to_dict()
        columns = measured_columns(Measured.from_dict(stored))
        spec = stored["spec"]
        self.finished = _defaults(Run) | {
            **columns,
            "memory_curve": json.dumps(columns["memory_curve"]),
            "certified": 1,
            "is_shared": int(number % 17 == 0),
            "kind": "measurement",
            "model": spec["model"],
            "precision": spec["precision"],
            "optimizer": spec["optimizer"],
            "current_batch_size": spec["current_batch_size"],
            "spec": json.dumps(spec),
            "state": "finished",
            "requested_kind": "cuda",
            "device_id": 1,
            "attempt": 1,
            "result": json.dumps(stored),
        }
        self.nothing_measured = dict.fromkeys((*columns, "result", "memory_curve"))
        self.nothing_measured |= {"device_name": GPUS[number % len(GPUS)], "boundary_reason": ""}
        self.probes = [_probe_row(probe, place) for place, probe in enumerate(result.probes, start=1)]


def _result(dice: random.Random, number: int) -> Any:
    from engine.facts import savings
    from engine.facts.intervals import Interval
    from engine.facts.result import Boundary, DeviceFacts, Outcome, Point, Probe, Reason, RunResult
    from engine.settings.spec import RunSpec

    spec = RunSpec(
        model=MODELS[number % len(MODELS)],
        device="cuda:0",
        precision=dice.choice(PRECISIONS),
        optimizer=dice.choice(OPTIMIZERS),
        current_batch_size=16,
    )
    facts = DeviceFacts("cuda:0", "cuda", GPUS[number % len(GPUS)], 80 * GIB)
    largest = dice.randint(300, 1200)
    sizes = [1, 2, 4, 8, 16, 64, 128, 256, largest]
    probes = [_probe(size, 80 * GIB * (size + 40) // (largest + 41), dice) for size in sizes]
    refused = Probe(largest + 1, Outcome.OUT_OF_MEMORY, error_type="OutOfMemoryError", error_message="out of memory")
    points = {probe.batch_size: Point.of(probe, facts) for probe in probes}
    ratio = points[256].samples_per_second / points[16].samples_per_second
    speedup = Interval(ratio * 0.98, ratio, ratio * 1.02)
    return RunResult(
        spec=spec,
        device=facts,
        boundary=Boundary(largest, True, largest + 1, Reason.OUT_OF_MEMORY, "out of memory", 5),
        largest=points[largest],
        fastest=points[largest],
        recommended=points[256],
        current=points[16],
        waste=savings.waste(facts.capacity_bytes, points[16], points[256]),
        speedup=speedup.value,
        speedup_low=speedup.low,
        speedup_high=speedup.high,
        batch_size_ratio=16.0,
        savings=savings.savings(spec, speedup),
        probes=(*probes, refused),
        environment={"torch": "made up", "driver": "made up"},
    )


def _probe(size: int, held: int, dice: random.Random) -> Any:
    from engine.facts.result import MemoryByKind, Outcome, Probe

    seconds = (0.02 + size * 0.0008) * dice.uniform(0.9, 1.1)
    return Probe(
        size,
        Outcome.FITS,
        steps=3,
        peak_allocated_bytes=held * 9 // 10,
        peak_reserved_bytes=held,
        allocator_retries=0,
        memory_by_kind=MemoryByKind(10**8, 10**8, 2 * 10**8, held // 2, 10**6),
        step_seconds=seconds,
        timed_step_seconds=(seconds,) * 6,
        timing_is_steady=True,
        samples_per_second=size / seconds,
        wall_seconds=2.0,
    )


def _probe_row(probe: Any, sequence: int) -> tuple[Any, ...]:
    """Without its number and its run's, which come first."""
    from analysis.models import Measurement
    from analysis.runs.columns.result_columns import probe_columns

    row = _defaults(Measurement) | {"attempt": 1, "sequence": sequence, "recorded_at": _moment(OLDEST)}
    for name, value in probe_columns(probe).items():
        row[name] = json.dumps(value) if name in ("memory_by_kind", "timed_step_seconds") and value else value
    row["timed_step_seconds"] = row["timed_step_seconds"] or "[]"
    row["fresh_process"], row["is_carried"] = int(row["fresh_process"]), 0
    row["timing_is_steady"] = None if row["timing_is_steady"] is None else int(row["timing_is_steady"])
    return tuple(str(value) if hasattr(value, "value") else value for value in row.values())[2:]


def _defaults(model: Any) -> dict[str, Any]:
    """Column -> what an untouched row holds there, as both databases read it."""
    values = {field.column: field.get_default() for field in model._meta.local_concrete_fields}
    return {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S.%f}"


def name_of(number: int) -> str:
    """A tenth of the runs has a name: a word that few have, and one that many have."""
    if number % 10 != 3:
        return ""
    dice = random.Random(-number)
    return f"{dice.choice(WORDS)} {dice.choice(WORDS[:50])}"
