"""Tunes a function: `make_step(batch_size)` returns what runs one optimizer step.

One of a module is started in fresh processes, as a command is; another, as of a notebook, in forks where that is safe.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any

from ...errors import SpecError
from ...machine.execution import Emit
from .devices import devices_held
from .result import TuneResult
from .run import tune
from .spec import TARGET, WARM, FunctionSpec
from .start.environment import HOOK_VARIABLE
from .start.fork import MakeStep, begin_fork, check_fork
from .start.launch import Begin
from .start.warm_server_handle import warm_starts


def tunable(
    make_step: MakeStep | str, limits: dict[str, Any], *, is_warm: bool = False
) -> tuple[FunctionSpec, Begin | None]:
    """Check a function before anything is started, and return what makes its starts where that is no fresh process.

    `limits` are fields of a FunctionSpec; `is_warm`: a server imports the function's module once.
    """
    if os.environ.get(HOOK_VARIABLE):
        raise SpecError("make_step", "a start of it calls tune again; call it below `if __name__ == '__main__':`")
    starting = WARM if is_warm else "process"
    if isinstance(make_step, str):
        if not TARGET.fullmatch(make_step):
            raise SpecError("make_step", f"{make_step[:80]!r} is no package.module:function")
        return FunctionSpec(make_step, starting=starting, **limits), None
    if not callable(make_step):
        raise SpecError("make_step", "must be a function of a batch size, or the text package.module:function")
    script = None
    with suppress(TypeError):  # an object that can be called has no file
        script = inspect.getsourcefile(make_step)
    if (target := importable_name(make_step, sys.modules)) is not None:
        return FunctionSpec(target, starting=starting, script=script, **limits), None
    name = getattr(make_step, "__qualname__", type(make_step).__qualname__)
    spec = FunctionSpec(name, starting="fork", script=script, **limits)
    check_fork(name)
    return spec, begin_fork(make_step, spec)


def tune_function(
    spec: FunctionSpec,
    begin: Begin | None,
    emit: Emit,
    *,
    keep: Callable[[TuneResult], None] = lambda _: None,
    started_as: Mapping[str, Any] | None = None,
) -> TuneResult:
    """Find the largest batch size that the steps of the function train. `keep` and `started_as` as of `tune`."""
    with devices_held(spec, f"memorymark.tune({spec.function})"), warm_starts(spec) as warm:
        return tune(spec, emit, keep=keep, begin=warm or begin, started_as=started_as)


def importable_name(make_step: Callable[..., Any], modules: dict[str, Any]) -> str | None:
    """Return `module:name` where another process finds the same function by it; None where none does."""
    module_name, name = getattr(make_step, "__module__", None), getattr(make_step, "__qualname__", None)
    module = modules.get(module_name or "")
    if name is None or module_name == "__main__" or getattr(module, "__spec__", None) is None:
        return None
    try:
        found = attrgetter(name)(module)
    except AttributeError:  # made within another function
        return None
    return f"{module_name}:{name}" if found is make_step else None
