"""PURE: the code of a training, for each library. Tests run it. Its first line names what the reader has to provide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..race.lines import FREEING_IN_LIGHTNING
from ..settings.step_settings import BEFORE_FORWARD
from .recipe import Recipe

PYTHON = "python"
_DTYPES = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
_TRAINER_OPTIMIZERS = {
    "sgd": "sgd",
    "adamw": "adamw_torch",
    "adamw-fused": "adamw_torch_fused",
    "rmsprop": "rmsprop",
    "adagrad": "adagrad",
    "paged-adamw-32bit": "paged_adamw_32bit",
    "lion": "lion_32bit",
    "schedule-free-adamw": "schedule_free_adamw",
}
"""The optimizers that `TrainingArguments(optim=...)` makes from the same classes, or with the same state.

Of 8 bits none does: by its name the Trainer would keep the embeddings' state in 32 bits.
"""
_WITH_OPTIMIZER = {
    "lion": ("adam_beta2=0.99",),  # Lion's own; the Trainer would give it Adam's
    "schedule-free-adamw": ('lr_scheduler_type="constant"',),
}
"""Arguments that go with an optimizer's name, so that its settings are its library's defaults."""
OPTIMIZER_OF_EACH = "it takes one optimizer, and each weight had its own, with its state on the host"
STEPS_AFTER_BACKWARD = "it makes one step of all weights after the backward pass, and gradients were freed during it"
_NO_FP16 = "it has no fp16 with gradient scaling on a CPU"
_NOT_EXCHANGED = "its loss calls parts of the model, whose gradients DistributedDataParallel would not exchange"
_NOT_ADDED_UP = "gradients that are freed at once cannot be added up over micro-batches or devices"
_TRAINER_PRECISIONS = {"bf16": "bf16=True", "fp16": "fp16=True", "tf32": "tf32=True"}
_LIGHTNING_PRECISIONS = {"bf16": "bf16-mixed", "fp16": "16-mixed"}
_LIGHTNING_DEVICES = {"cuda": "gpu", "mps": "mps", "cpu": "cpu"}
_FREEING_GRADIENTS = ("", *(f"    {line}" for line in FREEING_IN_LIGHTNING))


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code to paste. `note` is what the reader should know."""

    id: str
    title: str
    language: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoSnippet:
    """A library that has no snippet for this training, and why."""

    title: str
    reason: str


def refused(title: str, reasons: Mapping[str, object]) -> NoSnippet | None:
    """Return the first reason that holds why a library has no snippet; None where it has one."""
    return next((NoSnippet(title, reason) for reason, holds in reasons.items() if holds), None)


def common(recipe: Recipe, *reasons: str) -> dict[str, object]:
    """Return which of the reasons of several libraries hold."""
    holds = {
        OPTIMIZER_OF_EACH: recipe.spec.offload_optimizer,
        STEPS_AFTER_BACKWARD: recipe.frees_gradients,
        _NO_FP16: recipe.spec.precision == "fp16" and recipe.device_kind == "cpu",
        _NOT_EXCHANGED: recipe.loss is not None and recipe.devices > 1,
        _NOT_ADDED_UP: recipe.frees_gradients and recipe.accumulation_steps * recipe.devices > 1,
    }
    return {reason: holds[reason] for reason in reasons}


