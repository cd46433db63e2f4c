"""The settings of a RunSpec as options of a command line: the same terms for measuring and for estimating."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import rich_click as click
from rich_click import RichArgument, RichOption

from ..errors import SpecError
from ..facts.result import DeviceFacts
from ..machine.device_lock import held_for_command, inherited_locks
from ..machine.execution import Emit
from ..program import PROGRAM
from ..settings.catalog.from_config import CONFIG, SIZE_BYTES_MAX, TASKS
from ..settings.rank_settings import OF_STARTS
from ..settings.setting import Role, Setting
from ..settings.spec import MAX_BATCH_SIZE, SETTINGS, RunSpec
from ..settings.spec_checks import is_of_bytes, numbers_setting, out_of_range, settings_of, value_types
from ..settings.workload_settings import OF_CONFIG
from .command import ADVANCED, OUTPUT, TRAIN, WHERE, Text, argument, flag, option
from .printing.output import info_event

DEVICES = "auto, cuda, cuda:1, xpu, mps or cpu"
FILE = click.Path(path_type=Path)
ONLY_MEASURED = [name for name, each in SETTINGS.items() if each.role in (Role.LIMIT, Role.ASSUMPTION)]
"""Settings that make no difference to an estimate, or are given in other words there."""
USUAL = frozenset(
    ("sequence_length", "image_size", "precision", "optimizer", "accumulation_steps", "gradient_checkpointing")
    + ("torch_compile", "lora_rank", "load_in_4bit", "ranks", "strategy", "current_batch_size", "memory_limit_bytes")
    + ("check_batch_size", "time_budget_seconds", "reserve_fraction")
)
"""The settings of a run that `--help` shows; the others are in `--help-all`."""

_PANELS = {Role.PLACE: WHERE, Role.LIMIT: WHERE, Role.ASSUMPTION: ADVANCED}


def model_argument() -> RichArgument:
    return argument("model", type=Text("id"), panel=TRAIN, help=f"Such as bert: see `{PROGRAM} list models`")


def device_arguments() -> list[click.Parameter]:
    return [
        argument("device", type=Text("id"), panel=WHERE, help=DEVICES),
        option("--device", "device_option", panel=ADVANCED, metavar="ID", help="Device, as an option"),
    ]


def setting_options(
    spec_class: type, *, only: Collection[str] | None = None, leave_out: Collection[str] = ()
) -> list[RichOption]:
    others = {"model", "device", "reserve_bytes", *OF_CONFIG, *leave_out}  # --reserve reads bytes, too
    names = settings_of(spec_class) if only is None else only
    return [_setting_option(spec_class, name) for name in names if name not in others]


def _setting_option(spec_class: type, name: str) -> RichOption:
    each, kind = settings_of(spec_class)[name], value_types(spec_class)[name].kind
    names = (each.option or f"--{name.replace('_', '-')}", name)
    is_rare = name in SETTINGS and name not in USUAL
    panel = ADVANCED if is_rare else _PANELS.get(each.role, TRAIN)
    if kind is bool:
        return flag(*names, panel=panel, help=each.summary)
    default = next(field.default for field in fields(spec_class) if field.name == name)
    shown = each.when_left_out if default is None else f"{default:g}" if kind is float else str(default)
    return option(
        *names,
        panel=panel,
        type=str if is_of_bytes(name) or name == "reserve_fraction" else kind,
        metavar=each.metavar or ("SIZE" if is_of_bytes(name) else "N" if kind is int else "NAME"),
        help=f"{each.summary}: {_values(each)}" if each.choices else each.summary,
        default_text=shown if shown != "" else "none",
    )


def _values(of: Setting) -> str:
    return ", ".join([*filter(None, of.choices or ()), *([f"or {of.text_values.allowed}"] if of.text_values else [])])


def config_options() -> list[RichOption]:
    return [
        option("--config", type=FILE, panel=TRAIN, metavar="FILE", help="Hugging Face config.json in place of a model"),
        option("--task", panel=ADVANCED, metavar="NAME", help=f"Task of that config: {', '.join(TASKS)}"),
    ]


def spec_option() -> RichOption:
    return option("--spec", panel=ADVANCED, metavar="JSON", help="Settings as JSON in place of options")


def output_options() -> list[RichOption]:
    file_help = "Also write exit status and result to this file"
    return [
        wait_option(),
        json_option(),
        events_option(),
        option("--result-file", type=FILE, panel=ADVANCED, metavar="FILE", help=file_help),
    ]


def start_options(*, is_usual: bool) -> list[RichOption]:
    """Return the options of emulated ranks and of comparing speeds; `is_usual`: whether `--help` shows rare ones."""
    emulate, rank, compare = (OF_STARTS[name] for name in ("emulate_ranks", "rank", "compare_speed"))
    return [
        option("--emulate-ranks", type=int, panel=TRAIN, metavar="N", help=emulate.summary),
        option("--rank", panel=ADVANCED, metavar=rank.metavar, help=rank.summary, default_text=rank.when_left_out),
        option(
            "--compare-speed/--no-compare-speed",
            panel=TRAIN if is_usual else ADVANCED,
            default=None,
            help=compare.summary,
            default_text=compare.when_left_out,
        ),
    ]


def ranks_option(text: str) -> tuple[int, ...]:
    """Read the ranks to stand in for. Raises SpecError for anything but a list of numbers."""
    return numbers_setting("rank", text, "0,1,7")


def wait_option() -> RichOption:
    return flag("--wait-for-device", panel=WHERE, help="Wait while another run holds the device")


def json_option(text: str = "Print the result as one JSON document") -> RichOption:
    return flag("--json", panel=OUTPUT, help=text)


def events_option() -> RichOption:
    return flag("--events", panel=ADVANCED, help="Print one JSON line per event")


def device_hold(emit: Emit, *, waits: bool) -> Callable[[DeviceFacts], AbstractContextManager[int]] | None:
    """Return what takes a device's lock for this command; None where a portal's worker holds it already."""
    if inherited_locks():
        return None
    wait_seconds = math.inf if waits else 0.0
    return partial(
        held_for_command, wait_seconds=wait_seconds, on_wait=lambda busy: emit(info_event(f"waiting: {busy}"))
    )


def config_given(options: SimpleNamespace) -> dict[str, Any]:
    """Return the settings of the config named on the command line; empty without one."""
    if options.config is None:
        return {} if options.task is None else {"task": options.task}
    if options.model is not None:
        raise SpecError("config", f"stands in place of a model; leave out {options.model}")
    from ..training_files.entries import text_of  # here, as it loads a reader of YAML

    text = text_of(options.config, "config", SIZE_BYTES_MAX)
    return {"model": CONFIG, "config": text, "task": options.task}


def settings_given(options: SimpleNamespace, settings: Iterable[str] = SETTINGS) -> dict[str, Any]:
    device, device_option = getattr(options, "device", None), getattr(options, "device_option", None)
    if device and device_option and device != device_option:
        raise SpecError("device", f"given twice: {device} and {device_option}")
    named = {name: getattr(options, name, None) for name in settings if name not in OF_CONFIG}
    named["device"] = device or device_option
    return {name: value for name, value in named.items() if value is not None} | config_given(options)


def json_of(field: str, text: str | TextIO) -> Any:
    """Read the JSON of an option, or of the file it names. Raises SpecError of this field for anything else."""
    try:
        return json.loads(text if isinstance(text, str) else text.read())
    except (ValueError, RecursionError) as exc:
        raise SpecError(field, f"is not valid JSON: {exc}") from exc


def in_range(batch_size: int) -> int:
    """Return a batch size. Raises SpecError for a size that no search would try."""
    if not 1 <= batch_size <= MAX_BATCH_SIZE:
        raise SpecError("batch_size", out_of_range(batch_size, 1, MAX_BATCH_SIZE))
    return batch_size


def spec_given(given: dict[str, Any], document: str | None) -> dict[str, Any]:
    if document is None and "model" not in given:
        raise SpecError("model", "is required, such as bert")
    if document is None:
        return given
    if given:
        raise SpecError("spec", f"replaces all settings; leave out {', '.join(given)}")
    settings: dict[str, Any] = json_of("spec", document)
    return settings


def spec_of(given: dict[str, Any], document: str | None) -> RunSpec:
    return RunSpec.from_dict(spec_given(given, document))
