"""What a script printed or said is cut out of every text that leaves it; what MemoryMark says of it stays."""

import json

import pytest

from engine.report.script_output import MARK, NO_INPUT, OTHER_TORCHVISION, quotes_script, without_output
from engine.text.own_words import SAID

BEHIND = NO_INPUT
PLACE = "\n  Its whole output: /home/ann/failed-start.log\n  To run it by hand: cd /x && python t.py 'a\nb'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("out of memory: 2 B", "out of memory: 2 B"),
        (f"ended with status 1{MARK}patient alice", "ended with status 1; its output stayed on node7"),
        (f"failed: ValueError: {SAID}patient alice has 42", "failed: ValueError: its output stayed on node7"),
        (f"failed: ValueError: {SAID}alice\nis 42{BEHIND}", f"failed: ValueError: its output stayed on node7{BEHIND}"),
        (f"E: {SAID}alice{OTHER_TORCHVISION}{BEHIND}", f"E: its output stayed on node7{OTHER_TORCHVISION}{BEHIND}"),
        (f"E: {SAID}alice{NO_INPUT}", f"E: its output stayed on node7{NO_INPUT}"),
        (f"failed: E: {SAID}alice{BEHIND}{MARK}\n    bob{PLACE}", f"failed: E: its output stayed on node7{BEHIND}"),
        (f"failed: E: {SAID}al{MARK}ice", "failed: E: its output stayed on node7"),
        (f"ended{MARK}a{BEHIND} alice {SAID}b", "ended; its output stayed on node7"),
    ],
)
def test_only_what_memorymark_itself_says_is_sent(text: str, shown: str) -> None:
    content = {"probes": [{"error_message": text, "batch_size": 9}], "kept": (None, 1.5)}
    expected = {"probes": [{"error_message": shown, "batch_size": 9}], "kept": [None, 1.5]}
    assert without_output(content, "node7") == expected
    assert quotes_script(json.dumps(content).encode()) is (text != shown)


def test_people_of_the_same_host_are_told_where_the_output_lies() -> None:
    text = f"failed: E: {SAID}alice{BEHIND}{MARK}\n    bob\n    To run it by hand: x{PLACE}"
    assert without_output(text, "vm", names_place=True) == f"failed: E: its output stayed on vm{BEHIND}{PLACE}"
    without_log = PLACE[PLACE.index("\n  To run") :]
    shown = without_output(f"ended{MARK}none{without_log}", "vm", names_place=True)
    assert shown == f"ended; its output stayed on vm{without_log}"
    assert without_output(f"ended{MARK}a | b", "vm", names_place=True) == "ended; its output stayed on vm"
