"""`python -m engine fit bert --batch-size 64`: which GPUs train it, and how to request one from a scheduler."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from types import SimpleNamespace

import rich_click as click

from ..describe.commands import profile_lines
from ..describe.ranks import HOW_COMPARED
from ..errors import EstimateImpossible, SpecError
from ..estimate import gpus
from ..estimate.estimator import Estimator
from ..estimate.mig import smallest_slice
from ..estimate.smallest_card import cheapest_that_fit, share_of, that_fit, total_price
from ..estimate.tracing.hidden_devices import devices_hidden
from ..estimate.types import Estimate
from ..facts.figure_kinds import grade_of
from ..facts.result_file import read_document
from ..program import PROGRAM
from ..questions.documents.measured import Measured
from ..settings.spec import RunSpec
from ..settings.spec_checks import bytes_setting, numbers_setting
from ..text.units import format_bytes, format_percent
from ..trainings.catalogue.counted import counted
from ..trainings.script.start.several_hosts import several_hosts
from .cluster_request import KUBERNETES, NVIDIA, SLURM, CardChoice, request_lines
from .command import OUTPUT, WHERE, Command, Offered, option
from .exit_status import EXIT_FITS_NOT
from .fit_file import fit_file, names_file
from .options import (
    FILE,
    ONLY_MEASURED,
    config_options,
    in_range,
    json_option,
    model_argument,
    setting_options,
    settings_given,
    spec_of,
)
from .printing.console import Console
from .printing.estimate_table import memory_at, stop_note
from .printing.output import info_event, print_json
from .printing.terminal import BOLD, say, say_lines, table_lines, width_of, wrapped

HELP = f"""List the GPUs that train a batch size, and write the request for one.

The first GPU has the least memory in which the size fits with the margin of the estimate; of equals, it is the
cheapest. With --ranks the first has the lowest price of all its GPUs together.
In place of a model: a file of axolotl, LLaMA-Factory, TRL, ms-swift or torchtune.

