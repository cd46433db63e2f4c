"""`python -m engine advise result.json`: keep a global batch exactly, and code to paste."""

from __future__ import annotations

from types import SimpleNamespace

import rich_click as click

from ..advice.document import Advice, advise
from ..advice.stored import basis_of
from ..advice.text import advice_lines
from ..errors import SpecError
from ..facts.result_file import read_document
from ..program import PROGRAM
from .command import OUTPUT, TRAIN, Command, Offered, Text, argument, option
from .options import json_option
from .printing.output import print_json
from .printing.terminal import say

CODES = ("transformers", "accelerate", "lightning", "torch")


HELP = f"""Keep a global batch exactly, and get the code to paste.

Nothing is measured: the figures are those of the result.

\b
{PROGRAM} bert --json > result.json
{PROGRAM} advise result.json --global-batch 256 --devices 4
{PROGRAM} advise result.json --code lightning
"""


def _advise(options: SimpleNamespace) -> int:
    content = read_document(options.result, "result")
    # `estimate` writes a list of several cards
    basis = basis_of({"estimates": content} if isinstance(content, list) else content, options.gpu)
    advice = advise(basis, global_batch_size=options.global_batch_size, devices=options.devices)
    if options.json:
        print_json(advice.to_dict())
    elif options.code:
        say(_code(advice, options.code))
    else:
        say("\n".join(advice_lines(advice)))
    return 0


def _code(advice: Advice, name: str) -> str:
    snippet = next((each for each in advice.snippets if each.id == name), None)
    if snippet is not None:
        return snippet.text
    offered = ", ".join(each.id for each in advice.snippets) or "none"
    raise SpecError("code", f"{name} is not offered for this training and global batch; offered: {offered}")


def _params() -> list[click.Parameter]:
    devices = "Devices that share the global batch (default: 1, of `tune` its ranks)"
    return [
        argument(
            "result",
            required=True,
            type=Text("file"),
            panel=TRAIN,
            help="JSON of a result or estimate, or -",
        ),
        option(
            *("--global-batch", "global_batch_size"),
            type=int,
            panel=TRAIN,
            metavar="N",
            help="Samples of one optimizer step, matched exactly",
        ),
        option("--devices", type=int, panel=TRAIN, metavar="N", help=devices),
        option("--gpu", panel=TRAIN, metavar="ID", help="GPU, where the file has the estimates of several"),
        option(
            "--code",
            type=Offered(CODES),
            panel=OUTPUT,
            metavar="LIBRARY",
            help=f"Print only the code: {', '.join(CODES)}",
        ),
        json_option("Print one JSON document"),
    ]


COMMAND = Command("advise", _advise, params=_params(), help=HELP, exclusive=(("code", "json"),))
