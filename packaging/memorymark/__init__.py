"""MemoryMark as an installed package: finds the exact largest batch size that a training fits into memory.

    memorymark.tune(make_step)     of a function that makes an optimizer step
    memorymark.steps(loader)       one line in a script, for `memorymark tune --batch steps -- python train.py`
    memorymark.measure(spec)       of a model of the catalogue

The engine below this package has no promise of its own: what is listed here stays.
"""

from .engine.public import *  # noqa: F403 - what is public is listed there
from .engine.public import __all__ as __all__