\b
{PROGRAM} fit bert --batch-size 64 --precision bf16
{PROGRAM} fit bert --batch-size 64 --as slurm
{PROGRAM} fit train.yml --gpu rtx-4090
{PROGRAM} fit llama-3.2-1b --batch-size 8 --ranks 1,2,4 --strategy fsdp
{PROGRAM} fit bert --batch-size 64 --gpu a100-80gb --as k8s
{PROGRAM} fit --result result.json --as slurm
"""
_HEADINGS = ("GPU", "memory", "with margin", "largest", "USD/h")
_HEADINGS_OF_RANKS = ("GPUs", "memory each", "batch each", "with margin", "largest", "USD/h all")


@devices_hidden()
def _fit(options: SimpleNamespace) -> int:
    names = _type_names(options.gpu_type_names)
    if options.result is not None:
        return _by_result(options, names)
    try:
        return fit_file(options) if names_file(options.model) else _by_estimate(options, names)
    except EstimateImpossible as error:
        raise SpecError("fit", str(error)) from error


def _by_estimate(options: SimpleNamespace, names: Mapping[str, str]) -> int:
    specs, given = _specs(options)
    spec = specs[0]
    size = in_range(spec.current_batch_size if options.batch_size is None else options.batch_size)
    ids = options.gpu.split(",") if options.gpu else list(gpus.gpus())
    cards = [gpus.find_by_words(gpu_id) for gpu_id in ids]
    estimates: list[Estimate] = []
    with Console(sys.stderr) as emit:
        counted_spec = counted(spec, lambda text: emit(info_event(text)))
        for each in specs:
            of_ranks = replace(each, config_parameters=counted_spec.config_parameters)
            estimates += Estimator(of_ranks, emit=emit).estimates(cards, (share_of(size, each.ranks),))
    fitting = (cheapest_that_fit if given else that_fit)(estimates, size)
    if options.json:
        documents = [made.to_dict() for made in estimates]
        print_json({"batch_size": size, "fits": [made.gpu.id for made in fitting], "estimates": documents})
        return 0 if fitting else EXIT_FITS_NOT
    if not fitting:
        say(f"no GPU of {len(cards)} trains batch {size:,} with the margin of the estimate", sys.stderr)
        return EXIT_FITS_NOT
    if options.scheduler is None:
        width = width_of(sys.stdout)
        first = f"First choice by estimate: {_cheapest(fitting[0], size) if given else _smallest(fitting[0], size)}."
        say("\n".join(wrapped([first], width, hanging="")), style=BOLD)
        say_lines([*table(fitting, size, width, of_ranks=given), *wrapped(profile_lines(spec.like), width)])
        return 0
    _say_request(_choice_of_estimate(fitting[0], size), names.get(fitting[0].gpu.id), options)
    return 0


def _say_request(choice: CardChoice, type_name: str | None, options: SimpleNamespace) -> None:
    host_bytes = None if options.host_memory is None else bytes_setting("host_memory", options.host_memory)
    choice = replace(choice, type_name=type_name, host_bytes=host_bytes)
    say("\n".join(request_lines(choice, options.scheduler)))


def _specs(options: SimpleNamespace) -> tuple[list[RunSpec], bool]:
    given = settings_given(options)
    counts, strategy = given.pop("ranks", None), given.pop("strategy", "")
    if counts is None:
        return [spec_of(given | ({"strategy": strategy} if strategy else {}), None)], False
    each_once = dict.fromkeys(numbers_setting("ranks", counts, "1,2,8"))
    alone = {name: value for name, value in given.items() if name != "communication_bytes"}
    of_each = (alone if ranks == 1 else given | {"ranks": ranks, "strategy": strategy} for ranks in each_once)
    return [spec_of(each, None) for each in of_each], True


def _by_result(options: SimpleNamespace, names: Mapping[str, str]) -> int:
    if settings_given(options) or options.gpu:
        raise SpecError("result", "has its own model, settings and GPU; leave out other options of the training")
    result = Measured.of(read_document(str(options.result), "result"), "result")
    device, boundary, recommended = result.device, result.boundary, result.recommended
    if device.kind != "cuda":
        raise SpecError("result", f"was measured on {device.kind}: there is no GPU to request")
    if hosts := several_hosts(result.spec.get("command", ())):
        raise SpecError("result", f"is of several hosts ({hosts.named}): the lines request GPUs of one")
    largest, count = boundary.largest_batch_size, result.ranks
    usual = recommended.batch_size if recommended else min(result.current_batch_size, largest or 1)
    size = in_range(usual if options.batch_size is None else options.batch_size)
    if not largest or size > largest:
        known = f"the largest that did is {largest or 'none'}"
        say(f"batch {size:,} is not known to train on {device.name}: {known}", sys.stderr)
        return EXIT_FITS_NOT
    sure = "certified" if boundary.certified else "not certified"
    on = f"each of {count} {device.name}" if count > 1 else device.name
    trained = f"{result.spec.model} trained with up to {largest:,} samples on {on} ({sure})"
    basis = f"{grade_of(result.spec).capitalize()}: {trained}; requested: {size:,}."
    if options.scheduler is None:
        say(basis)
        return 0
    card = gpus.match(device.name, device.capacity_bytes)
    vendor = card.vendor if card else NVIDIA
    choice = CardChoice(vendor, (device.name,), device.capacity_bytes, basis, count=count)
    _say_request(choice, names.get(card.id) if card else None, options)
    return 0


def _choice_of_estimate(made: Estimate, batch_size: int) -> CardChoice:
    ranks = made.spec.ranks
    card, used_bytes = gpus.find(made.gpu.id), memory_at(made, share_of(batch_size, ranks)).used_bytes
    each = f"each of {ranks} " if ranks > 1 else ""
    basis = (
        f"ESTIMATE, nothing was measured: {made.spec.model} with batch {batch_size:,} needs "
        f"{format_bytes(used_bytes)} of the {format_bytes(card.total_bytes)} of {each}{card.name} "
        f"(margin {format_percent(made.margin_fraction)})."
    )
    slice_ = smallest_slice(card.id, used_bytes * (1 + made.margin_fraction)) if ranks == 1 else None
    return CardChoice(card.vendor, card.torch_names, card.total_bytes, basis, slice=slice_, count=ranks)


def _smallest(made: Estimate, batch_size: int) -> str:
    """Write "NVIDIA T4, the least memory in which 64 fits (margin 21.9 %)"."""
    margin = format_percent(made.margin_fraction)
    return f"{made.gpu.name}, the least memory in which {batch_size:,} fits (margin {margin})"


def _cheapest(made: Estimate, samples: int) -> str:
    """Write "2 x NVIDIA L4, the lowest price for 64 samples at once: 1.42 USD an hour", or "no price is known"."""
    price = total_price(made)
    shown = "no price is known" if price == inf else f"{price:.2f} USD an hour"
    return f"{made.place}, the lowest price for {samples:,} samples at once: {shown}"


def table(fitting: Sequence[Estimate], samples: int, width: int | None, *, of_ranks: bool) -> list[str]:
    """Return one row for each card that fits, in their order; `of_ranks`: for each card and number of them."""
    rows: list[tuple[str, ...]] = []
    for made in fitting:
        price, sizes = total_price(made), map(made.size_text, (made.safe_batch_size, made.largest_batch_size))
        share = [str(share_of(samples, made.spec.ranks))] if of_ranks else []
        shown = "-" if price == inf else f"{price:.2f}"
        rows.append((made.place, format_bytes(made.gpu.total_bytes), *share, *sizes, shown))
    title = f"ESTIMATE, nothing was measured: GPUs that train {fitting[0].spec.model} with {samples:,} samples"
    request = f"Request it with --as {SLURM} or --as {KUBERNETES}."
    notes = [request, f"`{PROGRAM} list gpus` shows the prices."]
    if of_ranks:
        title += " at once"
        prices = "Batch sizes are of one GPU. Prices are of all GPUs: their speed is not estimated."
        notes = [prices, f"Error for several GPUs: {HOW_COMPARED}.", request]
    headings = _HEADINGS_OF_RANKS if of_ranks else _HEADINGS
    lines = table_lines(headings, rows, width, right=range(1, len(headings)))
    return ["", *wrapped([title], width), "", *lines, "", *wrapped([*stop_note(fitting), *notes], width)]


def _type_names(text: str | None) -> dict[str, str]:
    """Read "a100-80gb=a100,t4=t4". Raises SpecError for a GPU that is not in the catalogue."""
    names = {}
    for pair in filter(None, (text or "").split(",")):
        gpu_id, equals, name = pair.partition("=")
        if not equals or not name or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise SpecError("gpu_type_names", f"{pair[:80]!r} is not ID=NAME, as in a100-80gb=a100")
        names[gpus.find_by_words(gpu_id).id] = name
    return names


def _params() -> list[click.Parameter]:
    size = "Batch size to train, on all GPUs together (default: today's, or a result's recommended one)"
    counts = "Numbers of GPUs to compare, such as 1,2,8, by total price; above 1 they need --strategy"
    kinds = "What your cluster calls the GPUs in Slurm (sinfo -o %G): a100-80gb=a100,t4=t4"
    host = "Host memory to request (default: as much as the GPU has)"
    return [
        model_argument(),
        *config_options(),
        *setting_options(RunSpec, leave_out=[*ONLY_MEASURED, "ranks"]),
        *setting_options(RunSpec, only=["communication_bytes"]),
        option("--ranks", panel=WHERE, metavar="N[,N...]", help=counts),
        option("--batch-size", type=int, panel=WHERE, metavar="N", help=size),
        option("--gpu", panel=WHERE, metavar="ID", help="Only this GPU of the catalogue, or several with commas"),
        option("--result", type=FILE, panel=WHERE, metavar="FILE", help="Stored result in place of an estimate, or -"),
        option(
            *("--as", "scheduler"),
            type=Offered([SLURM, KUBERNETES]),
            panel=OUTPUT,
            metavar="SCHEDULER",
            help=f"Print the request for the first GPU: {SLURM}, {KUBERNETES}",
        ),
        option("--gpu-type-names", panel=OUTPUT, metavar="ID=NAME,...", help=kinds),
        option("--write", type=FILE, panel=OUTPUT, metavar="FILE", help="Copy of the file, with the change that fits"),
        json_option(),
        option("--host-memory", panel=OUTPUT, metavar="SIZE", help=host),
    ]


COMMAND = Command(
    "fit",
    _fit,
    params=_params(),
    help=HELP,
    epilog="Exit status: 0 a GPU fits, 1 none does, 2 bad arguments, or what cannot be estimated.",
)
