"""PURE: the errors by which the host's own memory ends, not a GPU's."""

from __future__ import annotations

KILLED_TYPE = "Killed"
"""The error type of a process that the kernel ended for lack of the host's memory."""
HOST_TYPES = frozenset({"MemoryError", "_ArrayMemoryError"})  # the second is NumPy's
HOST_TEXTS = (
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "could not create a memory object",
    "std::bad_alloc",
)


def is_of_the_host(error_type: str | None, message: str) -> bool:
    """Whether the host's memory ended, which says nothing of a GPU's."""
    text = message.lower()
    return error_type in {*HOST_TYPES, KILLED_TYPE} or any(each in text for each in HOST_TEXTS)
