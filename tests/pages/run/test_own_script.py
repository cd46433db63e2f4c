"""The result of one's own script: its starts are folded, its peaks have a tab, and its speeds are timed again."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from django.test import Client

from analysis.models import Run, State
from engine.results.result import RunResult
from engine.tune.spec import TuneSpec
from engine.tune.training import Throughput
from tests.factories import make_measured_run, make_probe
from tests.factories.pages import page, words
from tests.factories.speeds import make_timed_result, make_unmeasurable_result
from tests.factories.tuned import COMMAND, not_compared, tuned

pytestmark = pytest.mark.django_db
SPEC = TuneSpec(COMMAND, current_batch_size=4, name="train")


def html_of(client: Client, result: RunResult) -> str:
    return page(client, tuned(result, SPEC))


def test_its_starts_are_a_folded_table(alice_client: Client) -> None:
    html = html_of(alice_client, make_timed_result())
    assert '<details><summary id="starts-title">Starts' in html
    assert "1, in their order Start Batch Took 1 4 1.0 s" in words(html)


def test_starts_that_were_unsteady_show_no_throughput_to_divide(alice_client: Client) -> None:
    run = tuned(make_timed_result(), SPEC)
    assert run.result is not None
    starts = Throughput(16, 64.6, is_steady=True), Throughput(794, 249.7, is_steady=False)
    run.result["training"]["throughputs"] = [asdict(each) for each in starts]
    run.save()
    text = words(page(alice_client, run))
    assert "Throughput of each size" in text
    assert "64.6" in text
    assert "250" not in text
    assert "249.7" not in text


def test_its_peaks_have_a_tab_like_the_kinds_of_a_model(alice_client: Client) -> None:
    timed = make_timed_result()
    probes = tuple(replace(probe, memory_by_kind=None) for probe in timed.probes)  # of a script nobody knows the parts
    own = html_of(alice_client, replace(timed, probes=probes))
    assert '<a href="#memory">Memory</a>' in own
    assert "4 39.1 % 400.0 MiB" in words(own)


def test_it_has_a_tab_of_changes_that_claims_no_saving(alice_client: Client) -> None:
    html = html_of(alice_client, make_timed_result())
    assert '<a href="#change">Change</a>' in html
    text = words(html)
    assert "Gradient checkpointing the same gradients, but activations are computed twice" in text
    assert "so no saving is estimated" in text


def test_time_again_of_a_registered_command_queues_it_with_its_speeds(
    alice_client: Client, settings, tmp_path: Path
) -> None:
    settings.COMMANDS_FILE = tmp_path / "commands.toml"
    settings.COMMANDS_FILE.write_text(f'[[command]]\nname = "train"\ncommand = {list(COMMAND)}\n')
    spec = replace(SPEC, compare_speed=False)
    run = tuned(make_unmeasurable_result(), spec)
    Run.objects.filter(pk=run.pk).update(model="train")
    again = alice_client.post(f"{run.get_absolute_url()}repeat/", {"only": "speeds"})
    queued = Run.objects.latest("pk")
    assert again.headers["Location"] == queued.get_absolute_url()
    assert (queued.state, queued.model, queued.spec["compare_speed"]) == (State.QUEUED, "train", True)


def test_a_models_result_has_no_such_tab(alice_client: Client) -> None:
    assert "Peak memory of each size that fits" not in page(alice_client, make_measured_run())


def test_a_column_without_a_figure_is_left_out(alice_client: Client) -> None:
    blank = replace(make_timed_result(), probes=(make_probe(8, samples_per_second=None, step_seconds=None),))
    html = html_of(alice_client, blank)
    assert (">Samples/s<" in html, ">Step<" in html) == (False, False)


def test_a_column_with_a_figure_is_shown(alice_client: Client) -> None:
    assert ">Samples/s<" in html_of(alice_client, make_timed_result())


def test_time_again_starts_it_once_more_with_its_speeds_and_nothing_else_is_offered_for_that(
    alice_client: Client,
) -> None:
    html = html_of(alice_client, make_unmeasurable_result())
    assert (html.count(">Time again<"), html.count(">Run again<")) == (1, 0)
    assert 'value="speeds">Time again<' in html
    assert "“Time again” repeats all starts" in words(html)


@pytest.mark.parametrize("make", [not_compared, make_timed_result])
def test_where_timing_again_brings_no_answer_it_is_not_offered(
    alice_client: Client, make: Callable[[], RunResult]
) -> None:
    assert "Time again" not in html_of(alice_client, make())


def test_figures_of_emulated_ranks_are_nowhere_called_measured_and_offer_no_comparison_of_speeds(
    alice_client: Client,
) -> None:
    html = page(alice_client, tuned(not_compared(), replace(SPEC, emulate_ranks=8)))
    assert '<span class="chip">emulated</span>' in html
    assert "kind-emulated" in html
    assert "kind-measured" not in html
    assert "Compare speeds" not in html
    assert "--no-compare-speed" not in html
