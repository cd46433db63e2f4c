"""`python -m engine tune -- python train.py --batch-size {batch_size}`: the exact batch size of a training command."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import rich_click as click

from ..describe.ranks import describe_emulation, describe_imbalance, describe_spread, rank_peaks, rank_rows
from ..errors import EngineError, SpecError
from ..facts.run_kind import RunKind
from ..program import PROGRAM, how_to_install
from ..settings.spec_checks import given_fields
from ..text.units import format_bytes, sentence_case
from ..trainings.script.faster.variants import BY_NAME
from ..trainings.script.ranked_spec import check_devices, on_seen_device
from ..trainings.script.result import Throughput, TuneResult, describe_loader, stated_throughputs
from ..trainings.script.spec import (
    BATCH_SIZE,
    CONFIG,
    FUNCTION,
    OUT,
    TEMPLATE,
    WARM,
    WAYS_BY_NAME,
    FunctionSpec,
    TuneSpec,
    function_command,
)
from ..trainings.script.start.config_file import number_in_config
from ..trainings.script.start.several_hosts import check_one_host
from ..trainings.script.start.warm_server_handle import warm_starts
from .command import TRAIN, WHERE, Command, argument, flag, option
from .exit_status import EXIT_STATUSES, exit_status
from .options import json_of, output_options, ranks_option, setting_options, spec_option, start_options
from .printing.console import receiver
from .printing.output import info_event, print_json
from .printing.result_text import say_result
from .reporting import Reporting, report_options, report_output_option

OF_A_FUNCTION = ("function", "python", "warm")
"""Options in place of a command."""
HELP = f"""Find the exact largest batch size that your own script trains.

The script stays as it is. It is started a few times; each start trains a few optimizer steps, is watched from
inside, and is ended. MemoryMark puts the size to try in place of {BATCH_SIZE}, and a fresh folder in place of {OUT}.
Your files stay as they are, whatever the script does: what a start writes or removes is undone.

\b
{PROGRAM} tune -- python train.py --batch-size {BATCH_SIZE}
{PROGRAM} tune --batch hf -- torchrun run_clm.py config.yaml
{PROGRAM} tune --batch dataloader --memory-limit 24GiB -- python train.py
{PROGRAM} tune --batch-in c.yaml:batch_size -- python train.py c.yaml
{PROGRAM} tune --function package.module:make_step
{PROGRAM} tune --faster -- python train.py
"""


def _tune_or_say_why_not(options: SimpleNamespace) -> int:
    try:
        return _tune(options, list(options.command))
    except EngineError as error:
        if options.json:
            print_json({"error": error.to_dict()})
        raise


def _tune(options: SimpleNamespace, command: list[str]) -> int:
    if options.faster:
        if options.emulate_ranks is not None:
            raise SpecError("faster", "times steps, and emulated ranks exchange nothing: leave out --emulate-ranks")
        check_one_host(command, os.environ)
        from .tune_faster import faster

        return faster(options, command)
    if options.tried is not None:
        raise SpecError("try", "is for --faster")
    spec = _spec(options, command)
    if isinstance(spec, TuneSpec):
        spec.check_program()
        spec.check_script()
        number_in_config(spec)
        check_one_host(spec.command, os.environ, is_emulated=bool(spec.emulated_ranks))
    return measure_starts(spec, options, may_overwrite=options.may_overwrite, keep_outputs=options.keep_outputs)


def show_result(result: TuneResult) -> None:
    say_result(result.result, training_lines(result))


def measure_starts(
    spec: TuneSpec | FunctionSpec,
    options: SimpleNamespace,
    *,
    may_overwrite: bool = False,
    keep_outputs: str | None = None,
    show: Callable[[TuneResult], None] = show_result,
) -> int:
    from ..trainings.script.devices import devices_held, devices_seen  # here, so that arguments are refused before
    from ..trainings.script.run import tune

    if isinstance(spec, TuneSpec) and spec.catalogue:
        seen = devices_seen(spec)
        check_devices(spec, seen)
        spec = on_seen_device(spec, seen)
    reporting = Reporting.of(options)
    work, wait_seconds = f"{PROGRAM} tune {spec.model}", math.inf if options.wait_for_device else 0.0
    with receiver(options, spec.to_dict()) as emit, reporting.run(RunKind.COMMAND, spec, emit) as run:
        if advice := how_to_install(Path.cwd()):
            emit(info_event(advice))

        def on_wait(busy: str) -> None:
            run.emit(info_event(f"waiting: {busy}"))

        held = devices_held(spec, work, wait_seconds=wait_seconds, on_wait=on_wait)
        with run.shown(options, show, status_of) as keep, held, warm_starts(spec) as warm:
            result = tune(
                spec,
                run.emit,
                keep=keep,
                begin=warm,
                started_as=run.started_as,
                may_overwrite=may_overwrite,
                keep_outputs=keep_outputs,
            )
    return status_of(result)


def status_of(result: TuneResult) -> int:
    return exit_status(result.result)


def training_lines(result: TuneResult) -> list[str]:
    lines = [_throughput_line(each) for each in stated_throughputs(result.result, result.training)]
    loader = describe_loader(result.training.throughputs, result.recommended_batch_size, result.result.device.kind)
    spec, of_largest = result.result.spec.to_dict(), result.training.rank_peaks_bytes
    emulation = describe_emulation(spec, result.result.device.kind)
    if len(of_largest) > 1 or emulation:
        rows = [f"rank {rank:<6} {format_bytes(peak):>10}" for rank, peak in rank_rows(spec, of_largest)]
        emulation += [f"Peak of each rank with {result.largest_batch_size:,}:", *rows] if rows else []
        differ = [describe_imbalance(rank_peaks(spec, of_largest)), describe_spread(result.result)]
        emulation += [f"{sentence_case(text)}." for text in differ if text]
    heading = ["Throughput of each size, in a start of its own:"] if lines else []
    steps = result.result.boundary.soak_steps
    unseen = [result.training.unseen.describe(steps)] if result.training.unseen and steps else []
    return [*unseen, *emulation, *heading, *lines, *([loader] if loader else [])]


def _throughput_line(each: Throughput) -> str:
    """Write ``batch 16       812.3 samples/s, 104,000 tokens/s, 4% waiting for data``."""
    parts = [f"batch {each.batch_size:<6} {each.samples_per_second:10.1f} samples/s"]
    parts += [f"{each.tokens_per_second:,.0f} tokens/s"] if each.tokens_per_second else []
    parts += [f"{each.waiting_fraction:.0%} waiting for data"] if each.waiting_fraction is not None else []
    return ", ".join(parts)


def _spec(options: SimpleNamespace, command: list[str]) -> TuneSpec | FunctionSpec:
    names = [*(TuneSpec.__dataclass_fields__.keys() - {"command"}), *OF_A_FUNCTION]
    given = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    if options.spec is not None:
        if others := [*given, *command]:
            raise SpecError("spec", f"replaces all settings and the command; leave out {' '.join(others)}")
        return TuneSpec.from_dict(json_of("spec", options.spec))
    of_function = {name: given.pop(name) for name in OF_A_FUNCTION if name in given}
    given = given_fields(TuneSpec, given)
    if "rank" in given:
        given["rank"] = ranks_option(given["rank"])
    if "function" in of_function:
        return _spec_of_function(**of_function, command=command, given=given)
    for name in of_function:
        raise SpecError(name, "is for --function; a command begins with its own program")
    return _spec_of_command(command, given)


def _spec_of_command(command: list[str], given: dict[str, Any]) -> TuneSpec:
    """Return the spec of a command. Its config file, if any, gives today's batch size."""
    if "batch_in" not in given:
        return TuneSpec(tuple(command), **given)
    spec = TuneSpec(tuple(command), **{"batch": CONFIG, **given})
    today = None if "current_batch_size" in given else number_in_config(spec)
    return spec if today is None else replace(spec, current_batch_size=today)


