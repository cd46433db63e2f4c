"""PURE: advice in sentences, for the command line and the pages."""

from __future__ import annotations

from ..facts.figure_kinds import ESTIMATED
from ..program import PROGRAM
from ..text.units import sentence_case
from .document import Advice
from .global_batch import BatchPair

PAIRS_SHOWN = 6


def describe_pair(pair: BatchPair, devices: int) -> str:
    """Write "8 x 4" for micro-batch x accumulation, and "8 x 4 x 2" on two devices."""
    factors = [pair.micro_batch_size, pair.accumulation_steps, *([devices] if devices > 1 else [])]
    return " x ".join(f"{factor:,}" for factor in factors)


def describe_speed(pair: BatchPair) -> str:
    """Write "161.3 samples/s (154.0 to 168.2)"; empty where it was not measured."""
    if pair.samples_per_second is None:
        return ""
    low, high = pair.samples_per_second_low, pair.samples_per_second_high
    interval = f"({low:,.1f} to {high:,.1f})" if low is not None and high is not None else "(no interval)"
    return f"{pair.samples_per_second:,.1f} samples/s {interval}"


def describe_plan(advice: Advice) -> str:
    plan = advice.global_batch
    on = f" on {plan.devices:,} devices" if plan.devices > 1 else ""
    if plan.is_sensible:
        return f"Each of these keeps a global batch of exactly {plan.size:,}{on}."
    near = " or ".join(f"{size:,}" for size in plan.nearest)
    if not plan.pairs:
        return f"No micro-batch keeps a global batch of exactly {plan.size:,}{on}; near it are {near}."
    largest = plan.pairs[0].micro_batch_size
    return (
        f"No sensible micro-batch keeps a global batch of exactly {plan.size:,}{on}: its largest divisor up to "
        f"{advice.most_batch_size:,} is {largest:,}. Near it are {near}."
    )


def describe_learning_rate(advice: Advice) -> str:
    if not advice.learning_rate_rules:
        return "The optimizer sees as many samples a step as today, so the learning rate can stay."
    size, today = advice.global_batch.size, advice.today_global_batch_size
    rules = "; ".join(
        f"{rule.name} scaling, usual with {rule.usual_with}: x {rule.factor:.3g}" for rule in advice.learning_rate_rules
    )
    return (
        f"The optimizer then sees {size:,} samples a step, today {today:,}. Two rules for the learning rate are in "
        f"use: {rules}. Neither is applied here, and neither is sure: tune it."
    )


def describe_not_in_code(advice: Advice) -> str:
    """Name what the reader has to add to the code to get the measured memory."""
    return f"The code leaves to you: {', '.join(advice.not_in_code)}. The memory and the speed are with it."


def pair_line(pair: BatchPair, devices: int) -> str:
    """Write ``  24 x 4       161.3 samples/s [154.0, 168.2]``."""
    # what accumulation takes in addition, where the measurement does not cover it
    unknown = "" if pair.fits else "the gradients that stay between micro-batches were not measured, and may not fit"
    texts = (f"  {describe_pair(pair, devices):<12}", describe_speed(pair), unknown)
    return "  ".join(text for text in texts if text).rstrip()


def advice_lines(advice: Advice) -> list[str]:
    plan = advice.global_batch
    factors = "micro-batch x accumulation steps" + (" x devices" if plan.devices > 1 else "")
    margin = "margin" if advice.kind == ESTIMATED else "reserve"
    size = f"the micro-batch is the largest with the {margin}, {advice.most_batch_size:,}"
    lines = []
    if advice.recommended_batch_size is None:
        is_estimate = advice.kind == ESTIMATED
        lines = [f"{'ESTIMATE, nothing was measured' if is_estimate else 'No size is recommended'}: {size}."]
    lines += [describe_plan(advice)]
    if plan.pairs:
        has_speeds = any(pair.samples_per_second is not None for pair in plan.pairs[:PAIRS_SHOWN])
        speeds = ", with the measured speed of the micro-batch" if has_speeds else ""
        lines += [f"{sentence_case(factors)}{speeds}:"]
        lines += [pair_line(pair, plan.devices) for pair in plan.pairs[:PAIRS_SHOWN]]
    lines += [describe_learning_rate(advice), advice.samples_needed]
    lines += [f"  {paper.citation} ({paper.url})" for paper in advice.papers]
    names = ", ".join(snippet.id for snippet in advice.snippets)
    if advice.chosen and names:
        lines.append(f"Code of {describe_pair(advice.chosen, plan.devices)}: --code {names}")
    if advice.not_in_code:
        lines.append(describe_not_in_code(advice))
    return lines


def short_lines(advice: Advice) -> list[str]:
    """Return the end of a run's output: the two best pairs, and the command that prints the rest."""
    plan = advice.global_batch
    best = ", ".join(describe_pair(pair, plan.devices) for pair in plan.pairs[:3])
    pairs = f"{plan.size:,} samples an optimizer step exactly: {best} (micro-batch x accumulation)."
    return [
        pairs if plan.is_sensible else describe_plan(advice),
        f"Another global batch, the learning rate, code to paste: {PROGRAM} advise RESULT.json (of --json).",
    ]
