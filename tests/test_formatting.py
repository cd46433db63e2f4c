"""Figures as people read them: rounding, units, precision, throughputs, and what is not known."""

import datetime as dt
from collections.abc import Callable

import pytest
from django.utils import timezone

from analysis import formatting
from analysis.presentation.labels import describe_precision, describe_settings
from analysis.presentation.probe_rows import probe_lines
from analysis.templatetags.units import breakable
from engine.describe.probe import describe_probe
from engine.facts.result import Outcome, Probe
from engine.text.units import GIB, MIB, exact_bytes
from tests.factories import make_spec


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(None, "not measured"), (0, "0 B"), (512 * MIB, "512.0 MiB"), (int(1.5 * GIB), "1.5 GiB"), (40 * GIB, "40.0 GiB")],
)
def test_bytes_are_read_in_binary_units(size_bytes: int | None, text: str) -> None:
    assert formatting.bytes_text(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "not measured"),
        (0.84, "0.8 s"),
        (9.97, "10 s"),
        (58.4, "58 s"),
        (59.7, "1 min"),
        (133, "2 min 13 s"),
        (3840, "1 h 4 min"),
        (7200, "2 h"),
    ],
)
def test_durations_carry_their_units(seconds: float | None, text: str) -> None:
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.01824, "18.2 ms"), (0.387, "387 ms"), (1.337, "1.34 s"), (None, "not measured")]
)
def test_a_step_is_read_in_milliseconds_below_a_second(seconds: float | None, text: str) -> None:
    assert formatting.step_time(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.4821, "0.482"), (9.8123, "9.81"), (61.24, "61.2"), (99.97, "100"), (1234.4, "1,234")]
)
def test_a_rate_keeps_three_significant_figures(value: float, text: str) -> None:
    assert formatting.rate(value) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.6193, "1.62x"), (24.0, "24x"), (26.25, "26.2x"), (0.9949, "0.99x")])
def test_a_factor_is_not_rounded_up_to_a_gain(ratio: float, text: str) -> None:
    assert formatting.factor(ratio) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (0.001, "less than $0.01"),
        (-0.001, "more than −$0.01"),
        (1.592, "$1.59"),
        (-2.567, "−$2.57"),
        (12345.6, "$12,346"),
    ],
)
def test_money_says_when_it_is_too_small_or_unknown(amount: float | None, text: str) -> None:
    assert formatting.usd(amount) == text


@pytest.mark.parametrize(("size_bytes", "text"), [(2 * GIB, "2GiB"), (1536 * MIB, "1536MiB"), (4097, "4097")])
def test_a_size_for_a_form_field_is_exact(size_bytes: int, text: str) -> None:
    assert exact_bytes(size_bytes) == text


def test_a_time_shows_minutes_and_carries_the_instant() -> None:
    paris = dt.timezone(dt.timedelta(hours=1))
    shown = formatting.utc(dt.datetime(2026, 11, 21, 0, 14, 9, tzinfo=paris))
    assert shown == '<time datetime="2026-11-20T23:14:09+00:00">2026-11-20 23:14 UTC</time>'


@pytest.mark.parametrize(
    ("seconds", "text"), [(2, "just now"), (42, "42 s ago"), (75, "1 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")]
)
def test_ages_are_read_in_one_unit(seconds: float, text: str) -> None:
    assert formatting.describe_elapsed(seconds) == text


def test_after_a_week_an_age_is_a_date() -> None:
    now = timezone.now()
    assert "6 d ago</time>" in formatting.ago(now - dt.timedelta(days=6.5))
    assert f">{now - dt.timedelta(days=8):%Y-%m-%d}</time>" in formatting.ago(now - dt.timedelta(days=8))


FILTERS = (
    formatting.bytes_text,
    formatting.duration,
    formatting.step_time,
    formatting.rate,
    formatting.factor,
    formatting.percent,
    formatting.usd,
)


@pytest.mark.parametrize("shown", FILTERS, ids=lambda shown: shown.__name__)
def test_what_is_not_known_is_never_zero(shown: Callable[[None], str]) -> None:
    assert shown(None) == "not measured"


def test_a_long_name_is_broken_after_its_dots_and_no_figure_is() -> None:
    assert breakable("1.5 MiB at h.*.act_fn <b>") == "1.5 MiB at h.<wbr>*.<wbr>act_<wbr>fn &lt;b&gt;"


@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("fp32", "fp32"),
        ("bf16", "bf16 autocast, fp32 weights"),
        ("fp16", "fp16 autocast, fp32 weights"),
        ("bf16-pure", "pure bf16"),
    ],
)
def test_the_precision_says_what_the_weights_are_in(precision: str, said: str) -> None:
    assert describe_precision({"precision": precision}) == said


def test_four_bit_weights_are_not_called_fp32() -> None:
    assert describe_precision({"precision": "bf16", "load_in_4bit": True}) == "bf16 autocast"


def test_lists_have_room_for_a_word() -> None:
    assert describe_settings(make_spec(precision="bf16").to_dict())[0] == "bf16"


STEADY, MEMORY = {"samples_per_second": 8.0, "timing_is_steady": True}, {"peak_allocated_bytes": 1 << 20}


@pytest.mark.parametrize(
    ("probe", "is_shown"),
    [
        (Probe(9, Outcome.FITS, **STEADY, **MEMORY), True),
        (Probe(9, Outcome.FITS, samples_per_second=8.0, **MEMORY), True),
        (Probe(9, Outcome.FITS, **STEADY | {"timing_is_steady": False}, **MEMORY), False),
        (Probe(9, Outcome.OUT_OF_MEMORY, **STEADY, **MEMORY), False),
    ],
)
def test_no_throughput_is_shown_that_nobody_may_divide(probe: Probe, is_shown: bool) -> None:
    (line,) = probe_lines([probe], roles={})
    assert (line.samples_per_second is not None) is is_shown
    assert ("8.0 samples/s" in describe_probe(probe)) is is_shown