def trainer(recipe: Recipe) -> Snippet | NoSnippet:
    title = "transformers TrainingArguments"
    has_loss = recipe.is_of_transformers and recipe.workload.task != "image-text-matching"
    takes_loss = f"its Trainer takes the loss from the model, which {recipe.workload.name} does not give it"
    reasons = common(recipe, STEPS_AFTER_BACKWARD, OPTIMIZER_OF_EACH, _NO_FP16, _NOT_EXCHANGED)
    if left_out := refused(title, {takes_loss: not has_loss, **reasons}):
        return left_out
    options = "".join(f', "{name}": {value!r}' for name, value in recipe.torch_optimizer.options.items())
    class_and_options = f'({recipe.torch_optimizer.path}, {{"lr": learning_rate{options}}})'
    has_name = recipe.spec.optimizer in _TRAINER_OPTIMIZERS
    optimizer = "" if has_name else f", optimizer_cls_and_kwargs={class_and_options}"
    made = f"(model=model, args=arguments, train_dataset=dataset{optimizer})"
    body = [
        "arguments = TrainingArguments(",
        "    # else its defaults: weight_decay 0 and a linear schedule, which change neither memory nor speed",
        *(f"    {argument}," for argument in _arguments_of_trainer(recipe)),
        ")",
        *_training(recipe, made),
    ]
    switches = _switches(recipe, with_tf32=recipe.spec.precision != "tf32")  # an argument switches TF32 on
    start = f"# Start it with: torchrun --nproc-per-node {recipe.devices} train.py (plain python uses nn.DataParallel)"
    lines = [*([start] if recipe.devices > 1 else []), *switches, *recipe.model_lines(with_checkpointing=False), *body]
    imports = ["from transformers import Trainer, TrainingArguments"]
    return Snippet(
        "transformers", title, PYTHON, _code(recipe, imports, lines), note=_note(recipe, _short_last_step(recipe))
    )


def _arguments_of_trainer(recipe: Recipe) -> list[str]:
    arguments = [
        'output_dir="out"',
        f"per_device_train_batch_size={recipe.micro_batch_size}",
        f"gradient_accumulation_steps={recipe.accumulation_steps}",
        "dataloader_drop_last=True",
        "learning_rate=learning_rate",
        "num_train_epochs=1",
    ]
    arguments += [] if recipe.spec.clip_grad_norm else ["max_grad_norm=0"]  # the Trainer clips by default
    name = _TRAINER_OPTIMIZERS.get(recipe.spec.optimizer)
    arguments += [f'optim="{name}"', *_WITH_OPTIMIZER.get(recipe.spec.optimizer, ())] if name else []
    arguments += [_TRAINER_PRECISIONS[recipe.spec.precision]] if recipe.spec.precision in _TRAINER_PRECISIONS else []
    if recipe.checkpoints:
        arguments += ["gradient_checkpointing=True", 'gradient_checkpointing_kwargs={"use_reentrant": False}']
    return [*arguments, *(["use_cpu=True"] if recipe.device_kind == "cpu" else [])]


def _training(recipe: Recipe, made: str) -> list[str]:
    """Write the Trainer's own training, or one with `compute_loss`, which is a mean over its own micro-batch."""
    if recipe.loss is not None:
        return [
            "",
            "class TrainerWithOwnLoss(Trainer):",
            "    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):",
            "        with self.accelerator.autocast():",
            *(f"            {line}" for line in recipe.saving("return compute_loss(model, inputs)")),
            "",
            f"trainer = TrainerWithOwnLoss{made}",
            "trainer.model_accepts_loss_kwargs = False  # it then divides the loss by the accumulation steps",
            "trainer.train()",
        ]
    if recipe.spec.offload_activations:
        return [
            "",
            "class OffloadingTrainer(Trainer):",
            "    def compute_loss(self, *inputs, **options):",
            *(f"        {line}" for line in recipe.saving("return super().compute_loss(*inputs, **options)")),
            "",
            f"OffloadingTrainer{made}.train()",
        ]
    return [f"Trainer{made}.train()"]


