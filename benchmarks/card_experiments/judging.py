"""PURE: from what the parts of an experiment saw to its verdict, and what it means where it differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.card_experiments import expectations as expected
from benchmarks.card_experiments.setting import CannotRun, Experiment, Judgement, Seen, Setting, Verdict
from engine.errors import DeviceUnavailable
from engine.text.units import MIB, format_bytes

POISONED_FORK = "Cannot re-initialize CUDA"


def judge(experiment: Experiment, seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    """Judge an experiment whose parts are all done. On the stand-in some answers say nothing, whatever they are."""
    if (obstacle := _obstacle(seen)) is not None:
        return Judgement(Verdict.NOT_RUN, "", obstacle)
    try:
        judgement = experiment.judge(seen, setting)
    except CannotRun as reason:
        return Judgement(Verdict.NOT_RUN, "", str(reason))
    if experiment.is_about_the_card and setting.machine.is_stand_in:
        said = f"a card that showed this would be judged: {judgement.verdict}"
        return Judgement(Verdict.SAYS_NOTHING, judgement.seen, f"{said}; {judgement.meaning}".rstrip("; "))
    return judgement


def _obstacle(seen: Mapping[str, Seen]) -> str | None:
    for name, part in seen.items():
        if part.get("timed_out"):
            return f"{name}: {part['error']}"
        if part.get("exit_status") == DeviceUnavailable.exit_status and not part.get("result"):
            return f"{name}: {part.get('error', 'the device is not available')}"
    return None


def _failures(seen: Mapping[str, Seen]) -> list[str]:
    return [f"{name} failed: {part['error']}" for name, part in seen.items() if part.get("error")]


def _answered(seen: Mapping[str, Seen]) -> list[tuple[str, Seen]]:
    return [(name, part) for name, part in seen.items() if not part.get("error")]


def _with_failures(seen: Mapping[str, Seen], judgement: Judgement) -> Judgement:
    """The judgement on the parts that answered, and what the others died of."""
    if not (failures := _failures(seen)):
        return judgement
    meaning = "; ".join([*failures, judgement.meaning] if judgement.meaning else failures)
    return Judgement(Verdict.DIFFERS, judgement.seen, meaning)


def _judged(problems: Sequence[str], seen: str, meaning: str) -> Judgement:
    """As expected where there is no problem; else what is wrong, and what that means."""
    if not problems:
        return Judgement(Verdict.AS_EXPECTED, seen)
    return Judgement(Verdict.DIFFERS, seen, f"{'; '.join(problems)}: {meaning}")


def _boundary(result: Mapping[str, Any]) -> str:
    boundary = result["boundary"]
    kind = "certified" if boundary["certified"] else f"not certified ({boundary['reason']})"
    return f"N {boundary['largest_batch_size']} {kind}"


def _soak(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The probe of the largest size's soak; empty where there was none."""
    fitting = [p for p in result["probes"] if p["purpose"] == "soak" and p["outcome"] == "fits"]
    return max(fitting, key=lambda p: p["batch_size"], default={})


