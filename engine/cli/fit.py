"""`python -m engine fit bert --batch-size 64`: which cards train it, and how to request one from a scheduler.

    python -m engine fit bert --batch-size 64 [--precision bf16]    every card of the catalogue, by estimate
    python -m engine fit bert --batch-size 64 --as slurm            the #SBATCH lines for the recommended card
    python -m engine fit bert --batch-size 64 --gpu a100-80gb --as k8s   resources and nodeSelector of a pod
    python -m engine fit --result result.json --as slurm            the card of a stored result, by what was measured

The recommended card is the one with the least memory in which the size fits with the margin of the estimate; of equals
the cheapest. Names of cards in Slurm differ from cluster to cluster: `--gpu-type-names a100-80gb=a100,t4=t4` sets them.

Exit status: 0 a card fits, 3 none does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from ..errors import EngineError, SpecError
from ..estimate import gpus
from ..estimate.answers import Answers
from ..estimate.hidden_devices import devices_hidden
from ..estimate.mig import smallest_slice
from ..estimate.types import Estimate
from ..from_json import from_json
from ..program import PROGRAM
from ..result import Boundary, DeviceFacts
from ..result_file import read_document, result_in
from ..spec import MAX_BATCH_SIZE
from ..units import format_bytes, parse_bytes
from ..worker.counted import counted
from .cluster_request import KUBERNETES, SLURM, CardChoice, request_lines
from .exit_status import EXIT_DOES_NOT_FIT
from .options import add_config, add_settings, command_parser, settings_given, spec_of

_HEADINGS = ("card", "memory", "safe", "largest", "USD/h")


def main(arguments: list[str]) -> int:
    """Print the cards that fit, or the request for one; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        names = _type_names(options.gpu_type_names)
        if options.result is not None:
            return _by_result(options, names)
        with devices_hidden():
            return _by_estimate(options, names)
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status


def _by_estimate(options: argparse.Namespace, names: Mapping[str, str]) -> int:
    spec = counted(spec_of(settings_given(options), None), lambda text: _say(f"{text}\n"))
    size = _size(options.batch_size, spec.current_batch_size)
    ids = options.gpu.split(",") if options.gpu else list(gpus.gpus())
    estimates = Answers(spec).of([gpus.find(gpu_id) for gpu_id in ids], (size,))
    fitting = ranked(estimates, size)
    if not fitting:
        _say(f"no card of {len(estimates)} trains batch {size:,} with the margin of the estimate\n")
        return EXIT_DOES_NOT_FIT
    if options.scheduler is None:
        sys.stdout.write(table(fitting, size))
        return 0
    choice = choice_of_estimate(fitting[0], size, host_bytes=_host_bytes(options))
    _print_request(replace(choice, type_name=names.get(fitting[0].gpu.id)), options.scheduler)
    return 0


def _by_result(options: argparse.Namespace, names: Mapping[str, str]) -> int:
    if settings_given(options) or options.gpu:
        raise SpecError("result", "has its own model, settings and card; leave out other options of the training")
    document = result_in(read_document(str(options.result), "result"), "result")
    try:
        device = from_json(DeviceFacts, document["device"])
        boundary = Boundary.from_dict(document["boundary"])
        recommended = (document["recommended"] or {}).get("batch_size")
        model = str(document["spec"]["model"])
    except (KeyError, TypeError, ValueError) as exc:
        raise SpecError("result", f"is no result of this program: {type(exc).__name__}: {exc}") from exc
    if device.kind != "cuda":
        raise SpecError("result", f"was measured on {device.kind}: there is no card to request")
    largest = boundary.largest_batch_size
    size = _size(options.batch_size, recommended or largest or 1)
    if not largest or size > largest:
        _say(f"batch {size:,} is not known to train on {device.name}: the largest that did is {largest or 'none'}\n")
        return EXIT_DOES_NOT_FIT
    sure = "certified" if boundary.certified else "not certified"
    basis = f"Measured: {model} trained with up to {largest:,} samples on {device.name} ({sure}); requested: {size:,}."
    if options.scheduler is None:
        sys.stdout.write(f"{basis}\n")
        return 0
    known = gpus.match(device.name, device.capacity_bytes)
    choice = CardChoice(
        name=device.name,
        vendor=known.vendor if known else "nvidia",
        driver_names=(device.name,),
        total_bytes=device.capacity_bytes,
        basis=basis,
        host_bytes=_host_bytes(options) or device.capacity_bytes,
        is_host_assumed=options.host_memory is None,
        type_name=names.get(known.id) if known else None,
    )
    _print_request(choice, options.scheduler)
    return 0


