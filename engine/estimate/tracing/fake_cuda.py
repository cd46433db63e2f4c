"""Allows fake tensors on `cuda` with any build of PyTorch, and without a card. Needs torch; Linux only.

Two things prevent it. A CPU build has no device guard of CUDA, and the one of a CUDA build creates a context on a card.
PyTorch puts its do-nothing guard in place of one that reports no devices alone: such a guard is installed first.
And autograd asks the CUDA hooks whether CUDA is built and has a context: a copy of their table answers yes and no. So
builds with and without CUDA, and hosts with and without cards, run the same operators, and none calls the driver.

Both are internals, by the names and slots of torch 2.13. So a forked process, which may crash, first runs a small step
on fake `cuda` tensors. Where that fails the caller traces fake `cpu` ones, and reports "approximate" with the reason.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from ...machine.fork import ForkFailed, in_a_fork
from .hidden_devices import devices_hidden

_CUDA = 1  # c10::DeviceType::CUDA
_DEVICE_TYPES = 32  # more than there are; the table is only read up to CUDA
_GUARD_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_GET_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
_IS_BUILT, _HAS_PRIMARY_CONTEXT = 2, 4  # slots of at::CUDAHooksInterface
_SLOTS, _SLOTS_BEFORE = 64, 2  # copied of each table of functions; type information stands before the first
_SECONDS = 60  # the trial takes a fraction of one
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)

_answer = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)
_answer_for_device = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p, ctypes.c_int8)
_alive: list[Any] = []  # C++ keeps pointers into these for the life of the process


def obstacle() -> str | None:
    """Return why `enabled()` gives no faithful fake `cuda` tensors here; None where it does.

    The first call tries it in a fork, before any backward pass or card of this process starts autograd's threads.
    """
    if not sys.platform.startswith("linux"):
        return "fake cuda tensors are known to work on Linux only"
    if torch.cuda._initialized:
        return "CUDA is in use in this process already; estimate in a process of its own"
    return _obstacle_found_by_trial()


@contextmanager
def enabled() -> Iterator[None]:
    """Make fake `cuda` tensors work in the context, and hide every card there. Undoes it afterwards."""
    with ExitStack() as stack:
        stack.enter_context(devices_hidden())
        stack.enter_context(_guard_that_does_nothing())
        stack.enter_context(_hooks_that_say_built())
        yield


@cache
def _obstacle_found_by_trial() -> str | None:
    FakeTensorMode()  # the first one imports for a second or more, which the fork and this process then share
    try:
        is_as_on_cuda = in_a_fork(_try_it, _SECONDS)
    except ForkFailed as exc:
        return f"a trial of fake cuda tensors failed, {exc}"
    if not is_as_on_cuda:
        return "fake cuda tensors do not run the operators of CUDA with this torch"
    _try_it()  # also here, so that autograd's threads are started while there seems to be a device
    return None


def _try_it() -> bool:
    with enabled():
        return trains_as_on_cuda()


class _Operators(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def trains_as_on_cuda() -> bool:
    """Whether a small step on fake `cuda` tensors runs the operators of CUDA and leaves its gradient there."""
    with FakeTensorMode(), _Operators() as operators:
        weight = torch.zeros(4, 4, device="cuda", requires_grad=True)
        hidden = torch.nn.functional.dropout(torch.zeros(2, 4, device="cuda") @ weight, 0.5, training=True)
        hidden.sum().backward()
        gradient = weight.grad
    is_on_cuda = gradient is not None and gradient.device.type == "cuda" and gradient.shape == weight.shape
    return is_on_cuda and "aten::native_dropout" in operators.names  # the CPU has no fused dropout


@cache
def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))


@contextmanager
def _guard_that_does_nothing() -> Iterator[None]:
    """Put PyTorch's do-nothing guard in CUDA's entry of the table of device guards, while in the context."""
    table = (ctypes.c_void_p * _DEVICE_TYPES).in_dll(_library("libc10.so"), _GUARD_TABLE)
    original = table[_CUDA]
    table[_CUDA] = _guard(table)
    try:
        yield
    finally:
        table[_CUDA] = original


_do_nothing_guard: int | None = None


def _guard(table: ctypes.Array[ctypes.c_void_p]) -> int:
    """Return the do-nothing guard, which PyTorch creates when it finds a guard without devices in the table."""
    global _do_nothing_guard
    if _do_nothing_guard is not None:
        return _do_nothing_guard
    original, planted = table[_CUDA], _guard_without_devices()
    table[_CUDA] = planted
    torch._C._ensureCUDADeviceGuardSet()
    made, table[_CUDA] = table[_CUDA], original
    if made is None or made == planted:
        raise RuntimeError("this torch did not replace the planted device guard")
    _do_nothing_guard = int(made)
    return _do_nothing_guard


def _guard_without_devices() -> int:
    """Return the address of a guard whose every function answers 0."""
    none = _answer(lambda _: 0)
    functions = (ctypes.c_void_p * _SLOTS)(*[ctypes.cast(none, ctypes.c_void_p).value] * _SLOTS)
    planted = (ctypes.c_void_p * 2)(ctypes.addressof(functions))
    _alive.extend([none, functions, planted])
    return ctypes.addressof(planted)


@contextmanager
def _hooks_that_say_built() -> Iterator[None]:
    """Make CUDA's hooks tell autograd that CUDA is built and has no context yet, while in the context."""
    get_hooks = _library("libtorch_cpu.so")[_GET_HOOKS]
    get_hooks.restype = ctypes.c_void_p
    hooks = ctypes.cast(int(get_hooks()), ctypes.POINTER(ctypes.c_void_p))
    original = hooks[0]
    hooks[0] = _table_that_says_built(original)
    try:
        yield
    finally:
        hooks[0] = original


@cache
def _table_that_says_built(original: int | None) -> int:
    """Return a copy of the hooks' functions in which CUDA is built and no device has a context."""
    assert original is not None
    start = original - _SLOTS_BEFORE * _POINTER_BYTES
    copied = ctypes.cast(start, ctypes.POINTER(ctypes.c_void_p))
    table = (ctypes.c_void_p * (_SLOTS + _SLOTS_BEFORE))(*[copied[i] for i in range(_SLOTS + _SLOTS_BEFORE)])
    yes, no = _answer(lambda _: 1), _answer_for_device(lambda *_: 0)
    table[_SLOTS_BEFORE + _IS_BUILT] = ctypes.cast(yes, ctypes.c_void_p).value
    table[_SLOTS_BEFORE + _HAS_PRIMARY_CONTEXT] = ctypes.cast(no, ctypes.c_void_p).value
    _alive.extend([yes, no, table])
    return ctypes.addressof(table) + _SLOTS_BEFORE * _POINTER_BYTES
