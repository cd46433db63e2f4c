"""What tests of the engine that report to a portal share."""

from collections.abc import Iterator

import pytest

from tests.engine.report.loopback_portal import LoopbackPortal, serving


@pytest.fixture
def portal() -> Iterator[LoopbackPortal]:
    with serving(LoopbackPortal()) as found:
        yield found
