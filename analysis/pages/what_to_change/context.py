"""The context of what to change: an estimate's page has the answer, a measurement's starts it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from analysis.models import Device, Run
from analysis.pages.form_choices import places_offered
from analysis.pages.what_to_change.forms import ChangesForm
from analysis.presentation.what_to_change import changes_plot, changes_shown, variant_text
from analysis.runs.earlier.what_to_change import changes_found, devices_for, measured_variants, newest_changes
from analysis.runs.kinds import rules_of
from engine.spec import MAX_BATCH_SIZE


def changes_context(run: Run, user: User | None) -> dict[str, Any]:
    found = changes_found(run)
    if found is None:
        is_refused = (run.estimated_safe_batch_size or 0) < int(run.spec["current_batch_size"])
        return {"change_start": change_start(run, is_refused=is_refused)}
    devices = devices_for(run, Device.objects.enabled().allowing(user).best_first())
    return {
        "changes": changes_shown(found, measured_variants(run, found, user)),
        "changes_chart": changes_plot(found),
        "changes_places": [(value, label) for value, (label, _) in places_offered(devices).items()],
        "changes_run": run,
    }


def change_start(run: Run, *, is_refused: bool) -> dict[str, Any] | None:
    """Return what the form that finds out what to change needs; None where the place cannot be estimated."""
    if rules_of(run).place(run) is None:
        return None
    earlier = newest_changes(run)
    found = changes_found(earlier) if earlier else None
    size = size_wanted(run, is_refused=is_refused)
    return {
        "batch_size": size,
        "form": ChangesForm(initial={"batch_size": size}, auto_id="change-%s"),
        "is_refused": is_refused,
        "earlier": earlier,
        "found": found,
        "advice": [(variant_text(each), each.costs) for each in found.advised[:3]] if found else [],
    }


def size_wanted(run: Run, *, is_refused: bool) -> int:
    """Return the size to ask about: today's where it does not fit, else the first that does not."""
    today = int(run.spec["current_batch_size"])
    if is_refused:
        return today
    return min(max(run.estimated_largest_batch_size or 0, run.largest_batch_size or 0, today) + 1, MAX_BATCH_SIZE)
