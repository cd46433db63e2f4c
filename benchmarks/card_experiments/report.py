"""PURE: the answers as one page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.card_experiments.answers import Answers
from benchmarks.card_experiments.experiments import EXPERIMENTS
from benchmarks.card_experiments.setting import Machine
from engine.text.units import format_bytes

BEGIN, END = "<!-- first_hour: begin -->", "<!-- first_hour: end -->"
NOTHING_YET = "There are no results from GPUs yet: none of these experiments was run on a GPU."


def report(files: Sequence[Answers]) -> str:
    """One section for each file of answers; without any, one sentence."""
    kept = [answers for answers in files if answers.lines]
    if not kept:
        return NOTHING_YET
    return "\n".join(_section(answers) for answers in kept)


def into_page(page: str, text: str) -> str:
    """The page with this text between its two marks. ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"has no {BEGIN} and {END}")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def _section(answers: Answers) -> str:
    last = answers.lines[-1]
    machine, found = Machine(**last["machine"]), answers.answers()
    lines = [f"### {machine.gpu}{', MADE UP: the stand-in, no figure of a card' if machine.is_stand_in else ''}", ""]
    lines += [
        _about(machine, answers),
        "",
        "| # | experiment | expected | seen | verdict | s |",
        "|---:|---|---|---|---|---:|",
    ]
    lines += [_row(experiment.number, experiment.name, found.get(experiment.number)) for experiment in EXPERIMENTS]
    counts: dict[str, int] = {}
    for answer in found.values():
        counts[answer["verdict"]] = counts.get(answer["verdict"], 0) + 1
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "no answer yet"
    lines += ["", f"{len(found)} of {len(EXPERIMENTS)} answered: {said}.", "", "Commands:", ""]
    lines += [
        f"- {a['number']}: {'; '.join(f'`{c}`' for c in dict.fromkeys(a['commands']))}"
        for a in found.values()
        if a["commands"]
    ]
    return "\n".join(lines) + "\n"


def _about(machine: Machine, answers: Answers) -> str:
    settings = {name: value for name, value in machine.settings.items() if value is not None}
    said = ", ".join(f"{name.removeprefix('gpu_').replace('_', ' ')} {value}" for name, value in settings.items())
    days = sorted({line["at"][:10] for line in answers.lines})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"{format_bytes(machine.total_bytes)}, capability {machine.compute_capability}, driver {machine.driver}, torch "
        f"{machine.torch}, CUDA {machine.cuda}, cuDNN {machine.cudnn}, transformers {machine.transformers}, Python "
        f"{machine.python}; {said or 'no settings told'}; {when}; scale {answers.lines[-1]['scale']}."
    )


def _row(number: int, name: str, answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return f"| {number} | {name} | | | not run yet | |"
    meaning = f": {answer['meaning']}" if answer["meaning"] else ""
    cells = (answer["expected"], answer["seen"], f"**{answer['verdict']}**{meaning}")
    texts = " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {number} | {name} | {texts} | {answer['seconds']:.0f} |"
