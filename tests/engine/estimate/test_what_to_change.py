"""The smallest change that fits is found in the order of its cost, and nothing is advised that no estimate carries."""

import json

import pytest

from engine.errors import EstimateImpossible
from engine.estimate.alternatives import Cost, label_of, single_changes
from engine.estimate.what_to_change import Evaluated, Scope, WhatToChange, what_to_change
from engine.settings.spec import RunSpec
from engine.text.from_json import from_json
from tests.engine.synthetic_estimates import evaluated

LIMIT = 1000
QLORA = "LoRA rank 16 + 4-bit base weights"
GRADIENTS = 50


class Device:
    """A device of a thousand bytes: what the weights take, and a sample, depends on the settings."""

    def __init__(self, **bytes_by_setting: tuple[int, int]) -> None:
        self.bytes_by_setting = bytes_by_setting
        self.evaluated: list[RunSpec] = []

    def __call__(self, spec: RunSpec) -> Evaluated:
        self.evaluated.append(spec)
        fixed, sample = 200 + (GRADIENTS if spec.accumulation_steps > 1 else 0), 20
        for name, (less_fixed, sample_part) in self.bytes_by_setting.items():
            if getattr(spec, name) != getattr(RunSpec(spec.model), name):
                fixed, sample = fixed - less_fixed, sample // sample_part
        largest = (LIMIT - fixed) // sample
        safe = (int(LIMIT / 1.1) - fixed) // sample
        return evaluated(LIMIT, 0.1, largest, safe, lambda size: fixed + size * sample)


def tried(scope: Scope, batch_size: int, device: Device, model: str = "bert-tiny", **settings: object) -> WhatToChange:
    return what_to_change(RunSpec(model, **settings), batch_size, device, scope)  # type: ignore[arg-type]


def test_smaller_pieces_are_the_first_advice_and_cost_one_further_estimate() -> None:
    device = Device()
    found = tried(Scope.FIRST, 64, device)
    assert [each.label for each in found.advised] == ["2 micro-batches of 32"]
    assert found.advised[0].memory_bytes == 200 + 32 * 20 + GRADIENTS
    assert [spec.accumulation_steps for spec in device.evaluated] == [1, 2]


def test_pieces_leave_room_for_the_gradients_they_hold() -> None:
    # 33 samples alone are safe (860 of 909), but not with 50 more
    found = tried(Scope.FIRST, 70, Device())
    assert found.advised[0].micro_batch_size == 14  # 35 does not fit either way, and 70 has no divisor between


def test_a_prime_batch_goes_in_pieces_of_one() -> None:
    assert tried(Scope.FIRST, 97, Device()).advised[0].micro_batch_size == 1


def test_pieces_of_a_training_that_accumulates_keep_its_global_batch() -> None:
    found = tried(Scope.FIRST, 64, Device(), accumulation_steps=4)
    assert [each.label for each in found.advised] == ["8 micro-batches of 32"]  # 256 samples, as 4 of 64 are


def test_settings_are_advised_in_the_order_of_their_cost() -> None:
    device = Device(optimizer=(150, 2), gradient_checkpointing=(0, 4), lora_rank=(190, 4))
    found = tried(Scope.SINGLE, 67, device)
    assert [each.label for each in found.advised][:6] == [
        "67 micro-batches of 1",
        "gradient checkpointing",
        "paged-adamw-32bit optimizer",
        "adamw-8bit optimizer",
        "adafactor optimizer",
        "sgd optimizer",
    ]
    orders = [each.order for each in found.advised]
    assert orders == sorted(orders)


def test_eager_attention_is_replaced_before_anything_is_computed_twice() -> None:
    labels = [label_of(changes) for changes in single_changes(RunSpec("bert-tiny", attention="eager"))]
    assert labels[:3] == ["sdpa attention", "freed gradients", "gradient checkpointing"]
    assert "sdpa attention" not in [label_of(changes) for changes in single_changes(RunSpec("bert-tiny"))]


def test_what_keeps_every_gradient_exact_is_tried_from_one_line_to_copies_in_each_step() -> None:
    labels = [label_of(changes) for changes in single_changes(RunSpec("bert-tiny", zero_grad="before-backward"))]
    assert labels[:7] == [
        "before-forward zero_grad",
        "freed gradients",
        "gradient checkpointing",
        "paged-adamw-32bit optimizer",
        "optimizer state offload",
        "activation offload",
        "bf16 precision",
    ]
    assert "before-forward zero_grad" not in [label_of(each) for each in single_changes(RunSpec("bert-tiny"))]
    of_adapters = {label_of(each) for each in single_changes(RunSpec("bert-tiny", lora_rank=8))}
    # theirs are small
    assert not of_adapters & {"freed gradients", "paged-adamw-32bit optimizer", "optimizer state offload"}


