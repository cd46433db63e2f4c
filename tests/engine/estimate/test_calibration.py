"""A card's own constants: what is accepted, how they replace the nominal ones, and no GPU at hand."""

import json
from dataclasses import replace

import pytest
import torch

from engine.cli.main import command
from engine.errors import EngineError, SpecError
from engine.estimate import measure_calibration
from engine.estimate.calibration import Calibration, apply, context_bytes
from engine.estimate.gpus import find, of_memory
from engine.measurement import device
from engine.results.result import DeviceFacts
from engine.text.units import GIB, MIB

MEASURED = Calibration(
    device_name="NVIDIA A10",
    gpu_id="a10",
    total_bytes=23_609_475_072,
    context_bytes=271 * MIB,
    cublas_workspace_bytes=8_519_680,
    autograd_workspace_bytes=8_519_680,
    cublaslt_workspace_bytes=0,
    torch="2.13.0+cu130",
    driver="580.1",
    measured_at="2026-11-21T08:00:00+00:00",
)
WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")


def test_a_calibrated_card_has_its_own_constants_and_says_so():
    gpu = apply(find("a10"), MEASURED)
    assert (gpu.context_bytes, gpu.total_bytes, gpu.calibrated) == (271 * MIB, 23_609_475_072, True)
    assert gpu.price_per_hour_usd == find("a10").price_per_hour_usd


def test_json_both_ways_loses_nothing(tmp_path):
    path = tmp_path / "a10.json"
    path.write_text(json.dumps(MEASURED.to_dict()))
    assert Calibration.read(path) == MEASURED
    assert apply(find("a10"), path) == apply(find("a10"), MEASURED.to_dict()) == apply(find("a10"), MEASURED)


def test_a_calibration_of_another_card_is_refused():
    with pytest.raises(SpecError, match="is of a10 .*not of l4"):
        apply(find("l4"), MEASURED)


def test_a_card_outside_the_catalogue_may_be_calibrated_as_an_unnamed_one():
    assert apply(of_memory(24 * GIB), replace(MEASURED, gpu_id=None)).calibrated


@pytest.mark.parametrize("change", [{"schema": 2}, {"context_bytes": 1.5}, {"context_bytes": 0}, {"extra": 1}])
def test_a_document_that_is_no_calibration_is_refused(change):
    with pytest.raises(SpecError, match=r"^calibration: "):
        Calibration.from_dict(MEASURED.to_dict() | change)


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_file_that_cannot_be_read_as_a_calibration_is_refused(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"broken\.json"):
        apply(find("a10"), path)


def test_the_context_is_what_is_used_beyond_before_less_what_was_reserved():
    assert context_bytes(500 * MIB, 820 * MIB, 500 * MIB, 40 * MIB) == 280 * MIB


def test_nothing_is_said_when_somebody_else_came_or_went_meanwhile():
    with pytest.raises(EngineError, match="another process"):
        context_bytes(500 * MIB, 820 * MIB, 600 * MIB, 40 * MIB)


@WITHOUT_GPU
@pytest.mark.parametrize("arguments", [[], ["cuda:0", "--json"], ["cpu"]])
def test_without_a_gpu_it_is_refused_with_the_status_for_a_missing_device(arguments, capsys):
    assert command(["calibrate", *arguments]) == 4
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("arguments", [["--all"], ["cuda:0", "cuda:1"]])
def test_unknown_arguments_are_refused(arguments, capsys):
    assert command(["calibrate", *arguments]) == 2
    assert "See `python -m engine calibrate --help`." in capsys.readouterr().err


def test_what_was_measured_is_printed_for_people_and_as_json(monkeypatch, capsys):
    monkeypatch.setattr(measure_calibration, "measure", lambda name: MEASURED)
    monkeypatch.setattr(device, "facts_of", lambda name: DeviceFacts(name, "cuda", "NVIDIA A10", 24 * GIB))
    assert command(["calibrate"]) == 0
    assert "NVIDIA A10 (a10)" in capsys.readouterr().out
    assert command(["calibrate", "cuda:0", "--json"]) == 0
    assert Calibration.from_dict(json.loads(capsys.readouterr().out)) == MEASURED


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_real_card_is_calibrated_twice_alike():
    first, second = measure_calibration.measure("cuda:0"), measure_calibration.measure("cuda:0")
    assert abs(first.context_bytes - second.context_bytes) <= 8 * MIB
    assert first.cublas_workspace_bytes == second.cublas_workspace_bytes
