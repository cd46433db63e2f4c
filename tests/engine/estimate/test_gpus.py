"""The GPU catalogue: what ships, how cards are found, the lab's own file, and a card's own constants."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import torch

from engine.cli.main import command
from engine.errors import EngineError, SpecError
from engine.estimate import measure_calibration
from engine.estimate.calibration import Calibration, apply, context_bytes
from engine.estimate.gpus import cublas_workspace_bytes, find, find_by_words, gpus, match, of_memory
from engine.facts.result import DeviceFacts
from engine.measurement import device
from engine.text.units import GIB, MIB

# fmt: off
IDS_OF_THE_ISSUE = {
    "t4", "v100-16gb", "v100-32gb", "a10", "a10g", "l4", "l40s", "rtx-3060-12gb",
    "rtx-3090", "rtx-4090", "rtx-5090", "a4000", "a5000", "a6000",
    "a100-40gb", "a100-40gb-pcie", "a100-80gb", "a100-80gb-pcie", "h100-80gb", "h100-80gb-pcie",
    "h200", "b200", "mi210", "mi250x", "mi300x",
}
# fmt: on
NEW_CARD = """
[lab-card]
name = "A card of the lab"
vendor = "nvidia"
torch_names = ["Lab Card"]
total_bytes = 25_769_803_776
is_total_exact = false
total_source = "nominal"
compute_capability = "9.0"
context_mib = 400
dense_tflops = { fp32 = 10 }
memory_bandwidth_gb_per_second = 500
"""


@pytest.fixture
def own_catalogue(tmp_path, monkeypatch):

    def write(text: str) -> Path:
        path = tmp_path / f"own-{len(text)}.toml"
        path.write_text(text)
        monkeypatch.setenv("MEMORYMARK_GPUS", str(path))
        return path

    return write


def test_the_cards_people_have_are_in_the_catalogue():
    assert set(gpus()) >= IDS_OF_THE_ISSUE
    assert len(gpus()) >= 25


@pytest.mark.parametrize("gpu", gpus().values(), ids=lambda gpu: gpu.id)
def test_each_card_is_plausible(gpu):
    assert 8 * GIB < gpu.total_bytes < 256 * GIB
    assert 100 * MIB < gpu.context_bytes < 700 * MIB
    assert gpu.total_source
    assert not gpu.calibrated
    assert (gpu.compute_capability is None) == (gpu.vendor == "amd")
    assert 300 <= gpu.memory_bandwidth_bytes_per_second / 1e9 < 10_000


@pytest.mark.parametrize("gpu", gpus().values(), ids=lambda gpu: gpu.id)
def test_each_card_has_rates_for_what_it_can_compute(gpu):
    has_tensor_cores_for = gpu.vendor == "amd" or gpu.compute_capability >= (8, 0)
    assert gpu.dense_tflops["fp16"] > gpu.dense_tflops["fp32"] > 0
    assert ("bf16" in gpu.dense_tflops) == has_tensor_cores_for


def test_a_price_always_has_a_source_and_a_day():
    priced = [gpu for gpu in gpus().values() if gpu.price_per_hour_usd is not None]
    assert {gpu.id: gpu.price_per_hour_usd for gpu in priced}.items() >= {"a10": 0.60, "a100-40gb": 1.29}.items()
    assert all(gpu.price_source and date.fromisoformat(gpu.price_date) for gpu in priced)
    assert len(priced) < len(gpus())


@pytest.mark.parametrize(("gpu_id", "total_bytes"), [("rtx-3060-12gb", 12_622_168_064), ("a100-40gb", 42_474_471_424)])
def test_totals_that_torch_reported_are_exact(gpu_id, total_bytes):
    assert find(gpu_id).total_bytes == total_bytes
    assert find(gpu_id).is_total_exact


@pytest.mark.parametrize(
    ("capability", "expected_bytes"),
    [((8, 0), 8_519_680), ((7, 5), 8_519_680), ((9, 0), 32 * MIB), ((12, 0), 32 * MIB), (None, 0)],
)
def test_the_workspace_of_cublas_goes_by_the_capability(capability, expected_bytes):
    assert cublas_workspace_bytes(capability) == expected_bytes


@pytest.mark.parametrize(
    ("text", "offered"),
    [("a100", "a100-40gb"), ("rtx4090", "rtx-4090"), ("H100", "h100-80gb"), ("rtx-409", "rtx-4090")],
)
def test_an_unknown_card_is_refused_with_the_nearest_names(text, offered):
    with pytest.raises(SpecError, match=f"did you mean .*{offered}") as refusal:
        find(text)
    assert refusal.value.field == "gpu"


@pytest.mark.parametrize(
    ("text", "gpu_id"),
    [("4090", "rtx-4090"), ("RTX 3090", "rtx-3090"), ("p100", "p100-16gb"), ("A10", "a10"), ("a100-80gb", "a100-80gb")],
)
def test_a_card_is_found_by_the_words_that_only_it_has(text, gpu_id):
    assert find_by_words(text).id == gpu_id


@pytest.mark.parametrize("text", ["a100", "80gb", "409", "", "rtx"])
def test_words_of_several_cards_or_of_none_are_refused(text):
    with pytest.raises(SpecError, match="is not in the catalogue"):
        find_by_words(text)


def test_a_name_like_no_card_is_pointed_to_the_list():
    with pytest.raises(SpecError, match="python -m engine gpus"):
        find("zzz")


def test_an_unnamed_card_has_just_the_memory_asked_for():
    gpu = of_memory(24 * GIB)
    assert (gpu.total_bytes, gpu.compute_capability, gpu.price_per_hour_usd) == (24 * GIB, (8, 0), None)


@pytest.mark.parametrize("total_bytes", [-1, 0, 512 * MIB, 2000 * GIB])
def test_an_impossible_memory_is_refused(total_bytes):
    with pytest.raises(SpecError, match="no GPU's memory"):
        of_memory(total_bytes)


@pytest.mark.parametrize(
    ("name", "capacity_bytes", "gpu_id"),
    [
        ("NVIDIA A100-SXM4-40GB", 42_298_834_944, "a100-40gb"),  # another driver
        ("Tesla T4", 15_843_721_216, "t4"),
        ("nvidia h100 80gb hbm3", 85_520_809_984, "h100-80gb"),
        ("AMD Instinct MI250X/MI250", 68_702_699_520, "mi250x"),
        ("NVIDIA GeForce RTX 3080", 12 * GIB, None),  # the one of 12 GB is not here
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5 * GIB, None),
        ("AMD EPYC 7B12", 64 * GIB, None),
    ],
)
def test_a_device_is_matched_by_the_name_torch_gives_it_and_its_memory(name, capacity_bytes, gpu_id):
    found = match(name, capacity_bytes)
    assert (found and found.id) == gpu_id


def test_every_card_is_matched_by_its_own_names():
    for gpu in gpus().values():
        assert [match(name, gpu.total_bytes) for name in gpu.torch_names] == [gpu] * len(gpu.torch_names)


def test_the_labs_file_changes_the_fields_it_names_and_no_others(own_catalogue):
    own_catalogue("[a10]\nprice_per_hour_usd = 0.45\nprice_source = 'our invoice'\nprice_date = 2026-01-02\n")
    gpu = find("a10")
    assert (gpu.price_per_hour_usd, gpu.price_source, gpu.price_date) == (0.45, "our invoice", "2026-01-02")
    assert gpu.total_bytes == 23_696_375_808


def test_the_labs_file_adds_cards(own_catalogue):
    own_catalogue(NEW_CARD)
    assert find("lab-card").cublas_workspace_bytes == 32 * MIB
    assert list(gpus())[-1] == "lab-card"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[a10]\nprice = 1\n", "a10.price"),
        ("[a10]\ntotal_bytes = '24GiB'\n", "a10.total_bytes"),
        ("[a10]\ncontext_mib = -1\n", "a10.context_mib"),
        ("[a10]\ncompute_capability = 8.6\n", "a10.compute_capability"),
        ("[a10]\ndense_tflops = { fp64 = 1 }\n", "a10.dense_tflops"),
        ("[a10]\nvendor = 'intel'\n", "a10.vendor"),
        ("[l40]\nprice_per_hour_usd = 1\n", "l40.price_per_hour_usd"),
        ("[a10]\nprice_date = 'soon'\n", "a10.price_date"),
        ("[new]\nname = 'x'\nvendor = 'nvidia'\n", "new.torch_names"),
        ("['My Card']\nname = 'x'\n", "My Card"),
        ("a10 = 1\n", "a10"),
        ("[a10\n", "MEMORYMARK_GPUS"),
    ],
)
def test_a_mistake_in_the_labs_file_is_refused_with_the_fields_name(own_catalogue, text, field):
    own_catalogue(text)
    with pytest.raises(SpecError) as refusal:
        gpus()
    assert refusal.value.field == field


def test_a_missing_own_file_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMORYMARK_GPUS", str(tmp_path / "none.toml"))
    with pytest.raises(SpecError, match="cannot be read"):
        gpus()


def test_the_table_marks_nominal_memory_and_missing_prices(capsys):
    assert command(["gpus"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "name", "memory", "USD/h"]
    assert next(line for line in lines if line.startswith("l40 ")).split()[-3:] == ["~44.31", "GiB", "-"]
    assert next(line for line in lines if line.startswith("a10 ")).split()[-3:] == ["22.07", "GiB", "0.60"]


def test_the_catalogue_is_printed_as_json(capsys):
    assert command(["gpus", "--json"]) == 0
    cards = {card["id"]: card for card in json.loads(capsys.readouterr().out)}
    assert list(cards) == list(gpus())
    assert cards["h200"]["compute_capability"] == "9.0"
    assert cards["mi210"]["price_per_hour_usd"] is None


def test_other_arguments_are_refused(capsys):
    assert command(["gpus", "--all"]) == 2
    assert "No such option '--all'. See `python -m engine gpus --help`." in capsys.readouterr().err


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
