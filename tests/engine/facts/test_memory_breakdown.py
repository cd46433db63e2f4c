"""What filled the memory: which size is explained, entries that add up to the total, and sentences about them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import TimeIsUp, WorkerFailed
from engine.facts.memory_breakdown import (
    ACTIVATIONS,
    CONTENT_LABELS,
    MOST_ENTRIES,
    PARAMETERS,
    SMALLER,
    TEMPORARIES,
    UNATTRIBUTED,
    LiveBlock,
    MemoryBreakdown,
    Request,
    by_kind,
    describe,
    describe_entry,
    describe_moment,
    entries_of,
    layer_pattern,
)
from engine.facts.result import Outcome, Reason
from engine.questions.size import measure
from engine.settings.spec import RunSpec
from engine.text.units import GIB, MIB
from tests.engine.fake_worker import FakeWorker

REQUEST = Request(12 * MIB, "lm_head", "backward", "MmBackward0")
blocks_of_any_kind = st.lists(
    st.builds(
        LiveBlock,
        st.integers(0, GIB),
        st.sampled_from(list(CONTENT_LABELS)),
        st.sampled_from([None, "batch", "h.0.mlp", "h.1.mlp", "stages.0.layers.1", "stages.1.layers.1"]),
        st.sampled_from([None, "forward", "backward"]),
    ),
    max_size=40,
)


def breakdown(*blocks, moment="refusal", total=None, limit=4 * GIB, request=REQUEST, **others):
    total = sum(block.size_bytes for block in blocks) if total is None else total
    return MemoryBreakdown(33, moment, "measured", total, limit, request, entries_of(blocks, total), **others)


LOGITS = LiveBlock(2 * GIB, TEMPORARIES, "loss", "backward", "LogSoftmaxBackward0")
LAYERS = [LiveBlock(256 * MIB, ACTIVATIONS, f"h.{i}.mlp", "forward", "gelu") for i in range(4)]
WEIGHTS = LiveBlock(512 * MIB, PARAMETERS, "wte")


@given(blocks_of_any_kind, st.integers(0, GIB))
def test_the_entries_add_up_to_the_total_whatever_is_live(blocks, unknown):
    total = sum(block.size_bytes for block in blocks) + unknown
    found = breakdown(*blocks, total=total)
    assert sum(entry.size_bytes for entry in found.entries) == total
    assert sum(by_kind(found).values()) == total


def test_what_no_block_explains_is_not_attributed():
    (known, unknown) = entries_of([WEIGHTS], WEIGHTS.size_bytes + 7)
    assert (known.module, unknown.kind, unknown.module, unknown.size_bytes) == ("wte", UNATTRIBUTED, None, 7)


def test_blocks_above_the_total_are_refused():
    with pytest.raises(ValueError, match="1 bytes more"):
        entries_of([LiveBlock(8, ACTIVATIONS)], 7)


def test_the_same_layers_are_one_entry_with_their_count():
    (entry,) = entries_of(LAYERS, GIB)
    assert (entry.module, entry.modules, entry.blocks, entry.operator) == ("h.*.mlp", 4, 4, "gelu")


def test_a_single_layer_keeps_its_number():
    (entry,) = entries_of(LAYERS[2:3], 256 * MIB)
    assert (entry.module, entry.modules) == ("h.2.mlp", 1)


def test_a_layer_unlike_the_others_is_an_entry_of_its_own():
    unlike, others = entries_of([LiveBlock(3 * GIB, ACTIVATIONS, "h.4.mlp", "forward"), *LAYERS], 4 * GIB)
    assert (unlike.module, unlike.modules, unlike.size_bytes) == ("h.4.mlp", 1, 3 * GIB)
    assert (others.module, others.modules, others.size_bytes) == ("h.*.mlp", 4, GIB)


@pytest.mark.parametrize(
    ("module", "pattern"),
    [
        ("bert.encoder.layer.11.output", "bert.encoder.layer.*.output"),
        ("encoder.layers.encoder_layer_3.mlp.0", "encoder.layers.encoder_layer_3.mlp.*"),
        ("encoder.layers.encoder_layer_3.ln_1", "encoder.layers.encoder_layer_3.ln_*"),
        ("encoder.stages.0.layers.2.layer.1.conv", "encoder.stages.0.layers.*.layer.*.conv"),
        ("layer1.0.conv2", "layer1.*.conv2"),
        ("lm_head", "lm_head"),
        (None, None),
    ],
)
def test_layers_of_one_stage_are_alike(module, pattern):
    assert layer_pattern(module) == pattern


def test_the_largest_entry_is_first():
    assert [entry.size_bytes for entry in breakdown(WEIGHTS, *LAYERS, LOGITS).entries] == [2 * GIB, GIB, 512 * MIB]


def test_many_small_entries_are_joined_by_kind():
    blocks = [LiveBlock(1000 - i, (ACTIVATIONS, PARAMETERS)[i % 2], f"part{i}") for i in range(MOST_ENTRIES + 10)]
    found = breakdown(*blocks)
    assert len(found.entries) == MOST_ENTRIES + 2
    assert {(entry.kind, entry.module, entry.blocks) for entry in found.entries[MOST_ENTRIES:]} == {
        (PARAMETERS, SMALLER, 5),
        (ACTIVATIONS, SMALLER, 5),
    }
    assert sum(by_kind(found).values()) == found.total_bytes


def test_a_refusal_says_what_was_requested_where():
    assert describe_moment(breakdown(LOGITS, WEIGHTS)) == (
        "Batch 33 ran out of memory: 12.0 MiB at lm_head in backward (MmBackward0), with 2.5 GiB of 4.0 GiB live."
    )
    assert describe(breakdown(LOGITS, WEIGHTS)).endswith(" Most of it, by kind: temporary 80 %, weights 20 %.")


def test_a_refusal_that_nothing_measured_is_predicted():
    predicted = replace(breakdown(LOGITS, WEIGHTS), method="estimated")
    assert describe_moment(predicted).startswith("Batch 33 would run out of memory: 12.0 MiB at lm_head in backward ")


def test_a_peak_is_no_refusal():
    text = describe_moment(breakdown(LOGITS, moment="peak"))
    assert text == "The peak of batch 33 is 2.0 GiB at lm_head in backward (MmBackward0)."


def test_weights_above_the_limit_refuse_before_the_first_step():
    found = breakdown(WEIGHTS, limit=100 * MIB, request=Request(0, None, None, None))
    text = "Batch 33 cannot begin: 512.0 MiB are live before its first step, and the limit is 100.0 MiB."
    assert describe_moment(found) == text


def test_an_unknown_size_is_not_written_as_zero():
    assert "ran out of memory: a request," in describe_moment(
        breakdown(LOGITS, request=Request(None, None, None, None))
    )


def test_an_entry_is_one_line():
    found = breakdown(LOGITS, *LAYERS)
    first, second = (describe_entry(entry, found) for entry in found.entries)
    assert first == "67 %  2.0 GiB  temporary at loss, from backward"
    assert second == "33 %  1.0 GiB  activations at h.*.mlp (4 modules), from forward"


def test_a_breakdown_survives_json():
    found = breakdown(LOGITS, *LAYERS, cached_bytes=5, step=2).taking(1.23456)
    assert MemoryBreakdown.from_dict(found.to_dict()) == found
    assert found.seconds == 1.235


BREAKDOWN = MemoryBreakdown(
    41, "refusal", "measured", 8, 10, Request(3, "mlp", "forward", "gelu"), entries_of([LiveBlock(8, "inputs")], 8)
)


def run(worker, **changes):
    events = []
    parts = {name: changes.pop(name) for name in ("explains",) if name in changes}
    return measure(RunSpec("bert-tiny", device="cpu", **changes), events.append, worker=worker, **parts), events


def test_the_refused_size_is_explained_after_everything_else():
    worker = FakeWorker(40, breakdown=BREAKDOWN)
    result, events = run(worker)
    assert (worker.explained, result.memory_breakdown) == ([41], BREAKDOWN)
    phases = [event["phase"] for event in events if event["event"] == "phase"]
    assert phases[-2:] == ["explaining", "finished"]
    assert any("Batch 41 ran out of memory" in event["message"] for event in events if event["event"] == "log")
    assert result.to_dict()["memory_breakdown"]["entries"][0]["kind"] == "inputs"


def test_where_nothing_was_refused_the_largest_size_is_explained():
    worker = FakeWorker(400, breakdown=BREAKDOWN)
    run(worker, max_batch_size=64)
    assert worker.explained == [64]


def test_a_refusal_that_is_not_for_memory_is_not_explained_as_one():
    worker = FakeWorker(40, refusal=Outcome.SIZE_LIMIT, breakdown=BREAKDOWN)
    result, _ = run(worker)
    assert (result.boundary.reason, worker.explained) == (Reason.SIZE_LIMIT, [40])


@pytest.mark.parametrize(("size", "explained"), [(41, [41]), (40, [])])
def test_a_check_explains_only_a_refusal(size, explained):
    worker = FakeWorker(40, breakdown=BREAKDOWN)
    run(worker, check_batch_size=size)
    assert worker.explained == explained


@pytest.mark.parametrize("failure", [WorkerFailed("it crashed"), TimeIsUp("no answer"), None])
def test_a_run_does_not_fail_for_want_of_an_explanation(failure):
    result, events = run(FakeWorker(40, breakdown=failure))
    assert (result.boundary.certified, result.memory_breakdown) == (True, None)
    told = [event["message"] for event in events if event["event"] == "log" and "what filled" in event["message"]]
    assert len(told) == 1


def test_the_answer_is_the_same_without_it():
    worker = FakeWorker(40, breakdown=BREAKDOWN)
    result, _ = run(worker, explains=False)
    assert worker.explained == []
    assert (result.memory_breakdown, result.boundary.largest_batch_size) == (None, 40)
