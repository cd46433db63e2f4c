"""The throughputs below the answer of `tune`."""

from engine.cli.tune import training_lines
from engine.tune.training import Throughput, Training, TuneResult
from tests.factories import make_result


def lines(*throughputs: Throughput) -> str:
    consumed = Training(1, 1, (9,), None, None, (), (), throughputs=throughputs)
    return "\n".join(training_lines(TuneResult(make_result(), consumed)))


def test_steady_starts_show_their_throughput() -> None:
    text = lines(Throughput(16, 64.6, is_steady=True))
    assert "Throughput of each size" in text
    assert "64.6 samples/s" in text


def test_a_start_whose_steps_were_not_steady_shows_none() -> None:
    """Two of them were divided by a reader, and gave 61x where the truth was 4.5x."""
    assert lines(Throughput(16, 64.6, is_steady=False), Throughput(794, 249.7)) == ""
