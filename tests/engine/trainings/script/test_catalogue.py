"""A model of the catalogue on several ranks is a script of ours, which is started and read as anybody's."""

import json
import re
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from engine.cli.main import main
from engine.describe.commands import measure_command
from engine.errors import DeviceUnavailable, SpecError
from engine.facts.result import DeviceFacts, Outcome
from engine.settings.rank_settings import RankStarts
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from engine.trainings.script import run
from engine.trainings.script.judge.evidence import WatchedStart
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.ranked_spec import (
    check_devices,
    on_seen_device,
    ranked_spec,
    request_in,
    requested_spec,
)
from engine.trainings.script.spec import TEMPLATE, TuneSpec, read_tuned_spec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.launch import Watching, start, start_ranks
from tests.engine.trainings.script.test_evidence import reading, steps

WATCHING = Watching(5, timed_steps=3)
CONFIG = json.dumps({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 1000})


def ranks(**settings: Any) -> RunSpec:
    return RunSpec(**{"model": "bert-tiny", "ranks": 2, "strategy": "ddp", "device": "cpu", **settings})


def gpu(number: int, uuid: str | None = None) -> DeviceFacts:
    return DeviceFacts(f"cuda:{number}", "cuda", "", 0, uuid=uuid)


def test_the_command_says_what_is_trained_and_on_how_many_ranks() -> None:
    spec = ranked_spec(ranks(precision="bf16", memory_limit_bytes=GIB))
    assert spec.command[:5] == ("{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    assert spec.command[-1] == "{batch_size}"
    assert spec.catalogue == {"model": "bert-tiny", "precision": "bf16", "ranks": 2, "strategy": "ddp"}
    assert (spec.model, spec.program) == ("bert-tiny, ddp on 2 ranks", sys.executable)
    assert spec.memory_limit_bytes == GIB


def test_the_price_is_that_of_a_device_for_each_rank_but_ranks_of_a_cpu_share_it() -> None:
    on_gpus, on_a_cpu = (ranked_spec(ranks(device=device, price_per_hour_usd=1.5)) for device in ("cuda", "cpu"))
    assert (on_gpus.price_per_hour_usd, on_a_cpu.price_per_hour_usd) == (3.0, 1.5)
    for spec in (on_gpus, on_a_cpu):
        assert requested_spec(request_in(spec.to_dict())).price_per_hour_usd == spec.price_per_hour_usd


@pytest.mark.parametrize(
    "given",
    [
        {"lora_rank": 8, "accumulation_steps": 4},
        {"model": "config", "config": CONFIG, "task": "text-generation", "strategy": "fsdp"},
        {"ranks": 8, "strategy": "zero1"},
    ],
)
def test_a_document_is_read_back_as_what_was_trained(given: Any) -> None:
    requested = ranks(**given)
    spec = ranked_spec(requested, RankStarts(requested.ranks))
    document = json.loads(json.dumps(spec.to_dict()))
    assert document["catalogue"]["strategy"] == requested.strategy
    assert read_tuned_spec(document) == spec
    assert requested_spec(request_in(document)) == spec
    trained = RunSpec.from_dict(document["catalogue"])
    assert (trained.model, trained.lora_rank, trained.config) == (
        requested.model,
        requested.lora_rank,
        requested.config,
    )


def test_the_command_is_made_of_what_is_trained_whatever_a_document_says_of_it() -> None:
    spec = ranked_spec(ranks())
    assert read_tuned_spec({**spec.to_dict(), "command": ["rm", "-r", "/"]}) == spec


@pytest.mark.parametrize("trained", [{"model": "bert-tiny"}, [], {"model": "bert-tiny", "rank": 2}])
def test_what_no_ranks_train_is_refused(trained: Any) -> None:
    with pytest.raises(SpecError):
        TuneSpec(catalogue=trained)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({"check_batch_size": 4}, {}, "check_batch_size: is for one device"),
        ({"torch_compile": True}, {}, "torch_compile: is measured on one device"),
        ({"device": "cuda:1"}, {}, "device: cuda:1 is one GPU, and 2 ranks need one each"),
        ({"communication_bytes": 1}, {}, "communication_bytes: is for --emulate-ranks N"),
        ({}, {"rank": (0,)}, "rank: is for --emulate-ranks N"),
        ({}, {"emulate_ranks": 2, "rank": (2,)}, "rank: 2 is no rank of 2"),
    ],
)
def test_what_ranks_cannot_do_is_refused_by_its_name(given: Any, options: Any, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        ranked_spec(ranks(**given), RankStarts(**options))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"emulate_ranks": True}, "emulate_ranks"),
        ({"emulate_ranks": 1025}, "emulate_ranks"),
        ({"emulate_ranks": 4}, "emulate_ranks"),
        ({"rank": 0}, "rank"),
        ({"emulate_ranks": 2, "rank": [[]]}, "rank"),
        ({"compare_speed": 1}, "compare_speed"),
        ({"ranks": 1, "strategy": "", "rank": [0]}, "rank"),
    ],
)
def test_a_request_of_other_ranks_is_refused_by_its_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as refused:
        requested_spec({"model": "bert-tiny", "ranks": 2, "strategy": "ddp", **given})
    assert refused.value.field == field


