"""The demo is a run of `tune`, with its certificate and a picture of it."""

import re
from dataclasses import replace

import pytest

from engine.cli import demo, main


@pytest.mark.slow
def test_the_demo_shows_a_certificate_of_a_real_training_as_bars_and_the_line_for_ones_own(monkeypatch, capsys) -> None:
    def without_speed(spec, options, **settings):
        return measured(replace(spec, compare_speed=False), options, **settings)

    measured = demo.measure_starts
    monkeypatch.setattr(demo, "measure_starts", without_speed)
    assert main.main(["demo", "--wait-for-device"]) == 0
    said = capsys.readouterr().out
    largest, refused = map(int, re.search(r"Certified: (\d+) trained .*; (\d+) ran out of memory", said).groups())
    assert refused == largest + 1
    today, full = (re.search(rf"{name} +\d+  (#+)(\.*)  ", said) for name in ("today", "largest"))
    assert len(today[1]) < len(full[1]) == demo.BAR == len(today[1] + today[2])
    assert re.search(r"\d % unused\n", said)
    assert said.splitlines()[-1] == f"Your own script: {demo.YOURS}"
    assert "\x1b" not in said
