"""Lets fake tensors live on `cuda` where PyTorch was built without CUDA. Needs torch; Linux only.

Two things of a CPU build stand in the way. Its table of device guards has no entry for CUDA, and PyTorch's own
stand-in only replaces an entry that reports no devices: so such an entry is planted first. And autograd asks the
CUDA hooks whether CUDA was built: their table of functions is replaced by a copy that says yes.

Both are internals, reached by the names and slots of torch 2.13. So nothing is changed in this process before a
forked one, which may crash over it, has run a small training step on fake `cuda` tensors and found what CUDA
does. Where that fails the caller traces fake `cpu` tensors instead and says "approximate". On a build with CUDA
only the test is run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

_CUDA = 1  # c10::DeviceType::CUDA
_DEVICE_TYPES = 32  # more than there are; the table is only read up to CUDA
_GUARD_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_GET_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
_IS_BUILT, _HAS_PRIMARY_CONTEXT = 2, 4  # slots of at::CUDAHooksInterface
_SLOTS, _SLOTS_BEFORE = 64, 2  # copied of each table of functions; type information stands before the first
_SECONDS = 60  # the test takes a fraction of one
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)

_answer = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)
_answer_for_device = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p, ctypes.c_int8)
_kept: list[Any] = []  # C++ keeps pointers into these for the life of the process
_is_available: bool | None = None


def is_available() -> bool:
    """Whether `enabled()` gives faithful fake `cuda` tensors here. The first call tries it in a forked process.

    It must come before the first backward pass of this process, real or fake: autograd then starts its threads,
    one for each device that there is. Later it is too late, and the answer no.
    """
    global _is_available
    if _is_available is None:
        _is_available = _works_in_a_fork()
        if _is_available and not torch.cuda._is_compiled():
            _plant_guard()
    return _is_available


@contextmanager
def enabled() -> Iterator[None]:
    """Fake `cuda` tensors work inside. What autograd asks is answered truthfully again afterwards."""
    if torch.cuda._is_compiled():
        yield
        return
    _plant_guard()
    hooks = ctypes.cast(_hooks(), ctypes.POINTER(ctypes.c_void_p))
    original = hooks[0]
    hooks[0] = _table_that_says_built(original)
    try:
        yield
    finally:
        hooks[0] = original


def _works_in_a_fork() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    pid = os.fork()
    if pid == 0:
        signal.alarm(_SECONDS)
        status = 1
        try:
            with enabled():
                status = 0 if trains_as_on_cuda() else 1
        finally:
            os._exit(status)  # whatever was raised: the answer is no
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class _Operators(TorchDispatchMode):
    """Notes the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def trains_as_on_cuda() -> bool:
    """A small step on fake `cuda` tensors runs the operators of CUDA and leaves its gradient there."""
    with FakeTensorMode(), _Operators() as operators:
        weight = torch.zeros(4, 4, device="cuda", requires_grad=True)
        hidden = torch.nn.functional.dropout(torch.zeros(2, 4, device="cuda") @ weight, 0.5, training=True)
        hidden.sum().backward()
        gradient = weight.grad
    is_on_cuda = gradient is not None and gradient.device.type == "cuda" and gradient.shape == weight.shape
    return is_on_cuda and "aten::native_dropout" in operators.names  # the CPU has no fused dropout


def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))


def _plant_guard() -> None:
    """Give the CUDA entry of the guard table PyTorch's own do-nothing guard, by way of one without devices."""
    table = (ctypes.c_void_p * _DEVICE_TYPES).in_dll(_library("libc10.so"), _GUARD_TABLE)
    if table[_CUDA]:
        return
    none = _answer(lambda _: 0)
    functions = (ctypes.c_void_p * _SLOTS)(*[ctypes.cast(none, ctypes.c_void_p).value] * _SLOTS)
    planted = (ctypes.c_void_p * 2)(ctypes.addressof(functions))
    _kept.extend([none, functions, planted])
    table[_CUDA] = ctypes.addressof(planted)
    torch._C._ensureCUDADeviceGuardSet()
    if table[_CUDA] == ctypes.addressof(planted):
        table[_CUDA] = None
        raise RuntimeError("this torch did not replace the planted device guard")


def _hooks() -> int:
    get = _library("libtorch_cpu.so")[_GET_HOOKS]
    get.restype = ctypes.c_void_p
    return int(get())


def _table_that_says_built(original: int | None) -> int:
    """A copy of the hooks' functions in which CUDA is built and no device has a context."""
    assert original is not None
    start = original - _SLOTS_BEFORE * _POINTER_BYTES
    copied = ctypes.cast(start, ctypes.POINTER(ctypes.c_void_p))
    table = (ctypes.c_void_p * (_SLOTS + _SLOTS_BEFORE))(*[copied[i] for i in range(_SLOTS + _SLOTS_BEFORE)])
    yes, no = _answer(lambda _: 1), _answer_for_device(lambda *_: 0)
    table[_SLOTS_BEFORE + _IS_BUILT] = ctypes.cast(yes, ctypes.c_void_p).value
    table[_SLOTS_BEFORE + _HAS_PRIMARY_CONTEXT] = ctypes.cast(no, ctypes.c_void_p).value
    _kept.extend([yes, no, table])
    return ctypes.addressof(table) + _SLOTS_BEFORE * _POINTER_BYTES
