"""Sees compiled modules; those compiled in place, by `module.compile()`, from outside: what runs within is traced."""

from __future__ import annotations

import sys
from typing import Any

from memorymark_patches import wrap


def see_compiled(torch: Any, run: Any) -> None:
    """Run calls of compiled modules by `run(call, module, inputs, options)`, unless within another such call."""

    def compiled(compile_module: Any, module: Any, *arguments: Any, **settings: Any) -> None:
        compile_module(module, *arguments, **settings)
        call = module._compiled_call_impl

        def called(*inputs: Any, **options: Any) -> Any:
            if torch.compiler.is_compiling():
                return call(*inputs, **options)
            return run(call, module, inputs, options)

        module._compiled_call_impl = called

    wrap(torch.nn.Module, "compile", compiled)  # torch before 2.2 has none


def is_compiled(module: Any) -> bool:
    kind: Any = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ())
    is_in_place = getattr(module, "_compiled_call_impl", None) is not None
    return isinstance(module, kind) or is_in_place or any(map(_is_compiled_function, vars(module).values()))


def _is_compiled_function(value: Any) -> bool:
    held = getattr(value, "__dict__", {})  # some classes make up attributes that they are asked for
    return "_torchdynamo_orig_callable" in held and not held.get("_torchdynamo_disable")
