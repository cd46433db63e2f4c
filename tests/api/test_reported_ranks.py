"""A model of the catalogue on several ranks is reported as a command is: recomputed over its starts, and shown."""

import json
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from engine.settings.rank_settings import RankStarts
from engine.settings.spec import RunSpec
from engine.trainings.script import run as tune_run
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.ranked_spec import ranked_spec
from tests.engine.trainings.script.test_evidence import reading, steps
from tests.factories.pages import words
from tests.factories.reports import HOST, STARTED_AT, make_run_key

pytestmark = pytest.mark.django_db
NAME = "bert-tiny, fsdp on 2 ranks"


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The document of two ranks, of which the second takes 100 bytes a sample and 4 % less in its second start."""
    started: list[int] = []

    def start(_: object, size: int, *__: object, **___: object) -> Any:
        started.append(size)
        peaks = (90 * size, (100 if started.count(size) != 2 else 96) * size)
        facts = {"world_size": 2, "has_group": True, "python": "3.11.7"}
        ranks = [reading(steps(size), peak=peak, rank=rank, **facts) for rank, peak in enumerate(peaks)]
        return ranks, Ended(wall_seconds=10.0)

    monkeypatch.setattr("engine.trainings.script.speed.seats.start", start)
    spec = ranked_spec(RunSpec("bert-tiny", ranks=2, strategy="fsdp", device="cpu"), RankStarts(compare_speed=False))
    object.__setattr__(spec, "memory_limit_bytes", 10_000)  # below what any model of the catalogue holds
    made = tune_run.tune(spec).to_dict()
    made["timings"]["total_seconds"] += 1_000.0
    made["environment"] |= {"run_key": make_run_key(), "host": HOST, "started_at": STARTED_AT}
    return made


def as_sent(document: dict[str, Any]) -> bytes:
    return json.dumps({"exit_status": 0, "result": document}).encode()


def test_one_start_of_each_size_certifies_no_limit_of_ranks(sender, document: dict[str, Any]) -> None:
    of_largest = [probe for probe in document["probes"] if probe["batch_size"] == 100]
    document["probes"] = [probe for probe in document["probes"] if probe not in of_largest[1:]]
    document["training"]["starts"] = [[p["batch_size"], p["wall_seconds"]] for p in document["probes"]]
    document["timings"]["processes"] = len(document["probes"])
    answer = sender.send_result(as_sent(document))
    assert answer.status_code == 201, answer.content
    assert not Run.objects.get(pk=answer.json()["id"]).certified


@pytest.mark.parametrize(
    ("forged", "field"),
    [
        ({"ranks": 1, "rank_peaks_bytes": [10_000]}, "training.ranks"),
        ({"ranks": 3, "rank_peaks_bytes": [9_000, 10_000, 10_000]}, "training.ranks"),
        ({"micro_batches": 4}, "training.ranks"),
    ],
)
def test_other_ranks_than_those_of_its_command_are_refused(
    forged: dict[str, Any], field: str, sender, document: dict[str, Any]
) -> None:
    document["training"] |= forged
    batches = document["training"]["ranks"] * document["training"]["micro_batches"]
    for probe in document["probes"]:  # the speeds are forged, too
        if probe["batch_size"] == 100 and probe["samples_per_second"]:
            probe["samples_per_second"] *= batches / 2
    answer = sender.send_result(as_sent(document))
    named = {error["field"] for error in answer.json()["errors"]}
    assert (answer.status_code, field in named) == (422, True), named


def test_ranks_that_had_a_gpu_each_are_shown_with_as_many(
    sender, document: dict[str, Any], alice_client: Client
) -> None:
    document["spec"]["device"] = "cuda:0"
    card = {"kind": "cuda", "device": "cuda:0", "name": "NVIDIA A10", "uuid": "GPU-1", "capacity_bytes": 10_000}
    document["device"] |= card
    answer = sender.send_result(as_sent(document))
    assert answer.status_code == 201, answer.content
    run = Run.objects.get(pk=answer.json()["id"])
    assert run.device_count == 2
    assert "2 × A10" in words(alice_client.get("/runs/").content.decode())


def test_its_document_becomes_a_finished_run_whose_page_shows_each_rank(
    sender, document: dict[str, Any], alice_client: Client
) -> None:
    answer = sender.send_result(as_sent(document))
    assert answer.status_code == 201, answer.content
    run = Run.objects.get(pk=answer.json()["id"])
    assert (run.kind, run.model, run.largest_batch_size, run.certified) == ("command", NAME, 100, True)
    for part in ("", "advice/", "export.json", "export.csv"):
        assert alice_client.get(f"/runs/{run.pk}/{part}").status_code == 200, part
    text = words(alice_client.get(f"/runs/{run.pk}/").content.decode())
    assert "Ranks side by side measured Rank Peak with 100 More than the least 0 8.8 KiB – 1 9.8 KiB 1000 B" in text
    assert "Imbalance rank 1 held 1000 B more than rank 0, 11.1 %" in text
    assert "Spread 3 starts of 100 differed by 400 B, 4.2 %" in text
    assert "The global batch is 200: 100 on each of 2 ranks." in text
    assert "3 starts of 100 took 9.8 KiB at most, 400 B more than the least" in text


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("catalogue", None, "spec.model"),
        ("catalogue", {"model": "bert"}, "catalogue"),
        ("model", "bert, fsdp on 2 ranks", "spec.model"),
    ],
)
def test_one_whose_name_is_not_of_what_was_trained_is_refused(
    name: str, value: Any, refused: str, sender, document: dict[str, Any]
) -> None:
    document["spec"][name] = value
    answer = sender.send_result(as_sent(document))
    assert (answer.status_code, refused in str(answer.content)) == (400, True), answer.content
