"""MemoryMark as an installed package: finds the exact largest batch size that a training fits into memory.

    memorymark.tune(make_step)     of a function that makes an optimizer step
    memorymark.steps(loader)       one line in a script, for `memorymark tune --batch steps -- python train.py`
    memorymark.measure(spec)       of a model of the catalogue

The engine below this package has no promise of its own: what is listed in `engine.public` stays. A name is loaded when
it is first used, so that the command `memorymark` shows its first line at once.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine.public import *  # noqa: F403 - what is public is listed there
    from .engine.public import __all__ as __all__
else:

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used."""
        from .engine import public

        if name != "__all__" and name not in public.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(public, name)