def ranked(estimates: Sequence[Estimate], batch_size: int) -> list[Estimate]:
    """Return the cards on which the size fits with the margin: least memory first, of equals the cheapest."""
    fitting = [made for made in estimates if (made.safe_batch_size or 0) >= batch_size]
    return sorted(fitting, key=lambda made: (made.gpu.total_bytes, _price(made.gpu.id)))


def choice_of_estimate(made: Estimate, batch_size: int, *, host_bytes: int | None) -> CardChoice:
    """Return the card of an estimate as a request, with the smallest slice of it that is enough."""
    card, at = gpus.find(made.gpu.id), made.at_batch_size(batch_size)
    assert at is not None  # it was requested
    used_bytes = at.device_used_bytes or at.peak_allocated_bytes
    basis = (
        f"ESTIMATE, nothing was measured: {made.spec.model} with {batch_size:,} samples would take "
        f"{format_bytes(used_bytes)} of the {format_bytes(card.total_bytes)} of a {card.name}; "
        f"it would still fit with {made.margin_fraction:.1%} more."
    )
    return CardChoice(
        name=card.name,
        vendor=card.vendor,
        driver_names=card.torch_names,
        total_bytes=card.total_bytes,
        basis=basis,
        host_bytes=host_bytes or card.total_bytes,
        is_host_assumed=host_bytes is None,
        slice=smallest_slice(card.id, used_bytes * (1 + made.margin_fraction)),
    )


def table(fitting: Sequence[Estimate], batch_size: int) -> str:
    """Return one row for each card that fits, the recommended one first."""
    rows = [_HEADINGS, *map(_row, fitting)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    first = fitting[0]
    return "\n".join(
        [
            f"ESTIMATE, nothing was measured: cards that train {first.spec.model} with {batch_size:,} samples",
            "",
            *lines,
            "",
            f"Recommended: {first.gpu.name}, the least memory in which {batch_size:,} fits with "
            f"{first.margin_fraction:.1%} to spare.",
            f"The request for it: --as {SLURM} or --as {KUBERNETES}. Prices: `{PROGRAM} gpus` says from when.",
            "",
        ]
    )


def _row(made: Estimate) -> tuple[str, ...]:
    price = _price(made.gpu.id)
    sizes = (str(made.safe_batch_size), str(made.largest_batch_size))
    return (made.gpu.name, format_bytes(made.gpu.total_bytes), *sizes, "-" if price == inf else f"{price:.2f}")


def _price(gpu_id: str) -> float:
    price = gpus.find(gpu_id).price_per_hour_usd
    return inf if price is None else price


def _print_request(choice: CardChoice, scheduler: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in request_lines(choice, scheduler))


def _size(given: int | None, default: int) -> int:
    size = default if given is None else given
    if not 1 <= size <= MAX_BATCH_SIZE:
        raise SpecError("batch_size", f"{size} is out of range; from 1 to {MAX_BATCH_SIZE:,}")
    return size


def _host_bytes(options: argparse.Namespace) -> int | None:
    if options.host_memory is None:
        return None
    try:
        return parse_bytes(options.host_memory)
    except ValueError as exc:
        raise SpecError("host_memory", str(exc)) from exc


def _type_names(text: str | None) -> dict[str, str]:
    """Read "a100-80gb=a100,t4=t4". Raises SpecError for a card that is not in the catalogue."""
    names = {}
    for pair in filter(None, (text or "").split(",")):
        gpu_id, equals, name = pair.partition("=")
        if not equals or not name or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise SpecError("gpu_type_names", f"{pair[:80]!r} is not CARD=NAME, as in a100-80gb=a100")
        names[gpus.find(gpu_id).id] = name
    return names


def _say(text: str) -> None:
    sys.stderr.write(text)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("fit", __doc__)
    add = parser.add_argument
    add("model", nargs="?", help=f"one of `{PROGRAM} models`: bert, gpt2, resnet, ...")
    add("--batch-size", type=int, metavar="N", help="the size that is to train (today's, or the recommended one)")
    add("--gpu", metavar="ID", help="only this card of the catalogue, or several with commas")
    add("--result", type=Path, metavar="FILE", help="a stored result in place of an estimate, or - for standard input")
    add("--as", dest="scheduler", choices=(SLURM, KUBERNETES), help="print the request for the recommended card")
    add("--gpu-type-names", metavar="ID=NAME,...", help="what your cluster calls the cards in Slurm: sinfo -o %%G")
    add("--host-memory", metavar="SIZE", help="host memory to request; as much as the card has, where not given")
    add_settings(parser)
    add_config(parser)
    return parser