def test_what_is_left_to_the_machine_has_the_price_of_the_cpu_that_its_ranks_share() -> None:
    spec = ranked_spec(ranks(device="auto", price_per_hour_usd=1.5))
    cpu = DeviceFacts("cpu", "cpu", "CPU", 64 * GIB)
    assert on_seen_device(spec, [gpu(0), gpu(1)]) is spec
    on_a_cpu = on_seen_device(spec, [cpu])
    assert (on_a_cpu.device, on_a_cpu.price_per_hour_usd) == ("cpu", 1.5)


def test_fewer_gpus_than_ranks_are_refused_unless_their_driver_does_not_list_them() -> None:
    spec = ranked_spec(ranks(device="cuda"))
    with pytest.raises(DeviceUnavailable, match="2 ranks need a GPU each, and 1 can be seen here"):
        check_devices(spec, [gpu(0, "GPU-1")])
    check_devices(spec, [gpu(0, "GPU-1"), gpu(1, "GPU-2")])
    check_devices(spec, [gpu(0)])
    check_devices(ranked_spec(ranks(device="cuda"), RankStarts(2)), [gpu(0, "GPU-1")])


def test_ranks_on_a_cpu_that_would_fill_the_host_are_refused() -> None:
    host = [DeviceFacts("cpu", "cpu", "CPU", 8 * GIB)]
    check_devices(ranked_spec(ranks()), host)
    with pytest.raises(SpecError, match=r"4 ranks of 4.0 GiB are more than the 8.0 GiB of this host"):
        check_devices(ranked_spec(ranks(ranks=4)), host)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "2"], "--strategy: is required with 2 GPUs; one of ddp, fsdp, zero1"),
        (["--ranks", "2", "--strategy", "ddp", "--device", "mps"], "--ranks: several devices are of CUDA, or cpu"),
        (["--emulate-ranks", "1", "--strategy", "ddp"], "--emulate-ranks: must be a whole number from 2"),
        (["--emulate-ranks", "8", "--ranks", "2", "--strategy", "ddp"], "stands in for all 2 ranks"),
        (["--emulate-ranks", "8", "--rank", "x", "--strategy", "ddp"], "--rank: 'x' is no list of"),
        (["--rank", "0"], "--rank: is for several ranks"),
    ],
)
def test_wrong_options_of_ranks_are_named_as_they_were_typed(arguments: list[str], said: str, capsys: Any) -> None:
    assert main(["bert-tiny", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_an_estimate_for_several_gpus_names_the_command_that_measures_them() -> None:
    command = measure_command(ranks(optimizer="sgd", communication_bytes=1).to_dict())
    assert command == "memorymark measure bert-tiny --optimizer sgd --ranks 2 --strategy ddp"


@pytest.mark.slow
def test_a_rank_of_the_catalogue_is_seen_and_holds_what_an_emulated_one_does() -> None:
    spec = ranks(sequence_length=16)
    measured, emulated = ranked_spec(spec), ranked_spec(spec, RankStarts(2, rank=(1,)))
    readings, ended = start(partial(begin_command, measured), 8, WATCHING, seconds=300)
    evidence = WatchedStart(readings, ended, 8, limit_bytes=GIB, batch=TEMPLATE, honoured=()).evidence()
    assert (evidence.probe.outcome, evidence.micro_batches, len(evidence.ranks)) == (Outcome.FITS, 1, 2)
    once = partial(start, partial(begin_command, emulated), 8)
    readings, ended = start_ranks(once, WATCHING, emulated.emulated_ranks, seconds=300)
    alone = WatchedStart(readings, ended, 8, limit_bytes=GIB, batch=TEMPLATE, honoured=(), emulated=(1,)).evidence()
    assert (alone.world_size, alone.ranks[0]) == (2, pytest.approx(evidence.ranks[1], rel=0.002))


def test_a_model_of_the_catalogue_has_no_whole_run_to_go_on_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(_: object, size: int, *__: object, **___: object) -> Any:
        ranks = [
            reading(steps(size), rank=rank, peak=10_000_000 * size, world_size=2, python="3.11.7") for rank in (0, 1)
        ]
        return ranks, Ended(wall_seconds=1.0)

    monkeypatch.setattr("engine.trainings.script.speed.seats.start", started)
    spec = replace(ranked_spec(ranks(memory_limit_bytes=405_000_000)), device="auto", compare_speed=False)
    found = run.tune(spec)
    assert (found.largest_batch_size, found.training.unseen) == (40, None)
