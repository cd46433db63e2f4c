"""Forges results of real runs; counts how many forgeries are refused, and whether the originals are believed.

    python benchmarks/forged_documents.py [--out benchmarks/results/forged_documents.json]

The originals are in `benchmarks/data/results`: whole documents of runs on two cores of a virtual machine. Every
mutation of the list below is applied to every document that has what it changes; one that leaves its document as it was
is not counted. 200 forgeries are drawn with a fixed seed, the same number from each group that has as many. All are
tried, and the report counts the 200 and all of them separately.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.errors import SpecError  # noqa: E402
from engine.kinds import find_contradictions  # noqa: E402

ORIGINALS = ROOT / "benchmarks" / "data" / "results"
WANTED, SEED = 200, 17
POINTS = ("largest", "fastest", "recommended", "current")

Document = dict[str, Any]
Change = Callable[[Any], Any]
Mutation = Callable[[Document], None]
"""Changes a copy of a document; KeyError, IndexError, TypeError and StopIteration: it has not what is changed."""


def originals() -> dict[str, Document]:
    """Return the documents by their names."""
    return {path.stem: json.loads(path.read_text())["result"] for path in sorted(ORIGINALS.glob("*.json"))}


def set_at(path: str, change: Change) -> Mutation:
    """Change the value at a path such as ``probes.0.outcome``."""

    def mutate(document: Document) -> None:
        *way, last = path.split(".")
        part: Any = document
        for step in way:
            part = part[int(step) if isinstance(part, list) else step]
        key: Any = int(last) if isinstance(part, list) else last
        part[key] = change(part[key])

    return mutate


def to(value: Any) -> Change:
    return lambda _: value


def times(factor: float) -> Change:
    """Multiply a figure that is there and not 0; a size stays a whole number."""
    return lambda value: type(value)(value * factor)


def more(by: int) -> Change:
    return lambda value: value + by


def probe_where(**wanted: Any) -> Callable[[Document], Document]:
    """Find the last probe with these members."""
    return lambda document: next(
        p for p in reversed(document["probes"]) if all(p[name] == value for name, value in wanted.items())
    )


SOAK, TIMING, REFUSED = (
    probe_where(purpose="soak"),
    probe_where(purpose="timing"),
    probe_where(outcome="out_of_memory", fresh_process=True),
)


def fitting(document: Document) -> Document:
    """Return the probe of the largest size that trained, less soak and timing."""
    fits = [p for p in document["probes"] if p["outcome"] == "fits" and p["purpose"] in ("search", "confirm")]
    return max(fits, key=lambda p: p["batch_size"])


def in_probe(find: Callable[[Document], Document], name: str, change: Change) -> Mutation:
    def mutate(document: Document) -> None:
        probe = find(document)
        probe[name] = change(probe[name])

    return mutate


def drop(find: Callable[[Document], Document]) -> Mutation:
    def mutate(document: Document) -> None:
        gone = find(document)
        document["probes"] = [p for p in document["probes"] if p is not gone]

    return mutate


def reordered_starts(document: Document) -> None:
    """Name the starts of a command's first round in another order than theirs."""
    if "training" not in document:
        raise KeyError("training")
    document["speed_rounds"][0]["blocks"].reverse()


