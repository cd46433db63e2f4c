"""The code to paste trains with the installed libraries, with the batch, precision and optimizer that it names."""

from dataclasses import dataclass, field

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from engine.advice import snippets
from tests.engine.advice.libraries import of_each_library, run
from tests.engine.advice.recipes import MICRO, STEPS, recipe

OPTIMIZER_STEPS, LEARNING_RATE, FEATURES = 2, 0.0125, 4
TRAININGS = (
    {"precision": "fp32", "optimizer": "adamw"},
    {"precision": "bf16", "optimizer": "momentum", "gradient_checkpointing": True},
    {"precision": "bf16-pure", "optimizer": "adamw-fused"},
    {"precision": "fp32", "optimizer": "adafactor", "lora_rank": 2},
)
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries, about each other


@dataclass
class Seen:
    """What a training did: the size of each forward pass, the precision of a layer in it, each optimizer step."""

    batch_sizes: list[int] = field(default_factory=list)
    dtypes: list[torch.dtype] = field(default_factory=list)
    optimizers: list[type] = field(default_factory=list)
    momenta: list[float | None] = field(default_factory=list)
    learning_rates: list[float] = field(default_factory=list)


def tiny_bert():
    from engine.measurement.torchvision_schemas import import_torchvision

    import_torchvision()
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    return BertForSequenceClassification(BertConfig(vocab_size=16, max_position_embeddings=8, **sizes)).eval()


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return MICRO * STEPS * OPTIMIZER_STEPS

    def __getitem__(self, index):
        return {"input_ids": torch.arange(FEATURES), "labels": torch.tensor(index % 2)}


def trained(code, model, dataset, tmp_path, monkeypatch, **yours):
    """Run the code as it stands, with what is the reader's own, and say what it did."""
    monkeypatch.chdir(tmp_path)
    seen = Seen()
    layer = next(
        module for name, module in model.named_modules() if name.endswith("intermediate.dense") or name == "layer"
    )

    def after_forward(module, args, kwargs, _):
        batch = kwargs["labels"] if "labels" in kwargs else args[0]
        seen.batch_sizes.append(batch.shape[0])

    def after_step(optimizer, args, kwargs):
        group = optimizer.param_groups[0]
        seen.optimizers.append(type(optimizer))
        seen.momenta.append(group.get("momentum"))
        seen.learning_rates.append(group["lr"])

    model.register_forward_hook(after_forward, with_kwargs=True)
    layer.register_forward_hook(lambda module, args, outputs: seen.dtypes.append(outputs.dtype))
    handle = register_optimizer_step_post_hook(after_step)
    try:
        run(code, model=model, dataset=dataset, learning_rate=LEARNING_RATE, **yours)
    finally:
        handle.remove()
    return seen


@of_each_library
@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: "-".join(map(str, training.values())))
def test_code_trains_with_exactly_the_batch_the_precision_and_the_optimizer_that_were_measured(
    write, training, tmp_path, monkeypatch
):
    planned, model = recipe(**training), tiny_bert()
    before = [weight.detach().clone().float() for weight in model.parameters()]
    seen = trained(write(planned).text, model, Samples(), tmp_path, monkeypatch)
    half = training["precision"] != "fp32"
    assert seen.batch_sizes == [MICRO] * STEPS * OPTIMIZER_STEPS
    assert set(seen.dtypes) == {torch.bfloat16 if half else torch.float32}
    assert len(seen.optimizers) == OPTIMIZER_STEPS
    assert {kind.__name__ for kind in seen.optimizers} == {planned.torch_optimizer.class_name}
    assert seen.momenta[0] == planned.torch_optimizer.options.get("momentum")
    assert seen.learning_rates[0] == LEARNING_RATE
    assert len(seen.dtypes) == len(seen.batch_sizes) * (2 if training.get("gradient_checkpointing") else 1)
    weights = list(model.parameters())
    assert {weight.dtype for weight in weights} == {
        torch.bfloat16 if planned.spec.precision == "bf16-pure" else torch.float32
    }
    learned = [not torch.equal(new.float(), old) for new, old in zip(weights, before, strict=False)]
    assert any(weight.requires_grad for weight in weights)
    assert any(learned) or training.get("lora_rank")
    assert not training.get("lora_rank") or not all(weight.requires_grad for weight in weights)


@of_each_library
@pytest.mark.parametrize(
    ("optimizer", "class_name", "arguments"),
    [
        ("adamw-8bit", "AdamW8bit", {"optim_bits": 8, "is_paged": False}),
        ("paged-adamw-8bit", "PagedAdamW8bit", {"optim_bits": 8, "is_paged": True}),
        ("paged-adamw-32bit", "AdamW", {"optim_bits": 32, "is_paged": True}),
        ("lion", "Lion", {"optim_bits": 32, "is_paged": False, "betas": (0.9, 0.99)}),
        ("lion-8bit", "Lion8bit", {"optim_bits": 8, "is_paged": False, "betas": (0.9, 0.99)}),
        ("schedule-free-adamw", "AdamWScheduleFree", {"train_mode": True}),
    ],
)
def test_the_trainer_s_name_of_an_optimizer_is_the_one_that_the_others_make_by_its_class(
    write, optimizer, class_name, arguments, tmp_path, monkeypatch
):
    pytest.importorskip("bitsandbytes")
    planned, made = recipe(precision="fp32", optimizer=optimizer), []
    handle = register_optimizer_step_post_hook(lambda stepped, *_: made.append(stepped))
    try:
        trained(write(planned).text, tiny_bert(), Samples(), tmp_path, monkeypatch)
    finally:
        handle.remove()
    assert len(made) == OPTIMIZER_STEPS
    step = getattr(made[0], "optimizer", made[0])
    group = step.param_groups[0]
    found = {**vars(getattr(step, "args", object)), **vars(step), **group}
    assert type(step).__name__ == (class_name if write is snippets.trainer else planned.torch_optimizer.class_name)
    assert {name: found[name] for name in arguments} == arguments
    assert group["lr"] == LEARNING_RATE or write is snippets.trainer  # whose schedule has begun


