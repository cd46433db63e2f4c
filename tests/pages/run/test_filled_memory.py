"""Tabs of a result: what filled the memory, and of one's own script its starts, its peaks and its changes."""

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run, State
from analysis.presentation.filled_memory import SHOWN, filled_memory
from engine.facts.memory_breakdown import LiveBlock, MemoryBreakdown, Request, entries_of
from engine.facts.result import RunResult
from engine.text.units import GIB, MIB
from engine.trainings.script.result import Throughput
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_measured_run, make_probe, make_result
from tests.factories.pages import finished, page, words
from tests.factories.speeds import make_timed_result, make_unmeasurable_result
from tests.factories.tuned import COMMAND, not_compared, tuned

pytestmark = pytest.mark.django_db

LOGITS = LiveBlock(512 * MIB, "temporaries", "lm_head", "backward", "LogSoftmaxBackward0")
LAYERS = [LiveBlock(64 * MIB, "activations", f"h.{number}.mlp", "forward", "gelu") for number in range(4)]
WEIGHTS = LiveBlock(256 * MIB, "parameters", "wte")


def breakdown(*blocks: LiveBlock, **changes: Any) -> MemoryBreakdown:
    total = sum(block.size_bytes for block in blocks)
    request = Request(12 * MIB, "lm_head", "backward", "MmBackward0")
    found = MemoryBreakdown(
        9, "refusal", "measured", total, GIB, request, entries_of(blocks, total), step=1, seconds=2.5
    )
    return replace(found, **changes)


def result_with(found: MemoryBreakdown | None) -> RunResult:
    return replace(make_result(), memory_breakdown=found)


def test_a_refusal_is_explained_on_the_page(alice_client: Client) -> None:
    html = page(alice_client, finished(result_with(breakdown(LOGITS, *LAYERS, WEIGHTS))))
    text = words(html.replace("<wbr>", ""))
    assert "What filled the memory at batch 9, step 1 measured" in text
    assert "Batch 9 ran out of memory: 12.0 MiB at lm_head in backward (MmBackward0), with 1.0" in text
    assert "50.0 % temporary at lm_head; 25.0 % activations at h.*.mlp (4 modules); 25.0 % weights at wte." in text
    assert html.count('class="room-') >= 2
    assert 'href="#memory">Memory</a>' in html


def test_every_entry_is_a_tile_and_a_line_of_the_table(alice_client: Client) -> None:
    many = [LiveBlock((40 - number) * MIB, "activations", f"part{number}", "forward") for number in range(30)]
    html = page(alice_client, finished(result_with(breakdown(*many))))
    picture = re.search(r'<svg class="treemap".*?</ul>', html, re.DOTALL)
    assert picture is not None
    assert picture[0].count("<title>") == 30
    assert len(re.findall(r'<th scope="row">part\d+</th>', html)) == 30
    assert f"{30 - SHOWN} smaller" in html


def test_a_result_without_a_breakdown_has_no_tab_for_it(alice_client: Client) -> None:
    html = page(alice_client, finished(result_with(None)))
    assert 'href="#memory"' not in html


def test_a_result_of_an_earlier_version_is_shown(alice_client: Client) -> None:
    run = finished(make_result())
    assert run.result is not None or run.refresh_from_db() is None
    del run.result["memory_breakdown"], run.result["timings"]["explaining_seconds"]
    run.save()
    assert 'href="#memory"' not in page(alice_client, run)


def test_fragmentation_is_told_apart_and_only_where_it_is_known() -> None:
    for cached, text in (
        (None, ""),
        (0, "Fragmentation: none"),
        (96 * MIB, "Fragmentation: 96.0 MiB more were reserved"),
    ):
        filled = filled_memory(breakdown(LOGITS, cached_bytes=cached))
        assert filled is not None
        assert filled.fragmentation.startswith(text)
        assert bool(filled.fragmentation) == bool(text)


def test_a_peak_is_not_called_a_refusal() -> None:
    filled = filled_memory(breakdown(LOGITS, moment="peak"))
    assert filled is not None
    assert filled.title == "What held the memory at the peak of batch 9, step 1"
    assert "refused" not in filled.moment


def test_nothing_known_shows_nothing() -> None:
    assert filled_memory(None) is None
    assert filled_memory(breakdown()) is None


def test_only_tiles_with_room_have_text() -> None:
    small = [LiveBlock(MIB, "gradients", f"part{number}") for number in range(20)]
    filled = filled_memory(breakdown(LOGITS, *small))
    assert filled is not None
    assert [tile.room for tile, _ in filled.tiles][0] == "always"
    assert {tile.room for tile, _ in filled.tiles[1:]} == {""}


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
