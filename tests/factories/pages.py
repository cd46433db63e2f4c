"""Reading a page as its reader does, and runs to read."""

import re
from typing import Any

from django.test import Client

from analysis.models import Device, Run
from analysis.runs import services
from engine.facts.result import RunResult
from engine.text.units import GIB
from tests.factories import make_claimed_run, make_spec
from tests.factories.estimates import estimate_of_card, estimated_at


def page(client: Client, run: Run, query: str = "") -> str:
    response = client.get(run.get_absolute_url() + query)
    assert response.status_code == 200
    return response.content.decode()


def words(html: str) -> str:
    main = re.search(r"<main.*</main>", html, re.DOTALL)
    assert main is not None
    return " ".join(re.sub(r"<script.*?</script>|<[^>]+>", " ", main[0], flags=re.DOTALL).split())


def form_data(on: Device, **values: Any) -> dict[str, Any]:
    """What the form of a run sends."""
    defaults = {"model": "bert-tiny", "precision": "fp32", "optimizer": "adamw", "mode": "train"}
    return {**defaults, "device": on.pk, "current_batch_size": "16", **values}


def estimate_form(**values: Any) -> dict[str, Any]:
    """What the same form sends that asks for an estimate."""
    training = {"model": "bert", "precision": "fp32", "optimizer": "adamw", "mode": "train"}
    return {"kind": "estimate", "gpu": "a10", "current_batch_size": "16", **training, **values}


def finished(result: RunResult, device: Device | None = None, **fields: Any) -> Run:
    run = make_claimed_run(device, **fields)
    services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())
    return run


def poll(client: Client, run: Run, seen: str = "") -> Any:
    return client.get(f"/runs/{run.pk}/live/", {"seen": seen})


def seen_on(html: str) -> str:
    """What the poller of a page says that it shows."""
    seen = re.search(r"\?seen=([\d.]+)", html)
    assert seen is not None
    return seen[1]


def prior_estimate(**bytes_at: int) -> dict[str, Any]:
    """What an engine predicts before it measures: `at_4=...` bytes at batch 4; seven is safe, eight the largest."""
    sizes = {int(name.removeprefix("at_")): size for name, size in bytes_at.items()}
    card = {"id": "cpu", "name": "Test CPU", "total_bytes": 8 * GIB, "calibrated": True}
    at = [estimated_at(n, fits=n <= 8, allocated_bytes=size) for n, size in sizes.items()]
    return estimate_of_card(card, 8, 7, spec=make_spec(memory_limit_bytes=GIB).to_dict(), at=at)
