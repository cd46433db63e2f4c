"""What stands above the columns of compared runs: each one's name and links, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.lists.comparison.compared_run import ComparedRun
from analysis.lists.comparison.query import CompareQuery
from analysis.presentation.origin import describe_origin


def caveats(subjects: Sequence[ComparedRun]) -> list[tuple[list[ComparedRun], str]]:
    runs: dict[str, list[ComparedRun]] = {}
    for subject in subjects:
        if subject.caveat:
            runs.setdefault(subject.caveat, []).append(subject)
    return [(having, caveat) for caveat, having in runs.items()]


def head(
    subject: ComparedRun, baseline: ComparedRun | None, query: CompareQuery, *, has_baseline: bool = True
) -> dict[str, Any]:
    """Give a run's name, its swatch and its two links; without `has_baseline` each run is compared with itself."""
    rest = tuple(run_id for run_id in query.ids if run_id != subject.run_id)
    still_baseline = query.baseline if query.baseline in rest else None
    return {
        "subject": subject,
        "label": f"≈ {subject.name}" if subject.is_predicted else subject.name,
        "origin": describe_origin(subject.run),
        "is_baseline": subject is baseline,
        "swatch_class": subject.look.classes(is_predicted=subject.is_predicted),
        "marker_path": subject.look.marker_path,
        "as_baseline": query.address(baseline=subject.run_id) if has_baseline else "",
        "without": query.address(ids=rest, baseline=still_baseline) if len(rest) > 1 else "",
    }
