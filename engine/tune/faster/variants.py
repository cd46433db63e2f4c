"""PURE: what can be set of a training from outside, declared once: where it applies, and the lines that do the same.

Those that change nothing but speed and memory come first, then those that round otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...race.lines import CHANNELS_LAST, CHANNELS_LAST_BATCH, TF32
from ...text.units import format_percent
from ...worker.handle import ALLOCATOR_VARIABLES, EXPANDABLE
from .facts import Facts

LEAST_WAITING = 0.02
"""Share of a step spent waiting for data, below which no loader can make the training clearly faster."""
LEAST_KEPT = 0.01
"""Share of the peak that outputs have to take for their release to be tried."""
TORCH, TRANSFORMERS, LIGHTNING, ACCELERATE = "torch", "transformers", "lightning", "accelerate"
WORKERS, COMPILE = "workers", "compile"
"""The variants that are treated apart: one may race first, the other takes time before it pays."""
_OTHER_NAMES = {"pytorch_lightning": LIGHTNING}
OF_TORCH = ("Adam", "AdamW", "SGD", "Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
"""The classes of torch.optim that have one of the two forms; a class of another name is the script's own."""
_ONLY_GPU = "only a GPU has it"
_NO_LOADER = "no DataLoader was seen"
_NO_MODEL = "no module was seen that trains: a compiled function, or none of torch"