def raised_claims() -> Iterator[tuple[str, Mutation]]:
    for name in ("largest_batch_size", "refused_batch_size", "soak_steps"):
        yield f"boundary.{name} + 1", set_at(f"boundary.{name}", more(1))
    yield "boundary.largest_batch_size doubled", set_at("boundary.largest_batch_size", times(2))
    for reason in ("out_of_memory", "max_batch_size", "does_not_fit", "size_limit"):
        yield f"boundary.reason {reason}", set_at("boundary.reason", to(reason))
    for name in POINTS:
        yield f"{name}.batch_size + 1", set_at(f"{name}.batch_size", more(1))
        yield f"{name}.memory_bytes halved", set_at(f"{name}.memory_bytes", times(0.5))
        yield f"{name}.peak_allocated_bytes halved", set_at(f"{name}.peak_allocated_bytes", times(0.5))
    for name in ("speedup", "speedup_low", "speedup_high", "batch_size_ratio"):
        yield f"{name} doubled", set_at(name, times(2))
    for name in ("per_run_usd", "per_year_usd", "per_run_usd_low", "per_year_usd_high", "cost_per_run_usd"):
        yield f"savings.{name} tripled", set_at(f"savings.{name}", times(3))
    for name in ("at_current_bytes", "at_current_fraction", "at_recommended_bytes", "capacity_bytes"):
        yield f"waste.{name} x 1.5", set_at(f"waste.{name}", times(1.5))
    yield "estimate_error.boundary + 1", set_at("estimate_error.boundary", more(1))
    yield "estimate_error.peak + 1", set_at("estimate_error.peak", more(1))
    yield "fits", set_at("fits", lambda fits: not fits if fits is not None else fits)
    yield "speed.quiet_rounds doubled", set_at("speed.quiet_rounds", times(2))
    yield "speed.rounds doubled", set_at("speed.rounds", times(2))
    yield "speed.confidence", set_at("speed.confidence", to(0.999))
    yield "an estimate called measured", set_at("kinds.estimate", to("measured"))
    for number in range(4):
        yield f"checks {number} passed", set_at(f"checks.{number}.verdict", to("passed"))
        yield f"checks {number} low", set_at(f"checks.{number}.low", times(0.1))
    yield "checks measured", set_at("checks.0.measured", times(1.5))  # for gradients this figure is the evidence itself
    yield "verdict", set_at("verdict", lambda was: "passed" if was != "passed" else "warning")
    yield "training.throughputs doubled", set_at("training.throughputs.0.samples_per_second", times(2))
    yield "starts in another order", reordered_starts


def invented_certificates() -> Iterator[tuple[str, Mutation]]:
    def certified(document: Document) -> None:
        largest = document["boundary"]["largest_batch_size"]
        document["boundary"] |= {"certified": True, "reason": "out_of_memory", "refused_batch_size": largest + 1}

    def with_refusal(fresh: bool, peak: float | None) -> Mutation:
        def mutate(document: Document) -> None:
            if document["boundary"]["certified"]:
                raise KeyError("is certified already")
            certified(document)
            limit, largest = document["device"]["limit_bytes"], document["boundary"]["largest_batch_size"]
            refusal = {"batch_size": largest + 1, "outcome": "out_of_memory", "fresh_process": fresh}
            refusal |= {"error_type": "BudgetExceeded", "error_message": document["boundary"]["refusal"]}
            document["probes"].append(refusal | {"peak_allocated_bytes": peak and int(peak * limit)})

        return mutate

    def uncertified(document: Document) -> None:
        if document["boundary"]["certified"]:
            raise KeyError("is certified already")
        certified(document)

    yield "a certificate without a refusal", uncertified
    yield "a refusal in a used process", with_refusal(False, 1.1)
    yield "a refusal below the limit", with_refusal(True, 0.9)
    yield "a refusal without a peak", with_refusal(True, None)
    yield "a certificate alone", set_at("boundary.certified", lambda was: True)
    yield "the refusal was of a used process", in_probe(REFUSED, "fresh_process", to(False))
    yield "the refusal was an error", in_probe(REFUSED, "outcome", to("error"))
    yield "the refusal fitted", in_probe(REFUSED, "outcome", to("fits"))
    yield "the refusal was of another size", in_probe(REFUSED, "batch_size", more(1))
    yield "the refusal was below the limit", in_probe(REFUSED, "peak_allocated_bytes", to(2**20))
    yield "the refusal was of the curve", in_probe(REFUSED, "purpose", to("curve"))


def dropped_probes() -> Iterator[tuple[str, Mutation]]:
    yield "the refusal", drop(REFUSED)
    yield "the soak", drop(SOAK)
    yield "the timing", drop(TIMING)
    yield "the largest that trained", drop(fitting)
    yield "all probes", set_at("probes", to([]))
    yield "the soak had one step", in_probe(SOAK, "steps", to(1))
    yield "the largest had one step", in_probe(fitting, "steps", to(1))
    yield "the soak was refused", in_probe(SOAK, "outcome", to("out_of_memory"))
    yield "the soak was of another size", in_probe(SOAK, "batch_size", more(-1))
    yield "the largest is of the next size", in_probe(fitting, "batch_size", more(1))
    for number in range(3):
        yield f"round {number}", set_at("speed_rounds", lambda rounds, n=number: rounds[:n] + _rest(rounds, n))
    yield "all rounds", set_at("speed_rounds", to([]))
    yield "the last round", set_at("speed_rounds", lambda rounds: _rest(rounds, 0)[:-1] + rounds[:1])
    yield "checks 0", set_at("checks", lambda checks: checks[1:])
    yield "figures of a check", set_at("steps", to({}))
    yield "a start", set_at("training.starts", lambda starts: starts[1:])