def test_freed_gradients_are_advised_whole_and_never_in_pieces() -> None:
    found = tried(Scope.SINGLE, 67, Device(gradients=(150, 2), accumulation_steps=(-1000, 1)))
    assert [each.label for each in found.advised] == ["freed gradients"]
    pieces = tried(Scope.SINGLE, 500, Device(gradients=(150, 2)), gradients="freed", optimizer="sgd")
    assert not any(each.micro_batch_size for each in pieces.variants)


def test_what_a_device_cannot_move_to_the_host_is_left_out_with_its_reason() -> None:
    found = what_to_change(RunSpec("bert-tiny", device="cpu"), 500, Device(), Scope.SINGLE)
    left_out = {each.label: each.reason for each in found.left_out}
    assert "needs a CUDA or XPU device" in left_out["paged-adamw-32bit optimizer"]
    assert "needs a CUDA or XPU device" in left_out["activation offload"]


def test_a_change_that_fits_without_the_margin_is_not_advised() -> None:
    found = tried(Scope.SINGLE, 36, Device(), optimizer="none", gradient_checkpointing=True, lora_rank=16)
    assert found.requested.fits
    assert not found.requested.is_safe
    assert found.advice == ()


def test_lines_of_the_loop_come_first_alone_and_together() -> None:
    found = tried(Scope.SINGLE, 37, Device(outputs=(50, 1), without_cache=(50, 1)), "gpt2-lm")
    assert [each.label for each in found.advised][:3] == [
        "released outputs",
        "no key-value cache",
        "37 micro-batches of 1",
    ]
    together = tried(Scope.FIRST, 39, Device(outputs=(50, 1), without_cache=(50, 1)), "gpt2-lm")
    assert together.advice == ("released outputs + no key-value cache",)
    assert together.advised[0].costs == (Cost.ONE_LINE.text,)


def test_a_loss_in_chunks_is_offered_to_language_models_with_their_logits_kept_or_recomputed() -> None:
    labels = [label_of(changes) for changes in single_changes(RunSpec("gpt2-lm"))]
    assert labels[2] == "loss in chunks of 128"
    assert "loss in chunks of 128 + recomputed logits of the chunks" in labels
    assert not any("chunks" in label_of(changes) for changes in single_changes(RunSpec("gpt2")))
    checkpointed = single_changes(RunSpec("gpt2-lm", gradient_checkpointing=True))
    assert "no key-value cache" not in map(label_of, checkpointed)  # transformers fills none then


def test_pairs_are_tried_only_where_no_single_change_fits() -> None:
    device = Device(gradient_checkpointing=(0, 2), precision=(0, 2), lora_rank=(1, 1))
    # without an optimizer step there is nothing to be done in pieces
    single = tried(Scope.SINGLE, 70, device, optimizer="none")
    assert [each.label for each in single.variants if each.changes_count > 1] == [QLORA]
    both = tried(Scope.SINGLE, 140, device, optimizer="none")
    assert both.advised[0].settings == {"gradient_checkpointing": True, "precision": "bf16"}


def test_a_request_that_fits_is_left_as_it_is() -> None:
    found = tried(Scope.FIRST, 8, Device())
    assert found.requested.is_safe
    assert found.advice == ()
    assert len(found.variants) == 1


def test_what_cannot_be_trained_or_estimated_is_left_out_with_its_reason() -> None:
    device = Device()

    def evaluate(spec: RunSpec) -> Evaluated:
        if spec.precision == "bf16":
            raise EstimateImpossible("no trace of it")
        return device(spec)

    found = what_to_change(RunSpec("resnet18"), 500, evaluate, Scope.SINGLE)
    reasons = {each.label: each.reason for each in found.left_out}
    assert reasons["bf16 precision"].endswith("no trace of it")
    assert "peft" in reasons["LoRA rank 16"]


def test_the_grid_combines_every_setting_once() -> None:
    found = tried(Scope.GRID, 8, Device(), sequence_length=16)
    labels = [each.label for each in found.variants if each.micro_batch_size is None]
    assert len(labels) == len(set(labels)) == 2 * 2 * 4 * 3 * 3  # LoRA is not, is alone, or is with 4 bits


