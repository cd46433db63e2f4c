"""PURE: a death in sentences: its cause, what the figures say, the change that helps and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..program import PROGRAM
from ..text.units import format_bytes
from .cause import Death
from .figures import OutOfMemory
from .signs import Cause

_TUNE = f"{PROGRAM} tune -- python train.py --batch-size {{batch_size}}"
_HEADLINES = {
    Cause.TOO_LARGE: "A training step needs more memory than the device has",
    Cause.LOADING: "The model did not fit before the first step: no batch size helps",
    Cause.IN_PIECES: "The memory was there, in pieces that the allocator could not join",
    Cause.ANOTHER_PROCESS: "Other processes hold the memory that lacks",
    Cause.EVALUATION: "An evaluation ran out of memory, not a training step",
    Cause.SAVING: "Saving ran out of memory, not a training step",
    Cause.LATE: "It trained, then ran out of memory: either a larger batch came, or memory grew",
    Cause.GROWS: "Memory grew with each step until none was left",
    Cause.LONG_BATCH: "A batch came that was larger than all before it",
    Cause.HOST_MEMORY: "The host's memory ended, not a GPU's",
    Cause.WORKER_MEMORY: "A worker of a loader died: shared or host memory ended",
    Cause.DISK: "A disk was full: no memory lacked",
    Cause.DRIVER: "The GPU, its driver or a kernel failed: the text shows no lack of memory",
    Cause.COLLECTIVE: "Ranks lost each other: the text shows no lack of memory",
    Cause.SCHEDULER: "The scheduler ended it: the text shows no lack of memory",
    Cause.NOT_MEMORY: "The program raised an error: the text shows no lack of memory",
    Cause.CANNOT_TELL: "Cannot tell: the text does not show why it ended",
}
_WHOLE_TEXT = "Give the whole traceback, or the scheduler's output: the lines before the last one tell."
_CHANGES_OF_A_DEVICE = (_WHOLE_TEXT, f"See what takes it: {PROGRAM} watch -- python train.py")
_OF_A_DEVICE = "A device ran out of memory; the text does not show what took it"
_CHANGES: dict[Cause, tuple[str, ...]] = {
    Cause.TOO_LARGE: (
        f"Find the largest batch size that trains: {_TUNE}",
        "Keep the global batch with a smaller micro-batch and gradient accumulation: the same steps, a little slower.",
        "Gradient checkpointing: less memory for activations, about a third more time.",
    ),
    Cause.LOADING: (
        f"See what fits: {PROGRAM} fit MODEL --gpu ID",
        "LoRA, 4-bit weights, an 8-bit optimizer or sharding over several GPUs make weights and states smaller.",
    ),
    Cause.IN_PIECES: (
        "Set PYTORCH_ALLOC_CONF=expandable_segments:True (before torch 2.9 PYTORCH_CUDA_ALLOC_CONF): costs nothing.",
        "Batches of equal length leave fewer pieces: pad to a multiple, or sort by length.",
    ),
    Cause.ANOTHER_PROCESS: (
        "nvidia-smi names the processes. End those that are yours, wait, or take another GPU.",
        "If they are ranks of this training, each needs its own GPU: set the device by the local rank.",
    ),
    Cause.EVALUATION: (
        "Run it under torch.no_grad() or inference_mode(), with its own, smaller batch size.",
        "Trainer: per_device_eval_batch_size, and eval_accumulation_steps, which moves outputs to the host.",
        f"Prove a size with its evaluation: {_TUNE.replace('tune', 'tune --whole-run')}",
    ),
    Cause.SAVING: (
        "Save a sharded state, or move it to the host before it is gathered: a whole copy of the weights is made.",
        f"Prove a size with its saves: {_TUNE.replace('tune', 'tune --whole-run')}",
    ),
    Cause.LATE: (
        "Log torch.cuda.max_memory_allocated() each step: if it rises with the batches alike, something is kept, "
        "as a loss that is added up without .item() or .detach().",
        f"If batches differ in length, prove a size over all of them: {_TUNE.replace('tune', 'tune --whole-run')}",
    ),
    Cause.GROWS: (
        "Keep no tensor of a step beyond it: .item() or .detach() on a loss, .cpu() on outputs that are collected.",
    ),
    Cause.LONG_BATCH: (
        "Cut the longest rows, or put fewer of them into a batch: by a budget of tokens instead of a number of rows.",
        f"Prove a size over all rows: {_TUNE.replace('tune', 'tune --whole-run')}",
    ),
    Cause.HOST_MEMORY: (
        "Fewer loader workers and a smaller prefetch_factor: each worker keeps a copy of what it touches of the data.",
        "Ask for more memory of the job (Slurm: --mem), or read the data from files instead of into lists.",
    ),
    Cause.WORKER_MEMORY: (
        "Give the container more shared memory: docker run --ipc=host, or --shm-size=8g.",
        "num_workers=0 shows whether the worker is the cause; fewer workers or a smaller batch need less.",
    ),
    Cause.DISK: ("Free the disk that the message names, or write checkpoints elsewhere.",),
    Cause.DRIVER: (
        "CUDA_LAUNCH_BLOCKING=1 names the line that failed. An index out of range is the usual one: run it on the CPU.",
        "`dmesg | grep Xid` on the host tells whether the GPU failed.",
    ),
    Cause.COLLECTIVE: ("Read the first error of the other ranks: one that died leaves the rest waiting.",),
    Cause.SCHEDULER: ("Resume from its last checkpoint; ask for more time, or save more often.",),
    Cause.NOT_MEMORY: ("Mend what the error says.",),
    Cause.CANNOT_TELL: (
        _WHOLE_TEXT,
        "After a bare 'Killed' or status 137: `dmesg | grep -i oom`, or the job's memory.events, tells who killed.",
    ),
}


def headline(death: Death) -> str:
    is_known = death.cause is not Cause.CANNOT_TELL or not death.is_of_a_device
    return f"{_HEADLINES[death.cause] if is_known else _OF_A_DEVICE}."


def evidence(death: Death) -> list[str]:
    """Return what the text says, the line that tells first."""
    said = [f"It says: {death.line[:300]}"] if death.line else []
    said += list(_figures(death.figures))
    said += [f"{format_bytes(size)} were made at {place}." for place, size in death.places]
    if death.step is not None:
        said.append(f"The last step that it counted: {death.step:,}.")
    return said


def changes(death: Death) -> tuple[str, ...]:
    is_known = death.cause is not Cause.CANNOT_TELL or not death.is_of_a_device
    return _CHANGES[death.cause] if is_known else _CHANGES_OF_A_DEVICE


def document(death: Death) -> dict[str, Any]:
    """Return it as JSON; sizes in bytes, null where the text does not tell."""
    figures = death.figures
    return {
        "cause": death.cause,
        "during": death.moment,
        "headline": headline(death),
        "line": death.line or None,
        "last_step": death.step,
        "figures": {
            "requested_bytes": figures.requested,
            "total_bytes": figures.total,
            "free_bytes": figures.free,
            "own_bytes": figures.own,
            "allocated_bytes": figures.allocated,
            "in_pieces_bytes": figures.in_pieces,
            "others_bytes": figures.others if figures.has_figures else None,
        },
        "places": [{"place": place, "bytes": size} for place, size in death.places],
        "changes": list(changes(death)),
    }


def _figures(figures: OutOfMemory) -> Iterator[str]:
    if figures.requested is not None:
        of = f" of {format_bytes(figures.total)}" if figures.total is not None else ""
        free = f"; {format_bytes(figures.free)}{of} were free" if figures.free is not None else ""
        yield f"It asked for {format_bytes(figures.requested)}{free}."
    if figures.allocated is not None:
        pieces = figures.in_pieces
        kept = f", and {format_bytes(pieces)} more lay in pieces" if pieces else ""
        yield f"Its tensors held {format_bytes(figures.allocated)}{kept}."
    if figures.has_figures and figures.others > 0:
        numbers = f" (process {', '.join(map(str, figures.processes))})" if figures.processes else ""
        yield f"Other processes held {format_bytes(figures.others)}{numbers}."