def accelerate(recipe: Recipe) -> Snippet | NoSnippet:
    title = "Accelerate"
    if left_out := refused(title, common(recipe, _NO_FP16, _NOT_EXCHANGED, _NOT_ADDED_UP, OPTIMIZER_OF_EACH)):
        return left_out
    on_cpu = ", cpu=True" if recipe.device_kind == "cpu" else ""
    prepared = [
        *recipe.optimizer_lines("model.parameters()"),
        "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
    ]
    if recipe.frees_gradients:
        prepared = ["model, loader = accelerator.prepare(model, loader)", *recipe.lines_of_optimizers()]
    mixed = f'"{recipe.spec.precision}"' if recipe.spec.precision in _DTYPES else '"no"'
    lines = [
        *_switches(recipe),
        "# the gradients left over at the end of an epoch go on into the next: every step sees the whole global batch",
        f"steps = GradientAccumulationPlugin(num_steps={recipe.accumulation_steps}, sync_with_dataloader=False)",
        f"accelerator = Accelerator(mixed_precision={mixed}, gradient_accumulation_plugin=steps{on_cpu})",
        *recipe.model_lines(),
        _loader(recipe),
        *prepared,
        _mode(recipe),
        "for batch in loader:",
        # autocast is in the model's forward pass, and a loss in chunks calls parts of the model
        f"    with accelerator.accumulate(model){', accelerator.autocast()' if recipe.loss else ''}:",
        *(f"        {line}" for line in recipe.saving(f"loss = {_loss(recipe)}")),
        "        accelerator.backward(loss)",
        *([] if recipe.frees_gradients else ["        optimizer.step()", "        optimizer.zero_grad()"]),
    ]
    imports = ["from accelerate import Accelerator", "from accelerate.utils import GradientAccumulationPlugin"]
    launch = f"Start it with: accelerate launch --num_processes {recipe.devices}." if recipe.devices > 1 else ""
    return Snippet("accelerate", title, PYTHON, _code(recipe, imports, lines), note=_note(recipe, launch))


def lightning(recipe: Recipe) -> Snippet | NoSnippet:
    title = "Lightning"
    has_no_device = {f"it has no accelerator for {recipe.device_kind}": recipe.device_kind not in _LIGHTNING_DEVICES}
    reasons = common(recipe, STEPS_AFTER_BACKWARD, OPTIMIZER_OF_EACH, _NO_FP16)
    if left_out := refused(title, {**reasons, **has_no_device}):
        return left_out
    # for pure bf16 too: it converts nothing, while "bf16-true" would convert the adapters, which were measured in fp32
    precision = _LIGHTNING_PRECISIONS.get(recipe.spec.precision, "32-true")
    lines = [
        *_switches(recipe),
        *recipe.model_lines(),
        f"{_mode(recipe)}  # Lightning leaves the mode as it is",
        "",
        "class Training(lightning.LightningModule):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.model = model",
        "",
        "    def training_step(self, batch, index):",
        *(f"        {line}" for line in recipe.saving(f"return {_loss(recipe, 'self.model')}")),
        "",
        "    def configure_optimizers(self):",
        *(f"        {line}" for line in recipe.optimizer_lines("self.parameters()")),
        "        return optimizer",
        *(_FREEING_GRADIENTS if recipe.spec.zero_grad == BEFORE_FORWARD else []),
        "",
        _loader(recipe),
        "trainer = lightning.Trainer(",
        f'    accelerator="{_LIGHTNING_DEVICES[recipe.device_kind]}",',
        f"    devices={recipe.devices},",
        f'    precision="{precision}",',
        f"    accumulate_grad_batches={recipe.accumulation_steps},",
        "    max_epochs=1,",
        ")",
        "trainer.fit(Training(), loader)",
    ]
    note = _note(recipe, _short_last_step(recipe))
    return Snippet("lightning", title, PYTHON, _code(recipe, ["import lightning"], lines), note=note)


