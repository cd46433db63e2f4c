"""A result's figures stand in the run of W&B or MLflow that is active in the process, where there is one."""

import sys
from types import SimpleNamespace

import pytest

from engine.report.active_run import figures_of, write_to_active_runs
from tests.factories import make_result, make_result_that_does_not_fit
from tests.factories.speeds import make_timed_result


class MlflowException(Exception):
    pass


class Mlflow:
    """What is called of mlflow; a full disk refuses the metrics."""

    exceptions = SimpleNamespace(MlflowException=MlflowException)

    def __init__(self, *, is_full: bool = False) -> None:
        self.is_full = is_full
        self.metrics: dict[str, float] = {}

    def active_run(self) -> SimpleNamespace:
        return SimpleNamespace(info=SimpleNamespace(run_name="second"))

    def log_metrics(self, metrics: dict[str, float]) -> None:
        if self.is_full:
            raise MlflowException("no space")
        self.metrics.update(metrics)


def test_the_figures_are_of_the_largest_and_the_recommended_size_and_what_is_unknown_is_left_out() -> None:
    result = make_timed_result()
    assert result.largest is not None
    assert figures_of(result) == {
        "memorymark/largest_batch_size": 8,
        "memorymark/certified": 1,
        "memorymark/recommended_batch_size": 8,
        "memorymark/speedup": 1.39,
        "memorymark/peak_bytes": result.largest.memory_bytes,
        "memorymark/limit_bytes": result.device.limit_bytes,
    }
    assert figures_of(make_result_that_does_not_fit()).keys() == {
        f"memorymark/{name}" for name in ("largest_batch_size", "certified", "limit_bytes")
    }


def test_each_active_run_gets_them_and_one_that_refuses_them_is_named(monkeypatch) -> None:
    result, summary, mlflow = make_result(), dict[str, float](), Mlflow()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=SimpleNamespace(name="first", summary=summary)))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    first, second = write_to_active_runs(result)
    assert first.endswith("the W&B run first")
    assert second.endswith("the MLflow run second")
    assert summary == mlflow.metrics == figures_of(result)
    monkeypatch.setitem(sys.modules, "mlflow", Mlflow(is_full=True))
    assert [*write_to_active_runs(result)] == [first, "the MLflow run second took no figures: no space"]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_without_an_active_run_nothing_is_written_nor_imported(name, monkeypatch) -> None:
    assert not [*write_to_active_runs(make_result())]
    assert name not in sys.modules
    monkeypatch.setitem(sys.modules, name, SimpleNamespace())  # its folder of files
    assert not [*write_to_active_runs(make_result())]


def test_mlflow_itself_takes_them(monkeypatch, tmp_path) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    result = make_result()
    with mlflow.start_run() as run:
        assert len([*write_to_active_runs(result)]) == 1
    assert mlflow.get_run(run.info.run_id).data.metrics == figures_of(result)


def test_wandb_itself_takes_them(tmp_path) -> None:
    wandb = pytest.importorskip("wandb")
    result = make_result()
    with wandb.init(mode="offline", dir=tmp_path) as run:
        assert len([*write_to_active_runs(result)]) == 1
        assert figures_of(result).items() <= dict(run.summary).items()
