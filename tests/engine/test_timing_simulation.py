"""The simulated comparison, a few runs of it: the rules keep what the benchmark says of them."""

import pytest

from benchmarks.timing_simulation import simulate


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["quiet", "bursts"])
def test_the_interval_holds_the_truth_and_the_recommendation_is_good(machine):
    """The same 60 runs every time; 4,000 of each kind are in the benchmark's results."""
    row = simulate(machine, 0.02, runs=60)
    assert row["interval_holds_truth"] >= 0.88
    assert row["slower_than_today"] == 0
    assert row["missed_gain_p50"] <= 0.03
    assert row["abstained"] <= 0.2


@pytest.mark.slow
def test_on_a_shared_machine_most_runs_end_with_a_statement_and_none_is_false():
    row = simulate("shared", 0.02, runs=40)
    assert row["at_least"] > row["figures"]
    assert row["at_least_is_true"] >= 0.95
    assert row["slower_than_today"] == 0