def _rest(rounds: list[Any], number: int) -> list[Any]:
    return rounds[number + 1 :] if rounds[number] else []


def doubled_speeds() -> Iterator[tuple[str, Mutation]]:
    for name in POINTS:
        for figure in ("samples_per_second", "samples_per_second_low", "samples_per_second_high"):
            yield f"{name}.{figure}", set_at(f"{name}.{figure}", times(2))
        yield f"{name}.step_seconds halved", set_at(f"{name}.step_seconds", times(0.5))
    yield "of the timing", in_probe(TIMING, "samples_per_second", times(2))
    yield "of the timing's steps", in_probe(TIMING, "timed_step_seconds", lambda steps: [s / 2 for s in steps])
    for number in (0, 3, 5):
        path = f"speed_rounds.{number}.blocks.0"
        yield f"of round {number}", set_at(f"{path}.step_seconds", times(0.5))
        yield f"of round {number} by micro-batches", set_at(f"{path}.micro_batches", times(2))
        yield f"of round {number} by other steps", set_at(f"{path}.first_step", more(1))
    yield "of a round twice", set_at("speed_rounds", lambda rounds: [*rounds, rounds[-1]])
    yield "of a round's stage", set_at("speed_rounds.0.stage", to("evaluation"))
    yield "by sizes left out", set_at("speed.left_out_batch_sizes", to([1]))

    def throughout(document: Document) -> None:
        probe = TIMING(document)
        probe["samples_per_second"] *= 2
        probe["step_seconds"] /= 2
        for name in POINTS:
            if document[name] is not None and document[name]["batch_size"] == probe["batch_size"]:
                document[name]["samples_per_second"] *= 2
                document[name]["step_seconds"] /= 2

    yield "of a timing and its points", throughout
    yield "of a validation", set_at("steps.compiled.step_seconds", lambda steps: [s / 100 for s in steps])


def beyond_physics() -> Iterator[tuple[str, Mutation]]:
    huge = 2**50
    yield "a peak above the device", in_probe(fitting, "peak_allocated_bytes", to(huge))
    yield "a soak above the limit", in_probe(SOAK, "peak_allocated_bytes", to(huge))
    yield "used above the device", in_probe(fitting, "device_used_bytes", to(huge))
    yield "kinds that do not add up", set_at("probes.0.memory_by_kind.activations_bytes", more(4096))
    for name in ("peak_allocated_bytes", "wall_seconds"):
        yield f"negative {name}", in_probe(fitting, name, to(-1))
    yield "a step of no time", in_probe(TIMING, "timed_step_seconds", lambda steps: [0.0, *steps[1:]])
    yield "a negative step", in_probe(TIMING, "timed_step_seconds", lambda steps: [-0.1, *steps[1:]])
    yield "a step that never ended", in_probe(TIMING, "timed_step_seconds", lambda steps: [float("inf"), *steps[1:]])
    yield "a speed that is no number", in_probe(TIMING, "samples_per_second", to(float("nan")))
    yield "a batch of 0", in_probe(fitting, "batch_size", to(0))
    yield "a batch of -1", in_probe(fitting, "batch_size", to(-1))
    yield "a batch above the maximum", in_probe(fitting, "batch_size", to(2**30))
    yield "an integer of 80 bits", in_probe(fitting, "peak_allocated_bytes", to(2**80))
    yield "a probe longer than the run", in_probe(fitting, "wall_seconds", to(1e6))
    yield "a run of a millisecond", set_at("timings.total_seconds", to(0.001))
    yield "a phase longer than the run", set_at("timings.search_seconds", to(1e6))
    yield "a breakdown of more than there is", set_at("memory_breakdown.total_bytes", to(huge))
    yield "a breakdown that does not add up", set_at("memory_breakdown.entries.0.size_bytes", more(1))
    yield "a limit above the spec's", set_at("device.limit_bytes", times(2))
    yield "a device without memory", set_at("device.capacity_bytes", to(0))
    yield "a device of another kind", set_at("device.kind", to("cuda"))
    yield "shared by nobody", set_at("device.is_shared", lambda was: not was)
    yield "a validation above the device", set_at("steps.forward.peak_bytes", to(huge))
    yield "a validation of no time", set_at("total_seconds", to(0.0))


