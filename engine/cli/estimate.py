"""`python -m engine estimate bert --gpu a10`: memory and the largest batch size on a card that is not here.

    python -m engine estimate bert --gpu a100-40gb [--precision bf16] [--batch-size 64]
    python -m engine estimate bert --gpu all           every card of the catalogue, from one trace
    python -m engine estimate bert --gpu cpu           for a CPU, with a memory limit
    python -m engine estimate bert --memory 24GiB      a card of that total
    python -m engine estimate bert --gpu t4 --batch-size 128 --what-to-change   the smallest change with which 128 fits
    python -m engine estimate bert --gpu a10 --frontier 128,256,512   length x batch, and a budget of tokens
    python -m engine estimate --spec JSON --gpu a10 --events   JSON lines (what the portal reads)

Nothing is measured and no device is used: every figure is a prediction, and labelled as such.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import EngineError, SpecError
from ..estimate import calibration, gpus
from ..estimate.answers import Answers, ignore_event
from ..estimate.frontier import sizes_in
from ..estimate.gpus import Gpu
from ..estimate.hidden_devices import devices_hidden
from ..estimate.what_to_change import Scope
from ..program import PROGRAM
from ..spec import MAX_BATCH_SIZE, RunSpec
from ..spec_checks import memory_limit_bytes
from ..units import parse_bytes
from ..worker.counted import counted
from .change_table import change_lines
from .console import filled_lines
from .estimate_table import table
from .frontier import frontier_lines, frontiers
from .options import add_config, add_settings, command_parser, settings_given, spec_of
from .output import info_event, print_json

EXIT_INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Estimate, and print it; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        with devices_hidden():
            return _estimate(options)
    except EngineError as error:
        if options.events:
            print_json({"event": "error", "seconds": 0.0, "error": error.to_dict()})
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED


def _estimate(options: argparse.Namespace) -> int:
    spec, cards = _spec(options), _cards(options)
    emit = print_json if options.events else _warn
    spec = counted(spec, lambda text: emit(info_event(text)))
    sizes = sizes_in(options.frontier) if options.frontier is not None else []
    if sizes and not options.events:
        return _frontier(spec, cards, sizes, options)
    answers = Answers(spec, emit=emit)
    scope = Scope(options.what_to_change) if options.what_to_change else None
    estimates = answers.of(cards, _batch_sizes(options), scope, sizes)
    changes = answers.what_to_change
    if options.json:
        documents = [made.to_dict() for made in estimates]
        if changes is not None:
            documents[0]["what_to_change"] = changes.to_dict()
        print_json(documents if options.gpu == "all" or len(cards) > 1 else documents[0])
    elif not options.events:
        sys.stdout.write(table(estimates, options.batch_size))
        sys.stdout.writelines(f"{line}\n" for made in estimates for line in filled_lines(made.breakdown))
        sys.stdout.writelines(f"{line}\n" for line in (change_lines(changes) if changes is not None else ()))
    return 0


def _frontier(spec: RunSpec, cards: Sequence[Gpu | None], sizes: Sequence[int], options: argparse.Namespace) -> int:
    """Estimate the surface of length and batch, and print it."""
    if options.batch_size is not None or options.what_to_change is not None:
        raise SpecError("frontier", "takes no --batch-size and no --what-to-change")
    made = frontiers(spec, cards, sizes, emit=_warn)
    if options.json:
        documents = [each.to_dict() for each in made]
        print_json(documents if len(cards) > 1 else documents[0])
    else:
        sys.stdout.writelines(f"{line}\n" for each in made for line in frontier_lines(each))
    return 0


def _spec(options: argparse.Namespace) -> RunSpec:
    """Return the spec from `--spec`, or from the single options. The device it names plays no part."""
    given = settings_given(options)
    if options.memory_limit is not None:
        given["memory_limit_bytes"] = memory_limit_bytes(options.memory_limit)
    return spec_of(given, options.spec)


def _cards(options: argparse.Namespace) -> Sequence[Gpu | None]:
    if (options.gpu is None) == (options.memory is None):
        raise SpecError("gpu", f"give a card with --gpu (see `{PROGRAM} gpus`, or all, or cpu) or --memory SIZE")
    if options.memory is not None:
        cards: list[Gpu | None] = [gpus.of_memory(_bytes_of(options.memory))]
    elif options.gpu == "all":
        cards = list(gpus.gpus().values())
    else:
        cards = [None if name == "cpu" else gpus.find(name) for name in options.gpu.split(",")]
    for path in options.calibration:
        cards = [_calibrated(card, path, is_only_one=len(cards) == 1) for card in cards]
    return cards


def _calibrated(card: Gpu | None, path: Path, *, is_only_one: bool) -> Gpu | None:
    """Return the card with its own constants. Of several cards the calibration is of one, and the others stay."""
    known = calibration.Calibration.read(path)
    if card is None or (not is_only_one and known.gpu_id != card.id):
        return card
    return calibration.apply(card, known)


def _bytes_of(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as exc:
        raise SpecError("memory", str(exc)) from exc


def _batch_sizes(options: argparse.Namespace) -> tuple[int, ...]:
    size = options.batch_size
    if size is None:
        return ()
    if not 1 <= size <= MAX_BATCH_SIZE:
        raise SpecError("batch_size", f"{size} is out of range; from 1 to {MAX_BATCH_SIZE:,}")
    return (size,)


def _warn(event: dict[str, Any]) -> None:
    if event["event"] == "log":
        sys.stderr.write(f"{event['message']}\n")
    elif event["event"] == "stage" and event["stage"].startswith("change "):
        sys.stderr.write(f"{event['seconds']:7.1f}s  {event['stage']}\n")
    else:
        ignore_event(event)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("estimate", __doc__)
    add = parser.add_argument
    add("model", nargs="?", help=f"one of `{PROGRAM} models`: bert, gpt2, resnet, ...")
    add("--gpu", metavar="ID", help="a card of the catalogue, several with commas, all, or cpu")
    add("--memory", metavar="SIZE", help="an unnamed card with this total memory: 24GiB")
    add("--batch-size", type=int, metavar="N", help="also the memory of exactly N samples")
    add(
        "--what-to-change",
        nargs="?",
        choices=list(Scope),
        const=Scope.SINGLE,
        help="the smallest changes with which that batch size fits; each is estimated. first: stop at the first one; "
        "single (the default): each setting by itself, pairs only if none is enough; grid: all combinations",
    )
    frontier = "sizes of the input: the largest batch at each, and a budget of tokens (or pixels) a batch"
    add("--frontier", metavar="SIZES", help=frontier)
    add_settings(parser)
    add_config(parser)
    add("--memory-limit", metavar="SIZE", help="memory that training may use: 20GiB")
    add("--max", type=int, metavar="N", dest="max_batch_size", help="largest batch size to consider")
    add(
        "--calibration",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="a card's own constants, from `calibrate --json`; may be repeated",
    )
    add("--spec", metavar="JSON", help="the whole RunSpec as JSON instead of options")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document; a list for several cards")
    output.add_argument("--events", action="store_true", help="print one JSON line per event")
    return parser
