"""What filled the memory, on the pages of a result and of an estimate."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from analysis.presentation.filled_memory import SHOWN, filled_memory
from engine.results.memory_breakdown import LiveBlock, MemoryBreakdown, Request, entries_of
from engine.results.result import RunResult
from engine.text.units import GIB, MIB
from tests.factories import make_result
from tests.factories.pages import finished, page, words

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
    assert "What filled the memory at batch 9 measured" in text
    assert "at lm_head in backward (MmBackward0): it needed 12.0 MiB more, with 1.0" in text
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
    assert filled.title == "What held the memory at the peak of batch 9"
    assert "refused" not in filled.place


def test_nothing_known_shows_nothing() -> None:
    assert filled_memory(None) is None
    assert filled_memory(breakdown()) is None


def test_only_tiles_with_room_have_text() -> None:
    small = [LiveBlock(MIB, "gradients", f"part{number}") for number in range(20)]
    filled = filled_memory(breakdown(LOGITS, *small))
    assert filled is not None
    assert [tile.room for tile in filled.tiles][0] == "always"
    assert {tile.room for tile in filled.tiles[1:]} == {""}