def plain_torch(recipe: Recipe) -> Snippet | NoSnippet:
    title = "Plain PyTorch"
    launcher = "for several devices a plain loop needs a launcher and DistributedDataParallel of your own"
    if left_out := refused(title, {launcher: recipe.devices > 1, **common(recipe, _NOT_ADDED_UP)}):
        return left_out
    scaler, has_several = recipe.spec.precision == "fp16", recipe.frees_gradients or recipe.spec.offload_optimizer
    forward = [f"loss = {_loss(recipe)}"]
    if dtype := _DTYPES.get(recipe.spec.precision):
        forward = [f'with torch.autocast("{recipe.device_kind}", dtype={dtype}):', f"    loss = {_loss(recipe)}"]
    forward = [f"    {line}" for line in recipe.saving(*forward)]
    part = f"loss / {recipe.accumulation_steps}" if recipe.accumulation_steps > 1 else "loss"
    backward = (
        f"scaler.scale({part}).backward()" if scaler else f"({part}).backward()" if "/" in part else "loss.backward()"
    )
    step = ["scaler.step(optimizer)", "scaler.update()"] if scaler else ["optimizer.step()"]
    step = [] if recipe.frees_gradients else [*step, "optimizer.zero_grad()"]
    if recipe.spec.offload_optimizer and step:
        step = ["for optimizer in optimizers.values():", *(f"    {line}" for line in step)]
    loop = "for batch in loader:"
    if recipe.accumulation_steps > 1:
        step = [f"if number % {recipe.accumulation_steps} == 0:", *(f"    {line}" for line in step)]
        loop = "for number, batch in enumerate(loader, start=1):"
    lines = [
        *_switches(recipe),
        f'device = torch.device("{recipe.device_kind}")',
        *recipe.model_lines(),
        "model = model.to(device)",
        _mode(recipe),
        _loader(recipe),
        *(recipe.lines_of_optimizers() if has_several else recipe.optimizer_lines("model.parameters()")),
        *([f'scaler = torch.amp.GradScaler("{recipe.device_kind}")'] if scaler else []),
        loop,
        "    batch = {name: tensor.to(device) for name, tensor in batch.items()}",
        *forward,
        f"    {backward}",
        *(f"    {line}" for line in step),
    ]
    return Snippet("torch", title, PYTHON, _code(recipe, [], lines), note=_note(recipe))


WRITERS: Sequence[Callable[[Recipe], Snippet | NoSnippet]] = (trainer, accelerate, lightning, plain_torch)


def _code(recipe: Recipe, imports: Sequence[str], lines: Sequence[str]) -> str:
    torch = ["import torch"] if recipe.loss or any("torch." in line for line in lines) else []
    yours = recipe.yours_lines(*([] if recipe.is_of_transformers else ["compute_loss(model, batch)"]))
    of_loss, loss_imports = (recipe.loss.lines(), recipe.loss.imports()) if recipe.loss else ([], [])
    imported = [*torch, *imports, *recipe.imports(), *loss_imports]
    ordered = sorted(imported, key=lambda line: (line.startswith("from "), line))
    return "\n".join([*yours, *ordered, "", *of_loss, *lines])


def _switches(recipe: Recipe, *, with_tf32: bool = True) -> list[str]:
    return [*recipe.limit_lines(), *(recipe.precision_lines() if with_tf32 else [])]


def _loss(recipe: Recipe, model: str = "model") -> str:
    if not recipe.is_of_transformers or recipe.loss is not None:
        return f"compute_loss({model}, batch)"
    return f"{model}(**batch{', return_loss=True' if recipe.workload.task == 'image-text-matching' else ''}).loss"


def _loader(recipe: Recipe) -> str:
    size = recipe.micro_batch_size
    return f"loader = torch.utils.data.DataLoader(dataset, batch_size={size}, shuffle=True, drop_last=True)"


def _mode(recipe: Recipe) -> str:
    return "model.train()" if recipe.spec.mode == "train" else "model.eval()"


def _short_last_step(recipe: Recipe) -> str:
    if recipe.accumulation_steps == 1:
        return ""
    return (
        f"The last step of an epoch sees fewer samples unless the dataset's length is a multiple of "
        f"{recipe.global_batch_size:,}."
    )


def _note(recipe: Recipe, *more: str) -> str:
    is_train_mode = recipe.spec.mode == "train"
    mode = "" if is_train_mode else "It was measured with dropout off; with dropout a step takes more memory."
    several = (
        ""
        if recipe.devices == 1 or recipe.spec.strategy
        else "It was measured on one device; what several need to exchange gradients is not in it."
    )
    return " ".join(text for text in (*more, mode, several) if text)