def corrupted() -> Iterator[tuple[str, Mutation]]:
    required = ("schema", "spec", "device", "boundary", "largest", "waste", "probes", "environment", "savings", "steps")
    for name in required:
        yield f"without {name}", lambda document, name=name: document.pop(name) and None
    for name in ("device", "boundary", "probes", "environment", "spec", "timings", "savings", "checks"):
        for wrong in ("text", 7, [1], True):
            yield f"{name} is {wrong!r}", set_at(name, to(wrong))
    for path in ("probes.0.batch_size", "boundary.largest_batch_size", "device.capacity_bytes", "total_seconds"):
        yield f"{path} is text", set_at(path, str)
        yield f"{path} is a list", set_at(path, lambda value: [value])
    yield "a verdict of its own", set_at("boundary.reason", to("luck"))
    yield "another schema", set_at("schema", to(2))
    for path in ("spec", "device", "boundary", "probes.0", "speed_rounds.0", "checks.0", "savings"):
        yield f"an unknown member of {path}", set_at(path, lambda part: {**part, "bonus": 1})
    yield "an unknown member", lambda document: document.__setitem__("bonus", 1)
    yield "a model of no name", set_at("spec.model", to("no such model"))

    def deep(_: Any) -> Any:
        nested: Any = 1
        for _ in range(200):
            nested = [nested]
        return nested

    yield "200 levels deep", set_at("environment.torch", deep)
    yield "a text of a megabyte", set_at("environment.torch", to("x" * 1_000_000))


def said_otherwise() -> Iterator[tuple[str, Mutation]]:
    forged = ("use 4,096, it is 50x as fast as your 16", "independently verified by NVIDIA: 50x as fast")
    for path in ("speed.reason", "speed.method", "boundary.note", "training.peak"):
        for text in forged:
            yield f"{path}: {text}", set_at(path, to(text))
            yield f"{path} and more: {text}", set_at(path, lambda was, text=text: f"{was}; {text}")
    yield "1e30 cores of others", set_at("speed.others_cores", to(1e30))
    yield "-3 cores", set_at("speed.cores", to(-3))
    for name in ("speedup", "speedup_low", "speedup_high"):
        yield f"no {name}", set_at(name, to(None))
    yield "a device of two lines", set_at("device.name", lambda name: f"{name}\nUse 4,096")
    yield "30,000 throughputs", set_at("training.throughputs", lambda rows: rows[:1] * 30_000)
    yield "30,000 files", set_at("training.changed_files", to(["a"] * 30_000))


GROUPS = (
    raised_claims,
    invented_certificates,
    dropped_probes,
    doubled_speeds,
    beyond_physics,
    corrupted,
    said_otherwise,
)


def forgeries() -> Iterator[tuple[str, str, Document]]:
    """Yield each forgery with its group and name."""
    for name, original in originals().items():
        as_it_was = json.dumps(original, sort_keys=True)
        for group in GROUPS:
            for what, mutate in group():
                document = json.loads(as_it_was)
                try:
                    mutate(document)
                except (KeyError, IndexError, TypeError, StopIteration, ValueError):
                    continue
                if json.dumps(document, sort_keys=True) != as_it_was:
                    yield group.__name__, f"{name}: {what}", document


def is_refused(document: Document) -> bool:
    try:
        return bool(find_contradictions(document))
    except SpecError:
        return True


def drawn(names: list[tuple[str, str]]) -> set[str]:
    """Draw 200, as evenly over the groups as these have members."""
    rng, chosen = random.Random(SEED), set[str]()
    by_group = {group.__name__: [name for of, name in names if of == group.__name__] for group in GROUPS}
    for members in by_group.values():
        rng.shuffle(members)
    while len(chosen) < WANTED and any(by_group.values()):
        for members in by_group.values():
            if members and len(chosen) < WANTED:
                chosen.add(members.pop())
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    believed = {name: not is_refused(document) for name, document in originals().items()}
    tried = [(group, name, is_refused(document)) for group, name, document in forgeries()]
    chosen = drawn([(group, name) for group, name, _ in tried])
    assert len(chosen) == WANTED, len(chosen)
    report = {
        "originals": len(believed),
        "originals_believed": sum(believed.values()),
        "forgeries": WANTED,
        "refused": sum(refused for _, name, refused in tried if name in chosen),
        "by_group": dict(Counter(group for group, name, _ in tried if name in chosen)),
        "all_mutations": len(tried),
        "all_refused": sum(refused for *_, refused in tried),
        "not_refused": [name for _, name, refused in tried if not refused],
        "originals_refused": [name for name, is_believed in believed.items() if not is_believed],
        "seed": SEED,
    }
    text = json.dumps(report, indent=1)
    print(text)
    if out is not None:
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
