"""PURE: gives a start of a training that varies another seed than the starts before had, where its command has one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_SEED, _SEED_OPTION = re.compile(r"(\bseed[= ])(\d{1,9})\b"), re.compile(r"--?([\w-]+[-_])?seed")


def with_seed(parts: Sequence[str], more: int) -> list[str]:
    """Return a command with its seeds raised.

    >>> with_seed(["train.py", "--seed", "1", "data.seed=7", "--max", "5"], 2)
    ['train.py', '--seed', '3', 'data.seed=9', '--max', '5']
    """
    raised = [_SEED.sub(lambda found: f"{found[1]}{int(found[2]) + more}", part) for part in parts]
    for number, (option, value) in enumerate(pairwise(parts), 1):
        if _SEED_OPTION.fullmatch(option) and value.isdecimal():
            raised[number] = str(int(value) + more)
    return raised
