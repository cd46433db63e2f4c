"""The libraries that code to paste is run with, and how it is run in a process that has other tests."""

import sys
from contextlib import contextmanager

import pytest

from engine.advice import snippets

LIBRARIES = (
    snippets.plain_torch,
    pytest.param(snippets.accelerate, marks=pytest.mark.slow),
    pytest.param(snippets.trainer, marks=pytest.mark.slow),
    pytest.param(snippets.lightning, marks=pytest.mark.slow),
)


def of_each_library(test):
    """Ask a test for each library, on each change too."""
    return pytest.mark.each_value("write")(pytest.mark.parametrize("write", LIBRARIES)(test))


def run(code, **yours):
    """Run the code as it stands with what is the reader's own, and return the names that it leaves."""
    names = dict(yours)
    with _accelerator_forgotten():
        exec(code, names)
    return names


@contextmanager
def _accelerator_forgotten():
    """Accelerate keeps its settings for the life of a process, in which here more than one training runs."""
    try:
        yield
    finally:
        if "accelerate" in sys.modules:
            from accelerate.state import AcceleratorState, GradientState

            AcceleratorState._reset_state(reset_partial_state=True)
            GradientState._reset_state()
