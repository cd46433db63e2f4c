"""`python -m engine estimate bert --gpu a10`: memory and the largest batch size on a GPU that is not here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace

import rich_click as click

from ..describe.commands import profile_lines
from ..errors import SpecError
from ..estimate import calibration, gpus
from ..estimate.estimator import Estimator
from ..estimate.frontier import Frontier, frontier_of, grid_of, sizes_in, specs_of
from ..estimate.gpus import Gpu
from ..estimate.largest import Largest, LargestOf
from ..estimate.spec import EstimateSpec
from ..estimate.tracing.hidden_devices import devices_hidden
from ..estimate.types import Estimate
from ..estimate.what_to_change import Scope, WhatToChange
from ..machine.execution import Emit
from ..program import PROGRAM
from ..settings.spec import RunSpec
from ..settings.spec_checks import bytes_setting
from ..trainings.catalogue.counted import counted
from .command import ADVANCED, WHERE, Command, Offered, option
from .options import (
    FILE,
    ONLY_MEASURED,
    config_options,
    events_option,
    in_range,
    json_option,
    model_argument,
    setting_options,
    settings_given,
    spec_given,
    spec_of,
    spec_option,
)
from .printing.console import receiver
from .printing.estimate_table import answer, notes, table, title
from .printing.output import info_event, print_json
from .printing.result_text import filled_lines
from .printing.terminal import BOLD, say, say_lines, width_of, wrapped
from .printing.what_ifs import change_lines, frontier_lines, largest_lines

HELP = f"""Estimate memory and the largest batch size on a GPU you do not have.

Nothing is measured and no device is used: every figure is a prediction.

