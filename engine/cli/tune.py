"""`python -m engine tune -- python train.py --batch-size {batch_size}`: the exact batch size of a training command."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time

from ..errors import EngineError, SpecError
from ..program import PROGRAM
from ..report.protocol import COMMAND
from ..spec_checks import memory_limit_bytes
from ..tune.devices import devices_held
from ..tune.run import TuneResult, tune
from ..tune.spec import BATCH_SIZE, BATCH_WAYS, FUNCTION, OUT, TuneSpec, function_command
from ..tune.training import Throughput, describe_loader
from .console import Console, details, summary
from .exit_status import exit_status
from .options import add_output_options, add_search_options
from .output import info_event, print_failure, print_json
from .reporting import Reporting, add_report_options

DESCRIPTION = f"""Find the exact largest batch size that a training command trains, by starting it a few times.

  {PROGRAM} tune -- python train.py --lr 3e-4 --batch-size {BATCH_SIZE}
  {PROGRAM} tune --batch hf -- torchrun --nproc-per-node 2 run_clm.py config.yaml
  {PROGRAM} tune --batch dataloader --memory-limit 24GiB -- python train.py
  {PROGRAM} tune --function package.module:make_step

Each start trains a few optimizer steps, is watched from inside, and is ended. The script stays as it is. {OUT} in the
command is a fresh folder of each start. Exit status: as a measurement has them, and 9 when the command cannot be tuned.
"""


def main(arguments: list[str]) -> int:
    """Tune the command behind `--`; the exit status."""
    started = time.monotonic()
    own, command = _split(arguments)
    options = _parser().parse_args(own)
    try:
        return _tune(options, command)
    except EngineError as error:
        if options.json and not options.events:
            print_json({"error": error.to_dict()})
        return print_failure(error, started=started, events=options.events)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _tune(options: argparse.Namespace, command: list[str]) -> int:
    spec = _spec(options, command)
    spec.check_program()
    reporting = Reporting.of(options)
    emit = print_json if options.events else Console(sys.stderr if options.json else sys.stdout)

    wait_seconds = math.inf if options.wait_for_device else 0.0
    with reporting.run(COMMAND, spec, emit) as run:

        def on_wait(busy: str) -> None:
            run.emit(info_event(f"waiting: {busy}"))

        def keep(result: TuneResult) -> None:
            run.keep(exit_status(result.result), result)

        with devices_held(spec, f"{PROGRAM} tune {spec.model}", wait_seconds=wait_seconds, on_wait=on_wait):
            result = tune(spec, run.emit, keep=keep, started_as=run.started_as)
        if options.json:
            print_json(result.to_dict())
        elif not options.events:
            print("\n".join(["", details(result.result), *training_lines(result), "", summary(result.result)]))
    return exit_status(result.result)


def training_lines(result: TuneResult) -> list[str]:
    """Return the throughput of each size, and whether the data loader limits it."""
    throughputs, kind = result.training.throughputs, result.result.device.kind
    lines = [_throughput_line(each) for each in throughputs if each.samples_per_second is not None]
    loader = describe_loader(throughputs, result.recommended_batch_size, kind)
    heading = ["Throughput of each size, in a start of its own:"] if lines else []
    return [*heading, *lines, *([loader] if loader else [])]


def _throughput_line(each: Throughput) -> str:
    """Write ``batch 16       812.3 samples/s, 104,000 tokens/s, 4% waiting for data, steady``."""
    parts = [f"batch {each.batch_size:<6} {each.samples_per_second:10.1f} samples/s"]
    parts += [f"{each.tokens_per_second:,.0f} tokens/s"] if each.tokens_per_second else []
    parts += [f"{each.waiting_fraction:.0%} waiting for data"] if each.waiting_fraction is not None else []
    parts += ["steady" if each.is_steady else "not steady"] if each.is_steady is not None else []
    return ", ".join(parts)


def _spec(options: argparse.Namespace, command: list[str]) -> TuneSpec:
    names = [*(TuneSpec.__dataclass_fields__.keys() - {"command", "memory_limit_bytes"}), "function", "python"]
    given = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    if options.spec is not None:
        return _spec_of(options.spec, [*given, *command])
    if options.memory_limit is not None:
        given["memory_limit_bytes"] = memory_limit_bytes(options.memory_limit)
    function, python = given.pop("function", None), given.pop("python", None)
    if function is None and python is not None:
        raise SpecError("python", "is for --function; a command begins with its own program")
    if function is None:
        return TuneSpec(tuple(command), **given)
    if command:
        raise SpecError("function", "is tuned in place of a command: leave out what stands behind --")
    if "batch" in given:
        raise SpecError("batch", "a function is called with its batch size: leave out --batch")
    return TuneSpec(function_command(function, python), batch=FUNCTION, **given)


def _spec_of(document: str, others: list[str]) -> TuneSpec:
    if others:
        raise SpecError("spec", f"replaces all settings and the command; leave out {' '.join(others)}")
    try:
        return TuneSpec.from_dict(dict(json.loads(document)))
    except (TypeError, ValueError, RecursionError) as exc:
        raise SpecError("spec", f"is not a JSON object: {exc}") from exc


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} tune",
        usage=f"{PROGRAM} tune [options] (-- COMMAND WITH {BATCH_SIZE} | --function TARGET)",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    ways = "; ".join(f"{way}: {text}" for way, text in BATCH_WAYS.items())
    add("--batch", help=f"how the batch size gets into the command. {ways}")
    add("--function", metavar="TARGET", help="package.module:function to tune in place of a command; see make_step")
    add("--python", metavar="PROGRAM", help="the Python that runs the function; left out, the one that runs this")
    whole = "train the largest rows of the data, then let the script evaluate and save: what a whole run needs"
    add("--whole-run", action="store_true", default=None, help=whole)
    speed = "start today's size and the recommended one in turns: how many times as fast it is (12 starts or more)"
    add("--compare-speed", action="store_true", default=None, help=speed)
    add("--spec", metavar="JSON", help="the whole TuneSpec as JSON instead of options and command")
    add("--device", help="auto, cuda, cuda:N or cpu: what the command may see")
    add("--current-batch-size", type=int, metavar="N", help="what you train with today, and the first size (16)")
    add_search_options(parser)
    add_output_options(parser)
    add_report_options(parser)
    return parser
