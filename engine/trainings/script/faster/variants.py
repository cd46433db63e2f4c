"""PURE: what can be set of a training from outside: first what changes speed and memory alone, then what rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....race.lines import CHANNELS_LAST, CHANNELS_LAST_BATCH, TF32, without_cache
from ....text.units import format_percent
from ...catalogue.handle import ALLOCATOR_VARIABLES, EXPANDABLE
from .facts import Facts, OutermostModule

LEAST_WAITING = 0.02
"""Share of a step spent waiting for data, below which no loader can make the training clearly faster."""
LEAST_KEPT = 0.01
"""Share of the peak that outputs have to take for their release to be tried."""
TORCH, TRANSFORMERS, LIGHTNING, ACCELERATE, FABRIC = "torch", "transformers", "lightning", "accelerate", "fabric"
WORKERS, COMPILE = "workers", "compile"
"""The variants that are treated apart: one may race first, the other takes time before it pays."""
MOST_NAMED = 6
"""Modules that a line names."""
_OTHER_NAMES = {"pytorch_lightning": LIGHTNING}
OF_TORCH = (
    *("Adafactor", "Adam", "AdamW", "SGD", "Adagrad", "Adadelta"),
    *("Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"),
)
"""The classes of torch.optim that have one of the two forms; a class of another name is the script's own."""
_IS_SET = "it is set"
_ONLY_ON_GPU = "only a GPU has it"
_NO_LOADER = "no DataLoader was seen"
_NO_OPTIMIZER = "no optimizer of torch.optim was seen"
_NO_MODEL = "no module was seen that trains: it is in evaluation mode, in a compiled function, or none of torch"
_ONCE_COPIED = "; once all its copies are made, as for an average of its weights"

Text = str | Callable[[Facts], str]
Reasons = Mapping[str, object]
"""What may keep a variant from being tried, each with whether it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One thing to set. The first of `reasons` that holds says why it is not tried; `value` is what the hook is given.

    `lines` are by framework; others take those for torch. `environment` is given to the start in place of a value.
    `rounds_as` is the type that it rounds to. `masks_otherwise`: with it a GPU draws other masks for dropout.
    """

    name: str
    label: str
    reasons: Callable[[Facts], Reasons]
    lines: Mapping[str, Text]
    value: Callable[[Facts], Any] = lambda _: True
    environment: Mapping[str, str] = field(default_factory=dict)
    rounds_as: str = "fp32"
    saves_memory_only: bool = False
    masks_otherwise: bool = False

    def why_not(self, facts: Facts) -> str | None:
        return next((reason for reason, holds in self.reasons(facts).items() if holds), None)

    def lines_for(self, facts: Facts) -> str:
        framework = _OTHER_NAMES.get(facts.noted.framework, facts.noted.framework)
        return _said(self.lines.get(framework, self.lines[TORCH]), facts)


def _said(text: Text, facts: Facts) -> str:
    return text if isinstance(text, str) else text(facts)


