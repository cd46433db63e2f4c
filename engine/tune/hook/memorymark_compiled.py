"""Sees modules that were compiled in place, by `module.compile()`: from outside, as what runs within them is traced."""

from __future__ import annotations

from functools import wraps
from typing import Any


def see_compiled(torch: Any, run: Any) -> None:
    """Run each call of such a module by `run(call, module, inputs, options)`; one within a compiled call as it is."""
    compile_module = getattr(torch.nn.Module, "compile", None)
    if compile_module is None:  # torch before 2.2
        return

    @wraps(compile_module)
    def compiled(module: Any, *arguments: Any, **settings: Any) -> None:
        compile_module(module, *arguments, **settings)
        call = module._compiled_call_impl

        def called(*inputs: Any, **options: Any) -> Any:
            if torch.compiler.is_compiling():
                return call(*inputs, **options)
            return run(call, module, inputs, options)

        module._compiled_call_impl = called

    torch.nn.Module.compile = compiled