def limited_run(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    if failures := _failures(seen):
        is_poisoned = any(POISONED_FORK in text for text in failures)
        meaning = "an import poisons the fork" if is_poisoned else "stop here and mend it"
        return Judgement(Verdict.DIFFERS, "; ".join(failures), meaning)
    part = seen["run"]
    result, seconds = part["result"], part["seconds"]
    boundary = result["boundary"]
    peak = max((p["peak_reserved_bytes"] or 0 for p in result["probes"] if p["outcome"] == "fits"), default=0)
    problems = []
    if not boundary["certified"]:
        problems.append(f"not certified ({boundary['reason']}: {boundary['note'] or boundary['refusal']})")
    if boundary["soak_steps"] != expected.SOAK_STEPS:
        problems.append(f"a soak of {boundary['soak_steps']} steps")
    if peak > expected.LIMIT_BYTES:
        problems.append(f"{peak:,} B were reserved, more than the limit")
    if "allowed" not in (boundary["refusal"] or ""):
        problems.append("the refusal does not name the limit: it is of the whole card")
    if seconds > expected.FIRST_RUN_SECONDS and not setting.machine.is_stand_in:
        problems.append(f"it took {seconds:.0f} s")
    text = f"{_boundary(result)}, soak {boundary['soak_steps']}, peak reserved {peak:,} B, {seconds:.0f} s"
    return _judged(problems, text, "look at this before anything else")


def constants(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    if failures := _failures(seen):
        return Judgement(
            Verdict.DIFFERS, "; ".join(failures), "not alone on the card, or the method does not work here"
        )
    runs = list(seen.values())
    contexts = [run["context_bytes"] for run in runs]
    spaces = sorted({(run["cublas_workspace_bytes"], run["autograd_workspace_bytes"]) for run in runs})
    lt = sorted({run["cublaslt_workspace_bytes"] or 0 for run in runs})
    want, (least, most) = expected.workspace_bytes(setting.machine), expected.context_bytes(setting.machine)
    problems = []
    if spaces != [(want, want)]:
        problems.append("the workspaces are others: the catalogue's rule is wrong for this card")
    if lt != [0]:
        problems.append("cuBLASLt takes a workspace of its own: the rule of one workspace for both is wrong")
    if max(contexts) - min(contexts) > expected.SAME_BYTES:
        problems.append("the contexts differ: lazy loading, or not alone")
    if not all(least <= context <= most for context in contexts):
        problems.append("the context is out of its range: enter it in the catalogue")
    text = (
        f"workspaces {' / '.join(f'{a:,} and {b:,} B' for a, b in spaces)}, cuBLASLt {', '.join(map(str, lt))} B, "
        f"contexts {', '.join(f'{context:,}' for context in contexts)} B"
    )
    return _judged(problems, text, "calibrate before quoting estimates")


def release(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    if failures := _failures(seen):
        return Judgement(Verdict.DIFFERS, "; ".join(failures), "nothing is known of the release")
    kills = seen["kills"]["kills"]
    late = [kill for kill in kills if kill["held_after_bytes"] > expected.SAME_BYTES]
    text = f"{len(kills) - len(late)} of {len(kills)} times free at once"
    if late:
        longest = max((kill["settled_seconds"] or float("inf") for kill in late), default=0)
        text += f"; at most {max(kill['held_after_bytes'] for kill in late):,} B later than that, for {longest:.2f} s"
    meaning = "wait for the free memory to settle before a fresh session, else there are false refusals"
    return _judged([f"the release is late {len(late)} times"] if late else [], text, meaning)


def patterns(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    problems, counts = [], []
    for name, part in _answered(seen):
        differences = part["differences"]
        counts.append(f"{name} {len(differences)} of {part['patterns']} patterns x {part['events_each']} events")
        if differences:
            problems.append(f"{name}, first at event {differences[0]['number']} of seed {differences[0]['seed']}")
    meaning = "only ties by address: the driver reuses addresses in another order; anything else: granularity"
    return _with_failures(seen, _judged(problems, "differences in " + ", ".join(counts), meaning))


def predictions(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    problems, texts = [], []
    approximate, missed = [], []
    for name, part in _answered(seen):
        errors = part["errors"]
        texts.append(f"{name} {errors['peak_allocated_bytes']:+.1%} / {errors['peak_reserved_bytes']:+.1%}")
        least, most = expected.prediction_bounds(part["name"])
        if part["predicted"]["method"] != expected.TESTED_METHOD:
            approximate.append(name)
        if not all(least <= error <= most for error in errors.values()):
            missed.append(name)
    if approximate:
        problems.append(f"{', '.join(approximate)} by the approximate method (CUDA was open before the trial)")
    if missed:
        problems.append(f"{', '.join(missed)} out of bounds")
    meaning = "transformers off: another attention kernel than engine/estimate/tracing/attention.py says"
    return _with_failures(seen, _judged(problems, "allocated / reserved: " + ", ".join(texts), meaning))


def _search_counts(result: Mapping[str, Any]) -> tuple[int, int]:
    probes = [p for p in result["probes"] if p["purpose"] in ("search", "confirm")]
    return len(probes), sum(p["outcome"] != "fits" for p in probes)


def repeats(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    if failures := _failures(seen):
        return Judgement(Verdict.DIFFERS, "; ".join(failures), "read the text; the search was cut")
    results = [part["result"] for part in seen.values()]
    sizes = [result["boundary"]["largest_batch_size"] for result in results]
    peaks = [(_soak(r).get("peak_allocated_bytes"), _soak(r).get("peak_reserved_bytes")) for r in results]
    counts = [_search_counts(result) for result in results]
    problems = []
    if not all(result["boundary"]["certified"] for result in results):
        problems.append("not every run is certified")
    if len(set(sizes)) > 1:
        problems.append('N moves (the driver\'s count drifts, or plans of cuDNN): "exact" needs a +-1')
    elif len(set(peaks)) > 1:
        problems.append("the peaks are not the same to the byte")
    if any(probes > expected.MOST_PROBES or refusals > expected.MOST_REFUSALS for probes, refusals in counts):
        problems.append("the search was dearer than it should be: see how far the estimate was off")
    text = (
        f"{', '.join(_boundary(result) for result in results)}; peaks allocated / reserved "
        f"{', '.join(f'{a} / {r} B' for a, r in dict.fromkeys(peaks))}; probes (refused) "
        f"{', '.join(f'{probes} ({refusals})' for probes, refusals in counts)}"
    )
    return _judged(problems, text, "compare the probes of the runs")


def plain_loop(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    problems = []
    for name, part in seen.items():
        if part.get("error") and not part.get("out_of_memory"):
            problems.append(f"{name} failed: {part['error']}")
    if problems:
        return Judgement(Verdict.DIFFERS, "; ".join(problems), "the loop itself fails, so nothing is said of N")
    below, above = seen["N"], seen["N+1"]
    if below["out_of_memory"]:
        problems.append("N runs out of memory: find what the loop holds (old logits, gradients at forward)")
    if not above["out_of_memory"]:
        problems.append("N+1 trains: the engine refuses more than the card does")
    text = "; ".join(
        f"{name} ({part['batch_size']}) "
        + (f"out of memory in step {part['steps'] + 1}" if part["out_of_memory"] else f"trained {part['steps']} steps")
        for name, part in seen.items()
    )
    return _judged(problems, text, "the certificate does not hold in real loops")


def driver_count(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    watched, result = setting.earlier.get(6, {}).get("run 1", {}), setting.result_of_six()
    soak, device = _soak(result), result["device"]
    if not soak or soak["device_used_bytes"] is None:
        raise CannotRun("experiment 6 had no soak whose memory was counted")
    idle = device["foreign_used_bytes"] or 0
    said = soak["device_used_bytes"] - idle
    counted, whose = watched.get("process_bytes_in_soak"), "of the process"
    if counted is None and watched.get("card_bytes_in_soak") is not None:
        counted, whose = watched["card_bytes_in_soak"] - idle, "of the card less its idle use: processes are hidden"
    if counted is None:
        raise CannotRun("the driver counted nothing while the soak ran: it was too short, or there is no NVML")
    text = f"engine {said:,} B, driver {counted:,} B ({whose}), {counted - said:+,} B"
    is_off = abs(counted - said) > expected.DRIVER_COUNT_BYTES
    return _judged(
        [f"off by {format_bytes(abs(counted - said))}"] if is_off else [],
        text,
        "the driver counts otherwise, and the memory_bytes of a point is wrong",
    )


def near_limit(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    problems = _failures(seen)
    if problems:
        return Judgement(Verdict.DIFFERS, "; ".join(problems), "convolutions on this card need a look")
    result = seen["run"]["result"]
    retries = _soak(result).get("allocator_retries") or 0  # the search's own come from processes that ran other sizes
    text = f"{_boundary(result)}, retries {retries} in the soak"
    if not result["boundary"]["certified"]:
        problems.append("not certified")
    if retries:
        problems.append("the allocator had to flush its cache")
    below = f"N-{expected.STEP_BELOW}"
    if "N" in seen and below in seen:
        fraction = seen["N"]["samples_per_second"] / seen[below]["samples_per_second"] - 1
        text += f", N against {below} {fraction:+.1%}"
        if abs(fraction) > expected.SPEED_FRACTION:
            problems.append('cuDNN falls to a plan with less workspace near the limit; say so beside "largest"')
    else:
        problems.append("there is no size to compare with")
    return _judged(problems, text, "the largest size is not worth what it seems")


def expandable(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    if failures := _failures(seen):
        is_driver = any("driver error" in text for text in failures)
        meaning = (
            "the driver's out-of-memory is in no list of engine/measurement/oom.py" if is_driver else "read the text"
        )
        return Judgement(Verdict.DIFFERS, "; ".join(failures), meaning)
    result, plain = seen["run"]["result"], setting.result_of_six()["boundary"]["largest_batch_size"]
    largest = result["boundary"]["largest_batch_size"] or 0
    problems = [] if result["boundary"]["certified"] else [f"not certified: {result['boundary']['note']}"]
    if largest < plain:
        problems.append("less fits than with the default allocator")
    return _judged(problems, f"{_boundary(result)}; {plain} in experiment 6", "expandable segments are handled wrongly")


def tenant(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    if failures := _failures(seen):
        return Judgement(Verdict.DIFFERS, "; ".join(failures), "a tenant ends the run instead of its certificate")
    part = seen["run"]
    if not part["tenant"].get("took_bytes"):
        raise CannotRun("the tenant got no memory while the run went on")
    boundary = part["result"]["boundary"]
    text = f"{_boundary(part['result'])}; {boundary['note'] or 'no note'}"
    if boundary["certified"]:
        return _judged(["a boundary is certified that others made"], text, "other people's memory is in certificates")
    is_named = boundary["reason"] == "foreign_memory"
    return _judged([] if is_named else ["the tenant is not named"], text, "the reason that is given is a wrong one")


def sustained(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    if failures := _failures(seen):
        return Judgement(Verdict.DIFFERS, "; ".join(failures), "nothing is known of sustained speed")
    result, most = setting.result_of_six(), expected.sustained_fraction(setting.machine)
    problems, texts = [], []
    for name, part in seen.items():
        engines = result[name]["step_seconds"]
        if engines is None:
            raise CannotRun(f"the engine did not time the {name} size")
        fraction = part["mean_step_seconds"] / engines - 1
        texts.append(f"{name} ({part['batch_size']}) {fraction:+.1%} over {part['steps']} steps{_clocks(part)}")
        if fraction > most or fraction < -expected.SUSTAINED_FRACTION:
            problems.append(f"{name} is {fraction:+.1%} off")
    return _judged(problems, "; ".join(texts), "the 3 % rule and the speed-up need sustained timing")


def _clocks(part: Seen) -> str:
    clocks = part.get("clocks_while_running") or {}
    if clocks.get("sm_clock_mhz") is None:
        return ""
    least, middle, most = clocks["sm_clock_mhz"]
    reasons = ", ".join(f"{name} {share:.0%}" for name, share in clocks["throttle_reasons"].items()) or "none"
    return f", SM clock {least:.0f} to {most:.0f} MHz (median {middle:.0f}), throttled: {reasons}"


def classic(seen: Mapping[str, Seen], setting: Setting) -> Judgement:
    problems, texts = [], []
    for name, part in _answered(seen):
        result = part["result"]
        used = (result["largest"] or {}).get("memory_bytes")
        texts.append(f"{name}: {_boundary(result)}" + (f", {used / MIB:,.0f} MiB" if used else ""))
        if not result["boundary"]["certified"]:
            problems.append(f"{name} is not certified")
    return _with_failures(seen, _judged(problems, "; ".join(texts), "read the notes of these runs"))