def _made_with(option: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the line that makes each optimizer with an option; a class of the script's own is named as it names it."""
    for name in names:
        yield f"{'torch.optim.' if name in OF_TORCH else ''}{name}(..., {option}=True)"


def _named(modules: Iterable[OutermostModule]) -> str:
    called = list(dict.fromkeys(each.described for each in modules if each.described))
    return ", ".join([*called[:MOST_NAMED], *(["..."] if len(called) > MOST_NAMED else [])])


def _of_each(facts: Facts) -> str:
    return (
        f"  # each module that the training calls: {_named(facts.noted.models)}" if len(facts.noted.models) > 1 else ""
    )


def _channels_last(facts: Facts) -> str:
    """Write the line for the model, and that for its batches where they have channels when it is given them."""
    line = CHANNELS_LAST + _of_each(facts)
    return "\n".join([line, *([CHANNELS_LAST_BATCH] if facts.any_model("takes_images") else [])])


def _compiled(facts: Facts) -> str:
    """Write the line and what it is for: a module whose own methods are called, in place of itself, compiles nothing.

    `torch.compile(model)` would rename the entries of its checkpoints. Of a class of torch's own, as nn.Sequential,
    `compile()` compiles nothing: torch leaves the code of these out.
    """
    which = "each module" if len(facts.noted.models) > 1 else "the module"
    of_torch = [each for each in facts.noted.models if each.is_of_torch]
    others = [each for each in facts.noted.models if not each.is_of_torch]
    lines = [("model.compile()", others, ""), ("model.forward = torch.compile(model.forward)", of_torch, _ONCE_COPIED)]
    return "\n".join(
        f"{line}  # {which} that the training calls: {named}{what_else}" if (named := _named(modules)) else line
        for line, modules, what_else in lines
        if modules
    )


def _compiled_by_a_trainer(facts: Facts) -> str:
    """Write the argument, which compiles the Trainer's model; a part of it that is called in its place is not."""
    if any(each.held_as for each in facts.noted.models):
        return _compiled(facts)
    turns_on = "  # it turns TF32 on, too, unless tf32=False is given" if facts.is_gpu else ""
    return f"TrainingArguments(..., torch_compile=True){turns_on}"


def _without_cache(facts: Facts) -> str:
    paths = dict.fromkeys(path for model in facts.noted.models if model.uses_cache for path in model.cached_by or ("",))
    return "\n".join(without_cache(f"model.{path}" if path else "model") for path in paths)


def _autocast(facts: Facts) -> str:
    return (
        f'with torch.autocast("{facts.device_kind}", dtype=torch.bfloat16):{_of_each(facts)}\n'
        "    outputs = model(inputs)  # a loss outside the model is computed in fp32, as of outputs.float()"
    )


def _fused_optimizers(facts: Facts) -> str:
    return "\n".join(_made_with("fused", facts.names_of_optimizers("can_be_fused")))


def _fused_optimizers_of_a_trainer(facts: Facts) -> str:
    """Write the argument for AdamW; the others it takes as they are made."""
    if facts.names_of_optimizers("can_be_fused") == ["AdamW"]:
        made = "# where the script makes it: torch.optim.AdamW(..., fused=True)"
        return f'TrainingArguments(..., optim="adamw_torch_fused")  {made}'
    return "\n".join(f"{line}  # given as Trainer(optimizers=...)" for line in _fused_optimizers(facts).splitlines())


_EXPANDABLE_LINE = (
    f'import os; os.environ["{ALLOCATOR_VARIABLES[-1]}"] = "{EXPANDABLE}"'
    "  # before torch is imported; beside what the variable holds, with a comma"
)
_COMPILED_FOR_FABRIC = "model = torch.compile(model)  # before fabric.setup(...), which compiles it anew"
VARIANTS = (
    Variant(
        name=WORKERS,
        label="Loader workers",
        reasons=lambda facts: {
            _NO_LOADER: not facts.noted.loaders,
            "an IterableDataset: each worker yields every row, unless the data set splits them": not any(
                each.is_by_number for each in facts.noted.loaders
            ),
            f"it has {facts.workers} workers on {facts.cores} cores": facts.workers >= facts.workers_to_try,
            "this machine has one core": facts.cores < 2,
            f"only {format_percent(facts.today.waiting_fraction or 0)} of a step is spent waiting for data": (
                facts.today.waiting_fraction is not None and facts.today.waiting_fraction < LEAST_WAITING
            ),
        },
        value=lambda facts: facts.workers_to_try,
        lines={
            TORCH: lambda facts: f"DataLoader(..., num_workers={facts.workers_to_try})",
            TRANSFORMERS: lambda facts: f"TrainingArguments(..., dataloader_num_workers={facts.workers_to_try})",
        },
    ),
    Variant(
        name="pinned",
        label="Pinned memory",
        reasons=lambda facts: {
            _ONLY_ON_GPU: not facts.is_gpu,
            _NO_LOADER: not facts.noted.loaders,
            _IS_SET: all(each.is_pinned for each in facts.noted.loaders),
        },
        lines={
            TORCH: "DataLoader(..., pin_memory=True)",
            TRANSFORMERS: "TrainingArguments(..., dataloader_pin_memory=True)",
        },
    ),
    Variant(
        name="fused",
        label="Fused optimizer",
        reasons=lambda facts: {
            _NO_OPTIMIZER: not facts.noted.optimizers,
            f"{facts.optimizer} has no fused form": not any(each.can_be_fused for each in facts.noted.optimizers),
            _IS_SET: all(each.is_fused for each in facts.noted.optimizers if each.can_be_fused),
        },
        lines={TORCH: _fused_optimizers, TRANSFORMERS: _fused_optimizers_of_a_trainer},
    ),
    Variant(
        name="foreach",
        label="Foreach optimizer",
        reasons=lambda facts: {
            "torch does so on a GPU by itself": facts.is_gpu,
            _NO_OPTIMIZER: not facts.noted.optimizers,
            "the optimizer has no such form": not any(each.can_be_foreach for each in facts.noted.optimizers),
            "it is set, or the optimizer is fused": any(
                each.is_fused or each.is_foreach for each in facts.noted.optimizers
            ),
        },
        lines={TORCH: lambda facts: "\n".join(_made_with("foreach", facts.names_of_optimizers("can_be_foreach")))},
    ),
    Variant(
        name="cudnn-benchmark",
        label="cuDNN benchmark",
        reasons=lambda facts: {
            "a CPU has no cuDNN": not facts.is_gpu,
            _IS_SET: facts.noted.cudnn_benchmark,
            "the model has no convolution": facts.noted.models
            and not (facts.any_model("any_convolutions") or facts.any_model("convolutions")),
        },
        lines={
            TORCH: "torch.backends.cudnn.benchmark = True",
            LIGHTNING: "Trainer(..., benchmark=True)",
        },
    ),
    Variant(
        name="channels-last",
        label="Channels last",
        reasons=lambda facts: {
            _NO_MODEL: not facts.noted.models,
            _IS_SET: facts.any_model("is_channels_last"),
            "the model has no convolution of images": not facts.any_model("convolutions"),
        },
        masks_otherwise=True,
        lines={TORCH: _channels_last, TRANSFORMERS: CHANNELS_LAST},
    ),
    Variant(
        name=COMPILE,
        label="torch.compile",
        reasons=lambda facts: {
            _NO_MODEL: not facts.noted.models,
            "it is compiled": facts.any_model("is_compiled"),
        },
        lines={TORCH: _compiled, TRANSFORMERS: _compiled_by_a_trainer, FABRIC: _COMPILED_FOR_FABRIC},
    ),
    Variant(
        name="no-cache",
        label="KV cache off",
        reasons=lambda facts: {
            _NO_MODEL: not facts.noted.models,
            "no model of the training gives a cache back": not facts.any_model("uses_cache"),
        },
        lines={TORCH: _without_cache},
        saves_memory_only=True,
    ),
    Variant(
        name="release-outputs",
        label="Outputs released after each step",
        reasons=lambda facts: {
            "there is more than one model or optimizer: an output may be needed again": (
                len(facts.noted.models) > 1 or len(facts.noted.optimizers) > 1
            ),
            "no output of note is held after its backward pass": facts.kept_fraction < LEAST_KEPT,
        },
        lines={TORCH: "del outputs  # and what holds them, at the end of each step"},
        saves_memory_only=True,
    ),
    Variant(
        name="expandable",
        label="Expandable segments",
        reasons=lambda facts: {_ONLY_ON_GPU: not facts.is_gpu, _IS_SET: facts.noted.is_expandable},
        environment=dict.fromkeys(ALLOCATOR_VARIABLES, EXPANDABLE),
        lines={TORCH: _EXPANDABLE_LINE},
        saves_memory_only=True,
    ),
    Variant(
        name="fp32",
        label="fp32 in place of fp64",
        reasons=lambda facts: {
            _NO_MODEL: not facts.noted.models,
            "no parameter is in 64 bits": "float64" not in facts.dtypes,
        },
        masks_otherwise=True,
        lines={TORCH: "model.float()  # and the batches: torch.from_numpy(rows).float()"},
    ),
    Variant(
        name="tf32",
        label="TF32",
        reasons=lambda facts: {
            "only a GPU has TF32": not facts.is_gpu,
            "this GPU has no TF32": facts.is_before_ampere,
            _IS_SET: facts.noted.matmul_precision in ("high", "medium"),
            "no parameter is in fp32": facts.noted.models and "float32" not in facts.dtypes,
        },
        rounds_as="tf32",
        lines={
            TORCH: "\n".join(TF32),
            TRANSFORMERS: "TrainingArguments(..., tf32=True)",
        },
    ),
    Variant(
        name="bf16",
        label="bf16 autocast",
        reasons=lambda facts: {
            _NO_MODEL: not facts.noted.models,
            "the script uses autocast": facts.any_model("is_autocast"),
            f"the parameters are in {', '.join(sorted(facts.dtypes))}": facts.dtypes != {"float32"},
            "this GPU has no bf16": facts.is_before_ampere,
        },
        rounds_as="bf16",
        masks_otherwise=True,
        lines={
            TORCH: _autocast,
            TRANSFORMERS: lambda facts: f"TrainingArguments(..., bf16=True{'' if facts.is_gpu else ', use_cpu=True'})",
            LIGHTNING: 'Trainer(..., precision="bf16-mixed")  '
            "# the loss, too: BCELoss fails there, BCEWithLogitsLoss does not",
            FABRIC: 'Fabric(..., precision="bf16-mixed")',
            ACCELERATE: 'Accelerator(..., mixed_precision="bf16")  '
            "# what the script casts by that, too: it was not compared",
        },
    ),
)
BY_NAME = {each.name: each for each in VARIANTS}
OF_MEMORY_ONLY = frozenset(each.name for each in VARIANTS if each.saves_memory_only)
CONFLICTS = frozenset({frozenset({"fused", "foreach"})})
