"""`python manage.py decide_again`: the answers of stored results, worked out from their facts by today's rules."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from analysis.audit.record import record
from analysis.models import Run
from analysis.runs.columns.result_columns import printed_columns
from analysis.runs.kinds import BY_KIND
from engine.errors import SpecError
from engine.questions.answers import ImpossibleFiguresError
from engine.questions.documents.stored import MALFORMED, with_earlier_note
from engine.questions.kinds import RunKind, answer, as_stored, asked, read_result

EARLIER = "(an earlier build)"


class Command(BaseCommand):
    """Nothing changes by itself at an upgrade: a result says what it said, until this is run."""

    help = "Work the answers of all stored results out again, by the rules of this version."

    def handle(self, *args: Any, **options: Any) -> None:
        changed, left = 0, 0
        kinds = [kind.value for kind in RunKind if asked(kind).is_reported]
        for run in Run.all_runs.filter(kind__in=kinds, result__isnull=False).iterator(chunk_size=50):
            try:
                found = answer(run.result or {})
                result, columns = as_stored(found), BY_KIND[run.kind].columns(found)
                result = with_earlier_note(result, run.result or {})
                if not run.decided_by:  # stored before its headline was kept
                    columns |= _printed_before(run)
            except (SpecError, ImpossibleFiguresError, *MALFORMED) as exc:  # a row of any content
                self.stderr.write(f"Run {run.pk} stays as it is: {exc}"[:300])
                left += 1
                continue
            if result != run.result:
                Run.all_runs.filter(pk=run.pk).update(result=result, **columns)
                record("run.decide_again", target=run)
                changed += 1
        self.stdout.write(f"{changed} results renewed, {left} could not be read.")


def _printed_before(run: Run) -> dict[str, Any]:
    """Return the columns of what a stored result said; empty where only its facts can be read."""
    try:
        return printed_columns(read_result(run.result or {})) | {"decided_by": EARLIER}
    except (SpecError, *MALFORMED):
        return {}