@of_each_library
@pytest.mark.parametrize("steps", [1, STEPS])
def test_a_step_s_gradients_are_gone_before_the_next_forward_pass_as_was_measured(write, steps, tmp_path, monkeypatch):
    model, held = tiny_bert(), []
    model.register_forward_pre_hook(
        lambda *_: held.append(any(weight.grad is not None for weight in model.parameters()))
    )
    trained(write(recipe(steps=steps)).text, model, Samples(), tmp_path, monkeypatch)
    micro_batches = STEPS * OPTIMIZER_STEPS
    assert held == ([False, True] * OPTIMIZER_STEPS if steps == STEPS else [False] * micro_batches)


def test_a_module_of_lightning_frees_gradients_where_the_measured_training_did_so_before_the_forward_pass():
    assert "self.zero_grad()" in snippets.lightning(recipe()).text
    assert "zero_grad" not in snippets.lightning(recipe(zero_grad="before-backward")).text


@of_each_library
def test_gradients_freed_in_the_backward_pass_are_written_where_a_loop_can_free_them(write, tmp_path, monkeypatch):
    assert isinstance(write(recipe(gradients="freed", steps=2)), snippets.NoSnippet)
    written = write(recipe(gradients="freed", steps=1))
    if write in (snippets.trainer, snippets.lightning):
        assert written.reason == snippets.STEPS_AFTER_BACKWARD
        return
    model = tiny_bert()
    weights = [weight.detach().clone() for weight in model.parameters()]
    seen = trained(written.text, model, Samples(), tmp_path, monkeypatch)
    assert seen.batch_sizes == [MICRO] * STEPS * OPTIMIZER_STEPS
    assert len(seen.optimizers) == len(seen.batch_sizes) * len(weights)
    assert all(weight.grad is None for weight in model.parameters())
    assert not all(torch.equal(*pair) for pair in zip(weights, model.parameters(), strict=True))


@of_each_library
@pytest.mark.parametrize("gradients", ["kept", "freed"])
def test_state_on_the_host_is_written_where_a_loop_has_an_optimizer_of_each_weight(
    write, gradients, tmp_path, monkeypatch
):
    written = write(recipe(precision="fp32", gradients=gradients, steps=1, offload_optimizer=True))
    if write is not snippets.plain_torch:
        assert isinstance(written, snippets.NoSnippet)
        return
    model, copies, copy = tiny_bert(), [], torch.Tensor.copy_
    monkeypatch.setattr(torch.Tensor, "copy_", lambda it, *given: (copies.append(it), copy(it, *given))[1])
    weights = [weight.detach().clone() for weight in model.parameters()]
    seen = trained(written.text, model, Samples(), tmp_path, monkeypatch)
    assert len(seen.optimizers) == len(seen.batch_sizes) * len(weights)
    assert len(copies) >= 2 * len(seen.optimizers)  # both moments of each weight in each step
    assert not all(torch.equal(*pair) for pair in zip(weights, model.parameters(), strict=True))
    of_a_card = write(recipe(device_kind="cuda", precision="fp32", steps=1, offload_optimizer=True)).text
    assert 'torch.empty_like(value, device="cpu", pin_memory=True)' in of_a_card


@of_each_library
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_offloaded_activations_are_saved_to_the_host_in_every_forward_pass(write, precision, tmp_path, monkeypatch):
    offload = torch.autograd.graph.save_on_cpu
    entered, enter = [], offload.__enter__
    monkeypatch.setattr(offload, "__enter__", lambda it: (entered.append(it), enter(it))[1], raising=False)
    written = write(recipe(precision=precision, offload_activations=True))
    seen = trained(written.text, tiny_bert(), Samples(), tmp_path, monkeypatch)
    assert len(entered) == len(seen.batch_sizes) == STEPS * OPTIMIZER_STEPS
    assert "pin_memory=True" in write(recipe(device_kind="cuda", offload_activations=True)).text


class Network(torch.nn.Module):
    """A model that gives logits: the reader computes the loss."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(FEATURES, 2)

    def forward(self, inputs):
        return self.layer(inputs)


class Images(Samples):
    def __getitem__(self, index):
        return {"pixels": torch.randn(FEATURES), "labels": torch.tensor(index % 2)}


def compute_loss(model, batch):
    return torch.nn.functional.cross_entropy(model(batch["pixels"]).float(), batch["labels"])


@of_each_library
def test_model_that_gives_no_loss_is_trained_with_the_reader_s_own(write, tmp_path, monkeypatch):
    written = write(recipe("resnet18", precision="bf16", optimizer="sgd"))
    if write is snippets.trainer:
        assert isinstance(written, snippets.NoSnippet)
        return
    seen = trained(written.text, Network(), Images(), tmp_path, monkeypatch, compute_loss=compute_loss)
    assert seen.batch_sizes == [MICRO] * STEPS * OPTIMIZER_STEPS
    assert set(seen.dtypes) == {torch.bfloat16}
    assert [kind.__name__ for kind in seen.optimizers] == ["SGD"] * OPTIMIZER_STEPS
