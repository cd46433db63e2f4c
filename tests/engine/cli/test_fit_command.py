"""`python -m engine fit`: which cards train a size, and the exact lines that request one from a scheduler."""

import json
from dataclasses import asdict, replace
from math import ceil, inf
from pathlib import Path

import pytest

from engine.cli.cluster_request import CardChoice, request_lines
from engine.cli.main import main
from engine.estimate.gpus import gpus
from engine.estimate.mig import MigSlice, slices, smallest_slice
from engine.facts.result import DeviceFacts
from engine.text.units import GIB
from engine.trainings.script.result import Training
from tests.engine.cli.test_estimate_command import traces  # noqa: F401  (a fixture)
from tests.factories import make_result

A100 = CardChoice(
    vendor="nvidia",
    driver_names=("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
    total_bytes=80 * GIB,
    basis="ESTIMATE, nothing was measured: bert with 64 samples.",
    slice=MigSlice("1g.10gb", 9 * GIB),
)


def test_slurm_gets_the_card_the_host_memory_and_what_to_check():
    assert request_lines(A100, "slurm") == [
        "# ESTIMATE, nothing was measured: bert with 64 samples.",
        "# Named as AutoDetect=nvml names it; your cluster may use another name. Check: sinfo -o %G",
        "# --mem is an assumption: as much host memory as the GPU has. --host-memory SIZE changes it.",
        "#SBATCH --gres=gpu:nvidia_a100-sxm4-80gb:1",
        "#SBATCH --mem=80G",
        "# A MIG slice 1g.10gb is enough: it has at least 9.0 GiB. Instead of the line with --gres:",
        "# #SBATCH --gres=gpu:nvidia_a100-sxm4-80gb_1g.10gb:1",
    ]


def test_what_the_person_said_is_neither_an_assumption_nor_to_be_checked():
    choice = replace(A100, type_name="a100", host_bytes=12 * GIB, slice=None)
    assert request_lines(choice, "slurm")[1:] == ["#SBATCH --gres=gpu:a100:1", "#SBATCH --mem=12G"]


def test_kubernetes_gets_resources_and_the_label_of_the_feature_discovery():
    assert request_lines(A100, "k8s") == [
        "# ESTIMATE, nothing was measured: bert with 64 samples.",
        "# Check the label: kubectl get nodes -L nvidia.com/gpu.product",
        "# Other names of this GPU: A100-SXM4-80GB",
        "# memory is an assumption: as much host memory as the GPU has. --host-memory SIZE changes it.",
        "# A MIG slice 1g.10gb is enough: it has at least 9.0 GiB. Instead of nvidia.com/gpu, with the MIG strategy "
        "“mixed”:",
        "#   nvidia.com/mig-1g.10gb: 1",
        "spec:",
        "  nodeSelector:",
        "    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB",
        "  containers:",
        "    - name: training",
        "      resources:",
        "        requests:",
        "          memory: 80Gi",
        "        limits:",
        "          nvidia.com/gpu: 1",
    ]


@pytest.mark.parametrize("scheduler", ["slurm", "k8s"])
def test_of_a_card_of_another_vendor_no_name_is_made_up(scheduler):
    lines = request_lines(replace(A100, vendor="amd", driver_names=("AMD Instinct MI300X",)), scheduler)
    assert "is not known" in lines[1]
    assert not [line for line in lines if "gpu.product" in line or "mi300x" in line.lower()]


def test_only_cards_of_the_catalogue_have_slices_and_each_is_smaller_than_the_card():
    divided = {gpu_id: slices(gpu_id) for gpu_id in gpus()}
    assert len([parts for parts in divided.values() if parts]) == 8
    assert slices("t4") == ()
    for gpu_id, parts in divided.items():
        assert all(part.usable_bytes < gpus()[gpu_id].total_bytes for part in parts)
    part = smallest_slice("h200", 15.8 * GIB)
    assert part is not None
    assert part.profile == "1g.18gb"
    assert smallest_slice("a100-80gb", 60 * GIB) is None


def test_the_card_with_the_least_memory_is_the_first_choice(traces, capsys):  # noqa: F811
    assert main(["fit", "bert", "--batch-size", "1"]) == 0
    out = capsys.readouterr().out
    assert "ESTIMATE, nothing was measured: GPUs that train bert with 1 samples" in out
    smallest = min(gpus().values(), key=lambda card: card.total_bytes)
    assert out.startswith(f"First choice by estimate: {smallest.name}, the least memory")


def test_the_request_of_an_estimate_says_its_margin(traces, capsys):  # noqa: F811
    assert main(["fit", "bert", "--batch-size", "1", "--gpu", "t4", "--as", "slurm", "--gpu-type-names", "t4=t4"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("# ESTIMATE, nothing was measured: bert with batch 1 needs ")
    assert first.endswith("%).")
    assert lines[-2:] == ["#SBATCH --gres=gpu:t4:1", "#SBATCH --mem=15G"]


def test_where_no_card_fits_the_status_is_3(traces, capsys):  # noqa: F811
    assert main(["fit", "bert", "--batch-size", "60000", "--gpu", "t4"]) == 1
    assert "no GPU of 1 trains batch 60,000" in capsys.readouterr().err


def test_a_stored_result_requests_its_own_card_by_what_was_measured(tmp_path: Path, capsys):
    facts = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-80GB", 85_095_874_560)
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"exit_status": 0, "result": make_result(device=facts).to_dict()}))
    assert main(["fit", "--result", str(file), "--as", "slurm", "--host-memory", "8GiB"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "# Measured: bert-tiny trained with up to 8 samples on NVIDIA A100-SXM4-80GB (certified); requested: 8.",
        "# Named as AutoDetect=nvml names it; your cluster may use another name. Check: sinfo -o %G",
        "#SBATCH --gres=gpu:nvidia_a100-sxm4-80gb:1",
        "#SBATCH --mem=8G",
    ]
    assert main(["fit", "--result", str(file), "--batch-size", "9"]) == 1


def fit_of_ranks(folder: Path, ranks: int, facts: DeviceFacts, *launcher: str, emulated: int | None = None) -> int:
    """The exit status for the stored result of a command on as many ranks."""
    document = make_result(device=facts).to_dict()
    document["spec"] |= {"emulate_ranks": emulated, "command": [*launcher, "train.py"]}
    peaks, others = (1,) * ranks, {"tokens_per_step": None, "waiting_for_data_fraction": None}
    training = Training(1, ranks, peaks, **others, starts=(), changed_files=())
    file = folder / "result.json"
    file.write_text(json.dumps({**document, "training": asdict(training)}))
    return main(["fit", "--result", str(file), "--as", "slurm"])


@pytest.mark.parametrize(
    ("emulated", "ranks", "grade"), [(None, 8, "Measured"), (8, 8, "Emulated"), (None, 0, "Measured")]
)
def test_a_stored_result_of_ranks_requests_a_gpu_for_each(tmp_path: Path, capsys, emulated, ranks, grade):
    facts = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-80GB", 85_095_874_560)
    assert fit_of_ranks(tmp_path, ranks, facts, "torchrun", emulated=emulated) == 0
    out, count = capsys.readouterr().out, max(ranks, 1)
    assert f"#SBATCH --gres=gpu:nvidia_a100-sxm4-80gb:{count}\n" in out
    assert out.startswith(f"# {grade}: ")
    assert ("on each of 8 NVIDIA A100" in out) == (ranks == 8)
    assert f"#SBATCH --mem={ceil(count * facts.capacity_bytes / GIB)}G" in out


def test_the_lines_of_one_host_are_not_written_for_the_ranks_of_several(tmp_path: Path, capsys):
    facts = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-80GB", 85_095_874_560)
    assert fit_of_ranks(tmp_path, 16, facts, "torchrun", "--nnodes=2", emulated=16) == 2
    assert "is of several hosts (--nnodes 2)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["bert", "--gpu", "no-such-card"], "gpu"),
        (["bert", "--gpu-type-names", "a100"], "gpu_type_names"),
        (["bert", "--batch-size", "0"], "batch_size"),
        (["bert", "--result", "x.json"], "result"),
        (["bert", "--gpu", "t4", "--as", "slurm", "--host-memory", "much"], "host_memory"),
    ],
)
def test_a_wrong_option_is_named(traces, capsys, arguments, field):  # noqa: F811
    assert main(["fit", *arguments]) == 2
    assert f"error: --{field.replace('_', '-')}" in capsys.readouterr().err


