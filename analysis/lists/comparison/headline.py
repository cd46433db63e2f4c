"""The comparison in one sentence: which run is the fastest, and which fits the most.

Runs that differ in one setting of the training alone are called by it: "SGD fits 70, AdamW 60."
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.formatting import factor, number
from analysis.lists.comparison.compared_run import ComparedRun
from analysis.lists.comparison.differences import setting_rows
from analysis.lists.comparison.metrics import LARGEST, RECOMMENDED_SPEED, Cell, Metric, MetricRow
from engine.settings.spec import SETTINGS

_NAMING = frozenset(SETTINGS[name].label for name in ("precision", "optimizer"))
"""Settings whose values name a run by themselves: "bf16", where "on" would not."""


def compare_headline(subjects: Sequence[ComparedRun], baseline: ComparedRun | None, rows: Sequence[MetricRow]) -> str:
    """Write "Run 4 is 1.40x as fast as run 2; run 5 fits the most, 104 against 60."; else what they are runs of."""
    if baseline is not None:
        names = _names(subjects)
        fastest = _fastest(subjects, baseline, _row(rows, RECOMMENDED_SPEED), names)
        largest = _largest(subjects, baseline, _row(rows, LARGEST), names)
        if sentence := "; ".join(filter(None, (fastest, largest))):
            is_setting = sentence.startswith(tuple(set(names.values()) - {subject.name for subject in subjects}))
            return f"{sentence if is_setting else sentence[0].upper() + sentence[1:]}."
    trained = list(dict.fromkeys(f"{subject.model_name} on {subject.place}" for subject in subjects))
    if len(trained) == 1:
        return f"{len(subjects)} runs of {trained[0]}"
    return " and ".join(trained) if len(trained) == 2 else f"{len(subjects)} runs"


def _names(subjects: Sequence[ComparedRun]) -> dict[int, str]:
    differing = [row for row in setting_rows(subjects) if row.differs]
    if len(differing) == 1 and differing[0].name in _NAMING and len(set(differing[0].values)) == len(subjects):
        return {subject.run_id: value for subject, value in zip(subjects, differing[0].values, strict=True)}
    return {subject.run_id: subject.name for subject in subjects}


def _fastest(subjects: Sequence[ComparedRun], baseline: ComparedRun, row: MetricRow, names: Mapping[int, str]) -> str:
    found = _best(subjects, row)
    if found is None:
        return ""
    best, cell = found
    if cell.delta is None or cell.delta.fraction is None:
        return f"{names[best.run_id]} is the fastest"
    return f"{names[best.run_id]} is {factor(1 + cell.delta.fraction)} as fast as {names[baseline.run_id]}"


def _largest(subjects: Sequence[ComparedRun], baseline: ComparedRun, row: MetricRow, names: Mapping[int, str]) -> str:
    sizes, judged = {cell.value for cell in row.cells}, [cell.delta for cell in row.cells if cell.delta]
    if len(sizes) == 1 and len(judged) == len(subjects) - 1 and (size := sizes.pop()):
        return f"{'both' if len(subjects) == 2 else 'all'} fit {number(size)}"
    if (found := _best(subjects, row)) is None:
        return ""
    best, cell = found
    name, base = names[best.run_id], row.cells[subjects.index(baseline)]
    if cell.is_lower_bound:
        return f"{name} fits the most, at least {number(cell.value or 0)}"
    if len(subjects) == 2 and name != best.name:
        other = subjects[1 - subjects.index(best)]
        return f"{name} fits {cell.text}, {names[other.run_id]} {row.cells[subjects.index(other)].text}"
    return f"{name} fits the most, {cell.text}{'' if best is baseline else f' against {base.text}'}"


def _best(subjects: Sequence[ComparedRun], row: MetricRow) -> tuple[ComparedRun, Cell] | None:
    """Return the run furthest above the baseline; the baseline where a run is worse and no difference is open."""
    pairs = [(subject, cell) for subject, cell in zip(subjects, row.cells, strict=True) if cell.value is not None]
    better = [(one, cell) for one, cell in pairs if cell.delta and cell.delta.verdict == "better"]
    if better:
        return max(better, key=lambda pair: pair[1].value or 0)
    verdicts = [cell.delta.verdict for _, cell in pairs if cell.delta]
    if len(verdicts) == len(pairs) - 1 and "worse" in verdicts and set(verdicts) <= {"worse", "same"}:
        return next((one, cell) for one, cell in pairs if cell.delta is None)
    return None


def _row(rows: Sequence[MetricRow], metric: Metric) -> MetricRow:
    return next(row for row in rows if row.key == metric.key)
