"""`python -m engine advise result.json`: keep a global batch exactly, and code to paste.

    python -m engine bert --json > result.json              or the JSON of `tune` or `estimate`, or of the portal
    python -m engine advise result.json                     pairs that keep the global batch, and the learning rate
    python -m engine advise result.json --global-batch 256 --devices 4
    python -m engine advise result.json --code lightning    the code or configuration alone: to be piped to a file
    python -m engine advise -                               reads it from standard input

Nothing is measured: the figures are those of the result.
"""

from __future__ import annotations

import argparse
import sys

from ..advice.document import Advice, advise
from ..advice.stored import basis_of
from ..advice.text import advice_lines
from ..errors import EngineError, SpecError
from ..result_file import read_document
from .options import command_parser
from .output import print_json

CODES = ("transformers", "accelerate", "lightning", "torch", "deepspeed", "torchtitan")


def main(arguments: list[str]) -> int:
    """Print the advice for a stored result; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        content = read_document(options.result, "result")
        # `estimate` writes a list of several cards
        basis = basis_of({"estimates": content} if isinstance(content, list) else content, options.gpu)
        advice = advise(basis, global_batch_size=options.global_batch, devices=options.devices)
        if options.json:
            print_json(advice.to_dict())
        elif options.code:
            print(_code(advice, options.code))
        else:
            print("\n".join(advice_lines(advice)))
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    return 0


def _code(advice: Advice, name: str) -> str:
    snippet = next((each for each in advice.snippets if each.id == name), None)
    if snippet is not None:
        return f"{snippet.text}\n\n{snippet.python}" if snippet.python else snippet.text
    offered = ", ".join(each.id for each in advice.snippets) or "none"
    raise SpecError("code", f"{name} is not offered for this training and global batch; offered: {offered}")


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("advise", __doc__)
    add = parser.add_argument
    add("result", help="a file with the JSON of a result or an estimate, or -")
    add("--global-batch", type=int, metavar="N", help="samples of one optimizer step, matched exactly")
    add("--devices", type=int, metavar="N", help="devices that share the global batch (1; of `tune` its ranks)")
    add("--gpu", metavar="ID", help="the card, where the document has the estimates of several")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--code", choices=CODES, help="print this code alone")
    output.add_argument("--json", action="store_true", help="print one JSON document")
    return parser