def test_lora_with_4_bits_is_one_change_with_the_costs_of_both() -> None:
    device = Device(lora_rank=(50, 1), load_in_4bit=(130, 2))  # bytes of LoRA alone are not enough
    found = tried(Scope.FIRST, 80, device, optimizer="none")
    assert found.advice == (QLORA,)
    (advised,) = found.advised
    assert advised.settings == {"lora_rank": 16, "load_in_4bit": True}
    assert advised.costs == (Cost.OTHER_WEIGHTS.text, Cost.ROUNDED_WEIGHTS.text)
    assert [each.label for each in found.variants[-2:]] == ["LoRA rank 16", QLORA]  # the costliest of all, and last
    assert from_json(WhatToChange, json.loads(json.dumps(found.to_dict()))) == found


def test_lora_with_4_bits_is_combined_with_the_other_changes_and_not_with_lora() -> None:
    device = Device(lora_rank=(50, 1), load_in_4bit=(130, 2), gradient_checkpointing=(0, 2))
    found = tried(Scope.SINGLE, 150, device, optimizer="none")
    assert found.advice[0] == f"gradient checkpointing + {QLORA}"


@pytest.mark.parametrize("scope", Scope)
def test_weights_of_4_bits_are_never_estimated_without_adapters(scope: Scope) -> None:
    device = Device()  # nothing helps, so everything is tried
    tried(scope, 500, device, optimizer="none")
    tried_with = {(spec.load_in_4bit, spec.lora_rank) for spec in device.evaluated}
    assert tried_with == {(False, None), (False, 16), (True, 16)}


def test_where_adapters_are_trained_already_4_bits_are_a_change_by_themselves() -> None:
    found = tried(Scope.SINGLE, 64, Device(load_in_4bit=(150, 2)), lora_rank=8, optimizer="none")
    assert {each.label: each.costs for each in found.variants}["4-bit base weights"] == (Cost.ROUNDED_WEIGHTS.text,)
    assert not any("LoRA rank" in each.label for each in found.variants)  # another rank would be no saving


def test_where_adapters_are_trained_fewer_layers_and_no_dropout_are_changes_with_their_costs() -> None:
    settings = {"lora_rank": 8, "lora_dropout": 0.1, "optimizer": "none"}
    found = tried(Scope.SINGLE, 64, Device(lora_targets=(150, 2), lora_dropout=(120, 3)), **settings)
    costs = {each.label: each.costs for each in found.variants}
    assert costs["LoRA targets attention"] == (Cost.FEWER_ADAPTERS.text,)
    assert costs["LoRA dropout 0.0"] == (Cost.NO_ADAPTER_DROPOUT.text,)
    fp4 = {"lora_rank": 8, "load_in_4bit": True, "four_bit_format": "fp4", "four_bit_compute": "fp32"}
    labels = {each.label for each in tried(Scope.SINGLE, 64, Device(), **fp4, optimizer="none").variants}
    assert {"fp4-dq 4-bit format", "auto 4-bit compute type"} <= labels
    assert "4-bit output layer" not in labels  # of a classifier it is trained
    dora = {each.label for each in tried(Scope.SINGLE, 64, Device(), lora_rank=8, lora_variant="dora").variants}
    assert "LoRA variant plain" in dora
    named = tried(Scope.SINGLE, 64, Device(), lora_rank=8, lora_targets="query", optimizer="none")
    assert not any("LoRA targets" in each.label for each in named.variants)


@pytest.mark.parametrize(("model", "reason"), [("resnet18", "peft does not know"), ("resnet", "no linear layers")])
def test_a_model_without_the_layers_leaves_4_bits_out_with_its_reason(model: str, reason: str) -> None:
    reasons = {each.label: each.reason for each in tried(Scope.SINGLE, 500, Device(), model).left_out}
    assert reason in reasons[QLORA]


def test_what_was_tried_is_read_back_from_its_document() -> None:
    found = tried(Scope.SINGLE, 64, Device())
    assert from_json(WhatToChange, json.loads(json.dumps(found.to_dict()))) == found


def test_the_remaining_time_is_reported_with_each_change() -> None:
    messages: list[str] = []
    what_to_change(RunSpec("bert-tiny"), 8, Device(), Scope.SINGLE, messages.append)
    assert messages[0].startswith("change 1 of ")
    assert all("s left" in line for line in messages[1:])
