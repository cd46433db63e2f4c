"""PURE: what a training was doing when it ended, from the functions of its traceback and the steps that it counted."""

from __future__ import annotations

import re
from enum import StrEnum


class Moment(StrEnum):
    """What a training was doing when it ended."""

    LOADING = "loading"
    TRAINING = "training"
    STEP = "step"
    """In what only a training step runs, as a backward pass."""
    EVALUATING = "evaluating"
    SAVING = "saving"
    UNKNOWN = "unknown"


_FRAME = re.compile(
    r'File "[^"]*", line \d+, in (\S+)|\.py:\d+,? in (?:\w+\.)*(\w+)|^<ipython[^>]*> in (\w+)|\.py\S* in (\w+)\('
    r"|(state_dict)_utils\.py|Failed to clone\(\) tensor.{0,300}(state_dict)",
    re.MULTILINE | re.DOTALL,
)
_WORDS = (
    (
        Moment.EVALUATING,
        r"eval|valid|predict|sanity_check|^test(_|$)|^val(_|$)|_val(_|$)|run_val|inference|generate_samples|pad_and_concatenate",
    ),
    (
        Moment.SAVING,
        r"save|consolidate|merge_(?:and_unload|lora|weights|adapter|model)|gather_16bit|_zero3_consolidated|full_state_dict|state_dict_hook|^state_dict$",
    ),
    (
        Moment.LOADING,
        r"from_pretrained|load_model|load_checkpoint|load_state_dict|load_pretrained|_load_|^load$|^build|^create_model|get_model"
        r"|init_model|setup_model|_apply$|^convert$|^to$|^cuda$|deepspeed_init|_init_optimizer|initialize$|prepare_model"
        r"|^_configure_|_flatten|^_prepare|^prepare|quantize|replace_with_bnb|materialize|_sync_module|get_peft_model"
        r"|partition|^dispatch_model|set_module_tensor",
    ),
    (
        Moment.TRAINING,
        r"training_step|compute_loss|^backward$|^step$|train_epoch|train_one|train_step|run_iteration|^forward$|_call_impl"
        r"|optimizer_step|run_step|train_batch|_init_group|^train$|_inner_training_loop|^fit",
    ),
)
_SAID = (
    (
        Moment.EVALUATING,
        r"\b(?:during|while|when) (?:the )?(?:inference|evaluati\w+|validati\w+|testing)"
        r"|(?:testing|validating|evaluating)\.\.",
    ),
    (Moment.SAVING, r"\b(?:during|while|when) (?:saving|merging)"),
    (Moment.LOADING, r"\b(?:during|while|when) (?:loading|quantizing)"),
)
"""How people and logs name a moment, where no function does."""
_IN_A_STEP = r"training_step|compute_loss|^backward$|train_step|train_batch"
_STEP = re.compile(
    r"(?:\| *|\[)(\d+)/(\d+|\?)(?: \[|\])|\b(\d+)it \[|\b(?:step|iter|iteration|global_step|it)s?[ =:\[#]+(\d[\d,]*)|"
    r"'epoch': (\d+(?:\.\d+)?)|\bepoch[ =:\[#]+(\d+)|\b(\d+)(?:st|nd|rd|th) epoch|\bafter (\d[\d,]*) (?:step|iter)",
    re.IGNORECASE,
)
LATE_STEPS = 20
"""From so many steps on a training that dies did not need too much from its start."""


def moment_of(text: str) -> Moment:
    """Return what the innermost telling function did: a save within a training is a save."""
    functions = ["".join(found) for found in _FRAME.findall(_last_traceback(text))]
    kinds = [next((kind for kind, words in _WORDS if re.search(words, each)), None) for each in functions]
    telling = [kind for kind in kinds if kind not in (None, Moment.TRAINING)]
    if Moment.EVALUATING in telling and telling[-1] is Moment.LOADING and "load" not in " ".join(functions):
        return Moment.EVALUATING
    is_in_a_step = any(re.search(_IN_A_STEP, each) for each in functions)
    if telling and not (is_in_a_step and telling[-1] is Moment.LOADING):
        return Moment(telling[-1])
    if is_in_a_step:
        return Moment.STEP
    if said := next((kind for kind, words in _SAID if re.search(words, text, re.IGNORECASE)), None):
        return said
    return Moment.TRAINING if Moment.TRAINING in kinds else Moment.UNKNOWN


def _last_traceback(text: str) -> str:
    return text[max(0, text.rfind("Traceback (most recent call last)")) :]


def last_step(text: str) -> int | None:
    """Return the last step that a progress bar or a log counted; an epoch beyond the first counts as many steps."""
    found = None
    of_training = text[text.rfind("train_runtime") + 1 :]  # a Trainer prints that at its end
    for bar, of, counted, step, epochs, epoch, nth, after in _STEP.findall(of_training):
        if bar:
            is_under_way = of == "?" or (int(of) >= LATE_STEPS and bar != of)
            found = int(bar) if is_under_way else found
        elif count := counted or step or after:
            found = int(count.replace(",", ""))
        elif float(epochs or epoch or nth) >= 2:
            found = max(found or 0, LATE_STEPS)
    return found
