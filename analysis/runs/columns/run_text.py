"""Text search over runs with the database's text index: FTS5 on SQLite, GIN on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from analysis.models import Run, RunText
from analysis.runs.columns.search_terms import stored_words
from engine.settings.catalog import WORKLOADS

_FINDS = {
    "sqlite": "SELECT rowid FROM analysis_runtext_index WHERE analysis_runtext_index MATCH %s",
    "postgresql": (
        "SELECT run_id FROM analysis_runtext WHERE array_to_tsvector(string_to_array(words, ' ')) @@ %s::tsquery"
    ),
}


def run_text_keep(*, run_id: int) -> None:
    columns = ("name", "note", "model", "device_name")
    row = Run.all_runs.filter(pk=run_id).values_list(*columns).first()
    if row is not None:
        text = RunText(run_id=run_id, words=words_of(*row))
        RunText.objects.bulk_create([text], update_conflicts=True, unique_fields=["run"], update_fields=["words"])


def words_of(name: str, note: str, model: str, device_name: str) -> str:
    known_as = WORKLOADS[model].name if model in WORKLOADS else ""
    return stored_words(model, known_as, device_name, name, note)


def with_words(runs: QuerySet[Run], terms: Sequence[str]) -> QuerySet[Run]:
    """Keep the runs in which each of these terms begins a word."""
    found = RawSQL(_FINDS[connection.vendor], (_query(terms),))  # noqa: S611  (our own text, terms as a parameter)
    return runs.filter(pk__in=found)


def _query(terms: Sequence[str]) -> str:
    """Write the terms, of letters and digits, for the index. A term is left out where a longer term begins with it."""
    terms = [term for term in terms if not any(other != term and other.startswith(term) for other in terms)]
    if connection.vendor == "sqlite":
        return " AND ".join(f'"{word}"*' for word in terms)
    return " & ".join(f"'{word}':*" for word in terms)
