"""What the certificate says above the largest size where there is none."""

from dataclasses import replace

import pytest

from engine.describe.boundary import certificate_lines
from engine.results.result import Boundary, DeviceFacts, Reason, RunResult
from engine.text.units import GIB
from tests.factories import make_probe, make_refusal, make_result

CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-40GB", 40 * GIB, limit_bytes=GIB)
OPEN = replace(make_result(), device=CARD, boundary=Boundary(8, False, None, Reason.TIME_BUDGET))


def texts(result: RunResult) -> list[str]:
    return [line.text for line in certificate_lines(result)]


@pytest.mark.parametrize(
    ("refused", "untried"), [(9, "."), (10, "; 9 was not tried."), (12, "; 9 to 11 were not tried.")]
)
def test_the_size_that_ran_out_is_named_and_what_was_not_tried(refused: int, untried: str) -> None:
    probes = (make_probe(8), make_refusal(refused, fresh_process=True, failed_phase="backward"))
    assert texts(replace(OPEN, probes=probes))[1] == f"Batch {refused}: out of memory in backward{untried}"


def test_where_none_ran_out_it_is_open_and_the_note_stands_below() -> None:
    noted = replace(OPEN, probes=(make_probe(8),), boundary=replace(OPEN.boundary, note="moved down"))
    assert [line.outcome for line in certificate_lines(noted)] == ["fits", "open", "open"]
    assert texts(noted)[1:] == ["No larger size is known to run out of memory.", "moved down"]
