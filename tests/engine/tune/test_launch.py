"""What a start may see, and what it left on the disk."""

from pathlib import Path

import pytest

from engine.errors import DeviceUnavailable
from engine.tune.start.environment import visible_devices
from engine.tune.start.launch import LAST_BYTES, last_lines


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        ("auto", None, {}),
        ("cpu", "0,1", {"CUDA_VISIBLE_DEVICES": ""}),
        ("cuda", None, {}),
        ("cuda:1", None, {"CUDA_VISIBLE_DEVICES": "1"}),
        ("cuda:1", "2, 5", {"CUDA_VISIBLE_DEVICES": "5"}),
    ],
)
def test_a_command_sees_the_device_that_its_caller_counts_so(device: str, visible: str | None, expected: dict) -> None:
    assert visible_devices(device, visible) == expected


def test_a_device_that_the_caller_does_not_see_is_refused() -> None:
    with pytest.raises(DeviceUnavailable, match="CUDA_VISIBLE_DEVICES has 1"):
        visible_devices("cuda:1", "7")


def test_the_last_lines_of_a_failed_start_are_those_of_the_script(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 5, in <module>\n'
        "KeyError: 'O'\n\n"
        "[W1124 14:38:25.2330 CPUAllocator.cpp:245] Memory block of unknown size was allocated before the profiling "
        "started, profiler results will not include the deallocation event\n"
        "USDT:2026-11-24 14:38:26 28263:28263 SyncActivityProfilerHandler.cpp:59] profiler_stop\n"
    )
    assert last_lines(log) == (
        "Traceback (most recent call last):",
        '  File "train.py", line 5, in <module>',
        "KeyError: 'O'",
    )


def test_a_line_whose_beginning_is_not_there_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("token " + "x" * LAST_BYTES + "\nthe last line\n")
    assert last_lines(log) == ("the last line",)
