"""Compiles a model with torch.compile, for one batch size at a time. Needs torch.

Each size is compiled for its own shapes, as a training of that size would be. Otherwise torch would compile the second
size with dynamic shapes, and figures would depend on what was measured before.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

_MOST_GRAPHS = 64
"""The number of sizes that one process may compile; by default torch stops compiling after 8."""
_MOST_COMPILING_STEPS = 4
"""Number of first steps that may compile; a graph compiled later is reported."""


def compile_for_each_size(model: nn.Module) -> None:
    """Compile the model in place at the first step of each batch size; its parameters stay the same objects."""
    from torch._dynamo import config as dynamo  # takes a second to import
    from torch._inductor import config as inductor

    dynamo.recompile_limit = _MOST_GRAPHS
    dynamo.fail_on_recompile_limit_hit = True
    inductor.compile_threads = 1  # helper processes would outlive a session that is killed
    model.compile(dynamic=False)


def graphs_compiled() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def compile_by_steps(run_step: Callable[[], object]) -> None:
    """Run steps until one compiles nothing: classifiers of transformers set their problem type in the first one."""
    for _ in range(_MOST_COMPILING_STEPS):
        before = graphs_compiled()
        run_step()
        if graphs_compiled() == before:
            return
