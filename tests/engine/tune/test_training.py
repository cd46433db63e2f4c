"""A training that waits for its data is told so."""

from engine.tune.training import Throughput, describe_loader


def timed(size: int, waiting: float | None) -> Throughput:
    return Throughput(size, 100.0, waiting_fraction=waiting)


def test_a_loader_that_takes_longer_than_all_else_is_the_limit() -> None:
    throughputs = (timed(16, 0.1), timed(48, 0.62))
    assert (describe_loader(throughputs, 48, "cuda") or "").startswith(
        "Your data loader, not your GPU, is the limit: 62 % of each step with batch 48"
    )
    assert "not your computation" in (describe_loader(throughputs, 48, "cpu") or "")


def test_a_loader_that_keeps_up_or_was_not_seen_is_not() -> None:
    assert describe_loader((timed(16, 0.9), timed(48, 0.2)), 48, "cuda") is None
    assert describe_loader((timed(48, None),), 48, "cuda") is None
    assert describe_loader((), None, "cuda") is None


def test_a_size_that_was_not_timed_is_judged_by_the_largest_that_was() -> None:
    assert describe_loader((timed(16, 0.9),), 48, "cuda") is not None