\b
{PROGRAM} estimate bert --gpu a100-40gb --precision bf16
{PROGRAM} estimate bert --gpu all              every GPU of the catalogue
{PROGRAM} estimate bert --memory 24GiB         a GPU of that memory
{PROGRAM} estimate bert --gpu t4 --batch-size 128 --what-to-change
{PROGRAM} estimate bert --gpu t4 --largest sequence-length
"""


@devices_hidden()
def _estimate(options: SimpleNamespace) -> int:
    given, sizes = settings_given(options), sizes_in(options.frontier) if options.frontier is not None else ()
    if options.spec is not None and options.gpu is None and options.memory is None:
        requested = EstimateSpec.from_dict(spec_given(given, options.spec))
        spec, options.gpu, options.what_to_change = requested.training, requested.gpu, requested.what_to_change
        sizes, options.largest = requested.frontier, requested.largest
    else:
        spec = spec_of(given, options.spec)
    cards = _cards(options)  # the device of the spec is ignored
    scope = Scope(options.what_to_change) if options.what_to_change else None
    largest = LargestOf(options.largest.replace("-", "_")) if options.largest else None
    with receiver(options, stream=sys.stderr) as emit:
        spec = counted(spec, lambda text: emit(info_event(text)))
        if sizes and not options.events:
            return _frontier(spec, cards, sizes, options, emit)
        estimator = Estimator(spec, emit=emit)
        size = _batch_size(options)
        estimates = estimator.estimates(cards, () if size is None else (in_range(size),), scope, sizes, largest)
    if options.events:
        return 0
    if options.json:
        documents = [made.to_dict() for made in estimates]
        documents[0] |= {name: part.to_dict() for name, part in estimator.answers.items()}
        print_json(documents if options.gpu == "all" or len(cards) > 1 else documents[0])
        return 0
    width, found = width_of(sys.stdout), estimator.answers.get("largest")
    if isinstance(found, Largest):
        _print_largest(found, estimates[0], estimator.seconds, width)
        return 0
    say("\n".join(["", *wrapped([answer(estimates, size)], width, hanging="")]), style=BOLD)
    say(table(estimates, estimator.seconds, size, width))
    say_lines(wrapped(profile_lines(spec.like), width))
    say_lines(wrapped((line for made in estimates for line in filled_lines(made.breakdown)), width))
    changes = estimator.answers.get("what_to_change")
    say_lines(change_lines(changes, width) if isinstance(changes, WhatToChange) else ())
    return 0


def _batch_size(options: SimpleNamespace) -> int | None:
    """Return the batch size asked about; with `--largest` and without a size it is 1."""
    is_of_one = options.largest and options.spec is None and options.current_batch_size is None
    return 1 if is_of_one and options.batch_size is None else options.batch_size


def _print_largest(found: Largest, made: Estimate, seconds: float, width: int | None) -> None:
    """Print "ESTIMATE for NVIDIA T4: at batch 1, 4,096 tokens fit with the margin of 21.9 %; 4,352 would not."."""
    answered = f"ESTIMATE for {made.place}: {found.text[:1].lower()}{found.text[1:]}"
    say("\n".join(["", *wrapped([answered], width, hanging="")]), style=BOLD)
    say_lines(["", *wrapped([title(made.spec, [found.setting])], width), *largest_lines(found, width)])
    say_lines(wrapped([*profile_lines(made.spec.like), *notes([made], seconds)], width))


def frontiers(spec: RunSpec, cards: Sequence[Gpu | None], sizes: Sequence[int], *, emit: Emit) -> list[Frontier]:
    """Estimate each length once for all cards. A card that does not support the request is left out."""
    estimates = [Estimator(each, emit=emit).estimates(cards, grid_of(spec)) for each in specs_of(spec, sizes)]
    return [frontier_of(spec, of_card) for of_card in zip(*estimates, strict=True)]


def _frontier(
    spec: RunSpec, cards: Sequence[Gpu | None], sizes: Sequence[int], options: SimpleNamespace, emit: Emit
) -> int:
    if options.batch_size is not None or options.what_to_change is not None:
        raise SpecError("frontier", "takes no --batch-size and no --what-to-change")
    made = frontiers(spec, cards, sizes, emit=emit)
    if options.json:
        documents = [each.to_dict() for each in made]
        print_json(documents if len(cards) > 1 else documents[0])
    else:
        width = width_of(sys.stdout)
        say_lines(line for each in made for line in frontier_lines(each, width))
        say_lines(wrapped(profile_lines(spec.like), width))
    return 0


def _cards(options: SimpleNamespace) -> Sequence[Gpu | None]:
    if (options.gpu is None) == (options.memory is None):
        raise SpecError("gpu", f"give a GPU with --gpu (see `{PROGRAM} list gpus`, or all, or cpu) or --memory SIZE")
    if options.memory is not None:
        cards: list[Gpu | None] = [gpus.of_memory(bytes_setting("memory", options.memory))]
    elif options.gpu == "all":
        cards = list(gpus.gpus().values())
    else:
        cards = [None if name == "cpu" else gpus.find_by_words(name) for name in options.gpu.split(",")]
    for known in map(calibration.Calibration.read, options.calibration):
        for place, card in enumerate(cards):
            # a calibration changes the estimate of its own card alone
            if card is not None and (len(cards) == 1 or known.gpu_id == card.id):
                cards[place] = calibration.apply(card, known)
    return cards


def _params() -> list[click.Parameter]:
    scope = "Smallest changes with which --batch-size fits: first (stop at the first), single (each alone), grid (all)"
    return [
        model_argument(),
        *config_options(),
        *setting_options(RunSpec, leave_out=ONLY_MEASURED),
        option("--gpu", panel=WHERE, metavar="ID", help="GPU of `list gpus`, several with commas, all, or cpu"),
        option("--memory", panel=WHERE, metavar="SIZE", help="GPU without a name, with this much memory: 24GiB"),
        option("--batch-size", type=int, panel=WHERE, metavar="N", help="Also the memory of exactly this batch size"),
        option(
            "--what-to-change",
            type=Offered(list(map(str, Scope))),
            is_flag=False,
            flag_value=str(Scope.SINGLE),
            panel=WHERE,
            metavar="[HOW]",
            help=scope,
            default_text=str(Scope.SINGLE),
        ),
        option(
            "--frontier",
            panel=WHERE,
            metavar="SIZES",
            help="Largest batch at each of these input sizes, such as 128,256,512, and a budget of tokens or pixels",
        ),
        option(
            "--largest",
            type=Offered([each.replace("_", "-") for each in LargestOf]),
            panel=WHERE,
            metavar="WHAT",
            help="Largest value with which --batch-size (here: 1) fits one GPU: "
            f"{', '.join(each.replace('_', '-') for each in LargestOf)}",
        ),
        *setting_options(RunSpec, only=["memory_limit_bytes", "communication_bytes", "max_batch_size"]),
        json_option("Print one JSON document, or a list for several GPUs"),
        option(
            "--calibration",
            type=FILE,
            multiple=True,
            panel=ADVANCED,
            metavar="FILE",
            help="Constants of a GPU, from `calibrate --json`; may be repeated",
        ),
        spec_option(),
        events_option(),
    ]


COMMAND = Command(
    "estimate",
    _estimate,
    params=_params(),
    help=HELP,
    epilog="Exit status: 0 ok, 2 bad arguments, 7 cannot be estimated.",
    exclusive=(("largest", "what_to_change"), ("largest", "frontier")),
)
