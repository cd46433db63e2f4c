"""PURE: the twelve experiments in their order, and the classic runs after them, each with the parts it is run in."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.card_experiments import expectations, judging
from benchmarks.card_experiments.setting import CannotRun, Experiment, Part, Setting, Watch

_PROGRAMS = "benchmarks.card_experiments"
_CLASSIC_SETTINGS = {
    "forward_backward": ("--mode", "eval", "--optimizer", "none", "--precision", "fp32"),
    "adamw_bf16": ("--mode", "train", "--optimizer", "adamw", "--precision", "bf16"),
}


def _engine(setting: Setting, model: str, *options: str) -> tuple[str, ...]:
    return "-m", "engine", model, setting.device, *options, "--events"


def _program(setting: Setting, name: str, *arguments: object) -> tuple[str, ...]:
    return "-m", f"{_PROGRAMS}.{name}", setting.device, *map(str, arguments)


def _limited_run(setting: Setting) -> list[Part]:
    return [Part("run", _engine(setting, "bert-tiny", "--memory-limit", "2GiB"), 150)]


def _calibrations(setting: Setting) -> list[Part]:
    command = ("-m", "engine", "calibrate", setting.device, "--json")
    return [Part(f"run {i}", command, 60) for i in range(1, setting.scale.calibrations + 1)]


def _release(setting: Setting) -> list[Part]:
    return [Part("kills", _program(setting, "release", setting.held_bytes, setting.scale.kills), 240)]


def _patterns(setting: Setting) -> list[Part]:
    scale = setting.scale
    counts = ("--patterns", str(scale.patterns), "--events", str(scale.events))
    script = ("benchmarks/allocator_on_device.py", "--device", setting.device, "--patterns-of")
    return [Part(kind, (*script, kind, *counts), 240) for kind in ("plain", "limited", "expandable")]


def _predictions(setting: Setting) -> list[Part]:
    script = ("benchmarks/allocator_on_device.py", "--device", setting.device, "--prediction-of")
    return [
        Part(f"{name} {precision}", (*script, name, precision), 120) for name, precision in setting.scale.predictions
    ]


def _repeated_run(setting: Setting) -> list[Part]:
    command = _engine(setting, setting.scale.transformer, "--precision", "bf16")
    names = [f"run {i}" for i in range(1, setting.scale.repeats + 1)]
    return [Part(name, command, 420, watch=Watch.PROCESS_MEMORY) for name in names]


def _plain_loop(setting: Setting) -> list[Part]:
    largest = setting.result_of_six()["boundary"]["largest_batch_size"]
    steps = setting.scale.loop_steps

    def command(size: int) -> tuple[str, ...]:
        return _program(setting, "plain_loop", setting.scale.transformer, size, steps)

    return [Part("N", command(largest), 420), Part("N+1", command(largest + 1), 420)]


def _speed_near_the_limit(setting: Setting) -> list[Part]:
    cnn, scale = setting.scale.cnn, setting.scale
    run = Part("run", _engine(setting, cnn), 480)
    seen = setting.earlier.get(9, {}).get("run")
    if seen is None:
        return [run]
    largest = ((seen.get("result") or {}).get("boundary") or {}).get("largest_batch_size") or 0
    if largest <= expectations.STEP_BELOW:
        return [run]  # it is judged for what it is
    sizes = {"N": largest, f"N-{expectations.STEP_BELOW}": largest - expectations.STEP_BELOW}
    return [run] + [
        Part(name, _sustained(setting, {"model": cnn}, size, scale.speed_seconds), 120, watch=Watch.CLOCKS)
        for name, size in sizes.items()
    ]


def _sustained(setting: Setting, spec: dict[str, Any], size: int, seconds: float) -> tuple[str, ...]:
    return _program(setting, "sustained", json.dumps(spec), size, seconds)


def _expandable_run(setting: Setting) -> list[Part]:
    command = _engine(setting, setting.scale.transformer, "--precision", "bf16")
    return [Part("run", command, 420, environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True"})]


def _run_beside_a_tenant(setting: Setting) -> list[Part]:
    command = _engine(setting, setting.scale.transformer, "--precision", "bf16")
    return [Part("run", command, 480, watch=Watch.TENANT)]


def _sustained_speed(setting: Setting) -> list[Part]:
    result = setting.result_of_six()
    points = {name: result[name] for name in ("current", "recommended") if result[name] is not None}
    if not points:
        raise CannotRun("experiment 6 timed neither the current nor the recommended size")
    spec = {"model": setting.scale.transformer, "precision": "bf16"}
    seconds = setting.scale.sustained_seconds
    return [
        Part(name, _sustained(setting, spec, point["batch_size"], seconds), seconds + 60, watch=Watch.CLOCKS)
        for name, point in points.items()
    ]


def _classic_runs(setting: Setting) -> list[Part]:
    return [
        Part(f"{model} {name}", _engine(setting, model, *_CLASSIC_SETTINGS[name]), 480)
        for model, name in setting.scale.classic
    ]


def _nothing_new(setting: Setting) -> list[Part]:
    setting.result_of_six()
    return []  # it was watched during experiment 6


EXPERIMENTS = (
    Experiment(1, "a first run under a limit", _limited_run, expectations.limited_run, judging.limited_run),
    Experiment(2, "the card's own constants", _calibrations, expectations.constants, judging.constants, True),
    Experiment(3, "memory after kill -9", _release, expectations.release, judging.release, True),
    Experiment(4, "the allocator, event for event", _patterns, expectations.patterns, judging.patterns),
    Experiment(5, "predicted peaks", _predictions, expectations.predictions, judging.predictions),
    Experiment(6, "the same run again", _repeated_run, expectations.repeats, judging.repeats),
    Experiment(7, "N and N+1 in a plain loop", _plain_loop, expectations.plain_loop, judging.plain_loop),
    Experiment(8, "the driver's count", _nothing_new, expectations.driver_count, judging.driver_count, True),
    Experiment(9, "speed near the limit", _speed_near_the_limit, expectations.near_limit, judging.near_limit, True),
    Experiment(10, "expandable segments", _expandable_run, expectations.expandable, judging.expandable),
    Experiment(11, "a tenant that comes and stays", _run_beside_a_tenant, expectations.tenant, judging.tenant),
    Experiment(12, "sustained speed", _sustained_speed, expectations.sustained, judging.sustained, True),
    Experiment(13, "the classic models", _classic_runs, expectations.classic, judging.classic),
)
BY_NUMBER = {experiment.number: experiment for experiment in EXPERIMENTS}