def test_numbers_of_gpus_are_compared_by_their_total_price_each_with_its_share(traces, capsys):  # noqa: F811
    compared = ["fit", "bert", "--batch-size", "9", "--ranks", "1,2", "--strategy", "fsdp", "--gpu", "t4,l4,h200"]
    assert main([*compared, "--communication-memory", "500MiB"]) == 0  # one GPU exchanges nothing
    out = capsys.readouterr().out
    assert out.startswith("First choice by estimate: NVIDIA T4, the lowest price for 9 samples at once: 0.59 USD")
    cards = [gpus()[gpu] for gpu in ("t4", "l4", "h200")]
    offers = [
        (n * (inf if card.price_per_hour_usd is None else card.price_per_hour_usd), n, f"{n} x " * (n > 1) + card.name)
        for card in cards
        for n in (1, 2)
    ]
    rows = [line for line in out.splitlines() if "GiB" in line]
    assert [row.partition("  ")[0] for row in rows] == [name for *_, name in sorted(offers)]
    assert {row.split()[-4] for row in rows if " x " in row} == {"5"}
    assert "of emulated ranks" in out


@pytest.mark.parametrize(("scheduler", "line"), [("slurm", "#SBATCH --gres=gpu:t4:8"), ("k8s", "nvidia.com/gpu: 8")])
def test_several_gpus_are_requested_with_their_host_memory(traces, capsys, scheduler, line):  # noqa: F811
    asked = ["fit", "bert", "--batch-size", "16", "--ranks", "8", "--strategy", "zero1", "--gpu", "t4"]
    assert main([*asked, "--as", scheduler, "--gpu-type-names", "t4=t4"]) == 0
    out = capsys.readouterr().out
    assert line in out
    assert "each of 8 NVIDIA T4" in out
    assert "as the GPUs have together" in out
    if scheduler == "slurm":
        assert "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n" in out
        assert "srun torchrun --standalone --nproc-per-node 8 train.py" in out


def test_one_gpu_is_requested_without_a_launcher(traces, capsys):  # noqa: F811
    assert main(["fit", "bert", "--batch-size", "16", "--gpu", "t4", "--as", "slurm"]) == 0
    assert "ntasks" not in capsys.readouterr().out


@pytest.mark.parametrize(("text", "field"), [("2", "strategy"), ("two", "ranks"), ("0", "ranks")])
def test_a_number_of_gpus_without_a_strategy_or_that_is_none_is_named(traces, capsys, text, field):  # noqa: F811
    assert main(["fit", "bert", "--gpu", "t4", "--ranks", text]) == 2
    assert f"error: --{field}" in capsys.readouterr().err