def _spec_of_function(
    *, function: str, python: str | None = None, warm: bool = False, command: list[str], given: dict[str, Any]
) -> TuneSpec | FunctionSpec:
    if command:
        raise SpecError("function", "is tuned in place of a command: leave out what stands behind --")
    if "batch" in given:
        raise SpecError("batch", "a function is called with its batch size: leave out --batch")
    spec = TuneSpec(function_command(function, python), batch=FUNCTION, **given)
    if not warm:
        return spec
    if spec.emulated_ranks:
        raise SpecError("warm", "starts forks, and a rank is emulated in a fresh process: leave out --warm")
    if python is not None:
        raise SpecError("warm", "starts forks of MemoryMark's own Python: leave out --python")
    script = next((file for file in spec.files if Path(file).is_file()), None)
    return FunctionSpec(function, starting=WARM, script=script, **given)


def _params() -> list[click.Parameter]:
    ways = f"How the batch size gets in: {', '.join((TEMPLATE, *WAYS_BY_NAME))}"
    return [
        argument("command", nargs=-1, type=click.UNPROCESSED, panel=TRAIN, help="The command that starts your script"),
        option("--batch", panel=TRAIN, metavar="WAY", help=ways, default_text=TEMPLATE),
        option(
            "--batch-in", panel=TRAIN, metavar="FILE:KEY", help="Config file that holds the batch size, and its key"
        ),
        option("--function", panel=TRAIN, metavar="TARGET", help="package.module:function, in place of a command"),
        option("--python", panel=TRAIN, metavar="PROGRAM", help="Python that runs the function"),
        flag("--warm", panel=TRAIN, help="Import the function's module once, and fork each start"),
        flag("--faster", panel=TRAIN, help="Find the lines that make the training faster at today's batch size"),
        option("--try", "tried", panel=TRAIN, metavar="NAMES", help=f"With --faster: of {', '.join(BY_NAME)}"),
        option("--sizes", panel=TRAIN, metavar="RULE", help="Sizes that it takes: 'multiple of 8', or tokens"),
        *start_options(is_usual=True),
        option(
            "--communication-memory",
            "communication_bytes",
            panel=TRAIN,
            metavar="SIZE",
            help="What NCCL takes on a GPU for these ranks, kept free",
            default_text="as published for A100",
        ),
        flag("--whole-run", panel=TRAIN, help="Train the largest rows, then let the script evaluate and save"),
        flag("--may-overwrite", panel=TRAIN, help="Let starts write, overwrite and remove files as the script does"),
        option("--keep-outputs", panel=TRAIN, metavar="FOLDER", help="Copy there what the starts write"),
        *setting_options(TuneSpec),
        option("--device", panel=WHERE, metavar="DEVICE", help="What the command may see: auto, cuda, cuda:1 or cpu"),
        *output_options(),
        *report_options(),
        report_output_option(),
        spec_option(),
    ]


COMMAND = Command(
    "tune",
    _tune_or_say_why_not,
    params=_params(),
    help=HELP,
    epilog=f"{EXIT_STATUSES.rstrip('.')}, 9 the command cannot be tuned.",
    options_metavar="[OPTIONS] --",
    context_settings={"allow_interspersed_args": False},  # what follows the command's first word is the command's own
)
