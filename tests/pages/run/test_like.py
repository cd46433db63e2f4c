"""A run with the settings of a library: what is given wins, and the page says where the rest is from."""

import pytest
from django.test import Client
from django.utils import timezone

from analysis.models import Run
from analysis.pages.home.first_values import values_of
from analysis.presentation.kinds import settings_of_run
from analysis.runs import services
from analysis.runs.earlier.reuse import NOT_MEASURED, part_without
from engine.estimate.gpus import find
from engine.settings.spec import RunSpec
from tests.factories import make_device, make_user
from tests.factories.pages import estimate_form, page, words
from tests.fake_engine import estimate_of

pytestmark = pytest.mark.django_db
PATH = "/api/v1/estimates/"


def test_the_api_stores_the_settings_with_the_profile_that_they_are_from(alice_client: Client) -> None:
    body = {"model": "llama-3.2-1b", "gpu": "a10", "like": "litgpt-lora", "lora_rank": 4}
    assert alice_client.post(PATH, body, content_type="application/json").status_code == 202
    spec = Run.objects.get().spec
    assert (spec["like"], spec["lora_rank"], spec["lora_targets"]) == ("litgpt-lora", 4, "query-value")


def test_a_profile_that_does_not_fit_the_model_is_refused_by_name(alice_client: Client) -> None:
    body = {"model": "bert", "gpu": "a10", "like": "litgpt-lora"}
    answer = alice_client.post(PATH, body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/like")


def test_the_form_takes_the_profile_for_what_has_its_default(client: Client) -> None:
    client.force_login(make_user("ann"))
    values = estimate_form(model="gpt2-lm", like="hf-trainer", precision="bf16")
    assert client.post("/runs/new/", values).status_code == 302
    run = Run.objects.get()
    spec = run.spec
    assert (spec["precision"], spec["optimizer"], spec["clip_grad_norm"]) == ("bf16", "adamw-fused", True)
    claimed = services.estimate_claim(owner="lab:1")
    assert claimed is not None
    result = {"estimates": [estimate_of(claimed.run_spec, find("a10"))]}
    services.run_finish(run_id=claimed.pk, token=claimed.token, result=result)
    assert "hf-trainer: adamw-fused optimizer, gradient clipping" in words(page(client, run))


def test_a_measurement_takes_a_profile_too_and_says_so_beside_its_settings(alice_client: Client) -> None:
    make_device(last_seen_at=timezone.now())
    body = {"model": "gpt2-lm", "device": "cpu", "like": "hf-trainer", "precision": "bf16"}
    assert alice_client.post("/api/v1/runs/", body, content_type="application/json").status_code == 202
    run = Run.objects.get()
    assert (run.spec["like"], run.spec["outputs"], run.spec["precision"]) == ("hf-trainer", "released", "bf16")
    assert "settings of hf-trainer" in settings_of_run(run)
    plain = RunSpec.from_dict({name: value for name, value in run.spec.items() if name != "like"})
    assert part_without(run.run_spec, NOT_MEASURED) == part_without(plain, NOT_MEASURED)


@pytest.mark.parametrize(("changed", "kept"), [({}, "hf-trainer"), ({"outputs": "kept"}, None)])
def test_a_form_with_the_settings_of_a_run_keeps_the_profile_where_it_means_the_same(
    changed: dict[str, str], kept: str | None
) -> None:
    spec = RunSpec.from_dict({"model": "bert", "like": "hf-trainer", **changed})
    run = Run(kind=Run.Kind.MEASUREMENT, spec=spec.to_dict(), requested_kind="cpu")
    assert values_of(run).get("like") == kept