Lines = Callable[[Facts], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One thing to set. `why_not` says why it is not tried, None where it is; `value` is what the hook is given.

    `lines` writes what to paste, by framework; the others take the lines for torch. `environment` are variables that
    the start is given in place of a value. `rounds_as` is the type that it rounds to.
    """

    name: str
    label: str
    why_not: Callable[[Facts], str | None]
    lines: Mapping[str, Lines]
    value: Callable[[Facts], Any] = lambda _: True
    environment: Mapping[str, str] = field(default_factory=dict)
    rounds_as: str = "fp32"
    saves_memory_only: bool = False

    def lines_for(self, facts: Facts) -> str:
        """Return the lines to paste in the framework that was seen."""
        framework = _OTHER_NAMES.get(facts.noted.framework, facts.noted.framework)
        return self.lines.get(framework, self.lines[TORCH])(facts)


def always(text: str) -> Lines:
    """Return what writes the same lines whatever was seen."""
    return lambda _: text


def _no_workers(facts: Facts) -> str | None:
    if not facts.loaders:
        return _NO_LOADER
    if not any(each.is_by_number for each in facts.loaders):
        return "the rows come one after the other: each worker would give all of them"
    if facts.workers >= facts.workers_to_try:
        return f"it has {facts.workers} workers on {facts.cores} cores"
    if facts.cores < 2:
        return "this machine has one core"
    if facts.waiting_fraction is not None and facts.waiting_fraction < LEAST_WAITING:
        return f"only {format_percent(facts.waiting_fraction)} of a step is spent waiting for data"
    return None


def _no_pinning(facts: Facts) -> str | None:
    if not facts.is_gpu:
        return _ONLY_GPU
    if not facts.loaders:
        return _NO_LOADER
    return "it is set" if all(each.is_pinned for each in facts.loaders) else None


def _not_fused(facts: Facts) -> str | None:
    if not facts.optimizers:
        return "no optimizer of torch.optim was seen"
    if not any(each.can_be_fused for each in facts.optimizers):
        return f"{facts.optimizer} has no fused form"
    return "it is set" if all(each.is_fused for each in facts.optimizers if each.can_be_fused) else None


def _not_foreach(facts: Facts) -> str | None:
    if facts.is_gpu:
        return "torch does so on a GPU by itself"
    if not any(each.can_be_foreach for each in facts.optimizers):
        return "the optimizer has no such form" if facts.optimizers else "no optimizer of torch.optim was seen"
    if any(each.is_fused or each.is_foreach for each in facts.optimizers):
        return "it is set, or the optimizer is fused"
    return None


def _no_convolution(facts: Facts) -> str | None:
    return None if facts.any_model("convolutions") else "the model has no convolution of images"


def _not_channels_last(facts: Facts) -> str | None:
    return "it is set" if facts.any_model("is_channels_last") else _no_convolution(facts)


def _no_benchmark(facts: Facts) -> str | None:
    if not facts.is_gpu:
        return "a CPU has no cuDNN"
    return "it is set" if facts.noted.cudnn_benchmark else _no_convolution(facts)


def _not_compiled(facts: Facts) -> str | None:
    if not facts.models:
        return _NO_MODEL
    return "it is compiled" if facts.any_model("is_compiled") else None


def _no_cache(facts: Facts) -> str | None:
    return None if facts.any_model("uses_cache") else "no model of the training keeps a cache"


def _nothing_kept(facts: Facts) -> str | None:
    if len(facts.models) > 1 or len(facts.optimizers) > 1:
        return "there is more than one model or optimizer: an output may be needed again"
    if facts.kept_fraction < LEAST_KEPT:
        return "no output of note is held after its backward pass"
    return None


def _not_expandable(facts: Facts) -> str | None:
    return None if facts.is_gpu else _ONLY_GPU


def _not_tf32(facts: Facts) -> str | None:
    if not facts.is_gpu:
        return "only a GPU has TF32"
    if facts.is_before_ampere:
        return "this GPU has no TF32"
    if facts.noted.matmul_precision in ("high", "medium"):
        return "it is set"
    return None if "float32" in facts.dtypes else "no parameter is in fp32"


def _not_fp64(facts: Facts) -> str | None:
    if not facts.models:
        return _NO_MODEL
    return None if "float64" in facts.dtypes else "no parameter is in 64 bits"


def _not_bf16(facts: Facts) -> str | None:
    if not facts.models:
        return _NO_MODEL
    if facts.any_model("is_autocast"):
        return "the script uses autocast"
    if facts.dtypes != {"float32"}:
        return f"the parameters are in {', '.join(sorted(facts.dtypes))}"
    return "this GPU has no bf16" if facts.is_before_ampere else None


def _workers_of_a_loader(facts: Facts) -> str:
    return f"DataLoader(..., num_workers={facts.workers_to_try}, persistent_workers=True)"


def _workers_of_a_trainer(facts: Facts) -> str:
    workers = facts.workers_to_try
    return f"TrainingArguments(..., dataloader_num_workers={workers}, dataloader_persistent_workers=True)"


def _made_with(option: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the line that makes each optimizer with an option; a class of the script's own is named as it names it."""
    for name in names:
        yield f"{'torch.optim.' if name in OF_TORCH else ''}{name}(..., {option}=True)"


def _fused_optimizers(facts: Facts) -> str:
    return "\n".join(_made_with("fused", facts.names_of_optimizers("can_be_fused")))


def _fused_optimizers_of_a_trainer(facts: Facts) -> str:
    """Write the argument for AdamW; the others it takes as they are made."""
    if facts.names_of_optimizers("can_be_fused") == ["AdamW"]:
        return 'TrainingArguments(..., optim="adamw_torch_fused")'
    return "\n".join(f"{line}  # given as Trainer(optimizers=...)" for line in _fused_optimizers(facts).splitlines())


VARIANTS = (
    Variant(
        name=WORKERS,
        label="Loader workers",
        why_not=_no_workers,
        value=lambda facts: facts.workers_to_try,
        lines={TORCH: _workers_of_a_loader, TRANSFORMERS: _workers_of_a_trainer},
    ),
    Variant(
        name="pinned",
        label="Pinned memory",
        why_not=_no_pinning,
        lines={
            TORCH: always("DataLoader(..., pin_memory=True)"),
            TRANSFORMERS: always("TrainingArguments(..., dataloader_pin_memory=True)"),
        },
    ),
    Variant(
        name="fused",
        label="Fused optimizer",
        why_not=_not_fused,
        lines={TORCH: _fused_optimizers, TRANSFORMERS: _fused_optimizers_of_a_trainer},
    ),
    Variant(
        name="foreach",
        label="Optimizer over lists of tensors",
        why_not=_not_foreach,
        lines={TORCH: lambda facts: "\n".join(_made_with("foreach", facts.names_of_optimizers("can_be_foreach")))},
    ),
    Variant(
        name="cudnn-benchmark",
        label="cuDNN's fastest kernels",
        why_not=_no_benchmark,
        lines={
            TORCH: always("torch.backends.cudnn.benchmark = True"),
            LIGHTNING: always("Trainer(..., benchmark=True)"),
        },
    ),
    Variant(
        name="channels-last",
        label="Channels last",
        why_not=_not_channels_last,
        lines={TORCH: always(f"{CHANNELS_LAST}\n{CHANNELS_LAST_BATCH}")},
    ),
    Variant(
        name=COMPILE,
        label="torch.compile",
        why_not=_not_compiled,
        lines={
            TORCH: always("model = torch.compile(model)"),
            TRANSFORMERS: always("TrainingArguments(..., torch_compile=True)"),
        },
    ),
    Variant(
        name="no-cache",
        label="No cache of the decoder",
        why_not=_no_cache,
        lines={TORCH: always("model.config.use_cache = False")},
        saves_memory_only=True,
    ),
    Variant(
        name="release-outputs",
        label="Outputs released after each step",
        why_not=_nothing_kept,
        lines={TORCH: always("del outputs  # and what holds them, at the end of each step")},
        saves_memory_only=True,
    ),
    Variant(
        name="expandable",
        label="Expandable segments",
        why_not=_not_expandable,
        environment=dict.fromkeys(ALLOCATOR_VARIABLES, EXPANDABLE),
        lines={TORCH: always(f'os.environ["{ALLOCATOR_VARIABLES[-1]}"] = "{EXPANDABLE}"  # before torch is imported')},
        saves_memory_only=True,
    ),
    Variant(
        name="fp32",
        label="32 bits in place of 64",
        why_not=_not_fp64,
        lines={TORCH: always("model.float()  # and the batches: torch.from_numpy(rows).float()")},
    ),
    Variant(
        name="tf32",
        label="TF32",
        why_not=_not_tf32,
        rounds_as="tf32",
        lines={
            TORCH: always("\n".join(TF32)),
            TRANSFORMERS: always("TrainingArguments(..., tf32=True)"),
        },
    ),
    Variant(
        name="bf16",
        label="bf16 autocast",
        why_not=_not_bf16,
        rounds_as="bf16",
        lines={
            TORCH: lambda facts: (
                f'with torch.autocast("{facts.device_kind}", dtype=torch.bfloat16):\n'
                "    outputs = model(inputs)  # the loss is computed of outputs.float()"
            ),
            TRANSFORMERS: always("TrainingArguments(..., bf16=True)"),
            LIGHTNING: always('Trainer(..., precision="bf16-mixed")'),
            ACCELERATE: always('Accelerator(..., mixed_precision="bf16")'),
        },
    ),
)
BY_NAME = {each.name: each for each in VARIANTS}
OF_MEMORY_ONLY = frozenset(each.name for each in VARIANTS if each.saves_memory_only)
CONFLICTS = frozenset({frozenset({"fused", "foreach"})})
