"""A kind of run is declared once: a module and a row for each layer, and nothing else of the house asks which it is.

A new kind is a member of `RunKind`, a row in each table below, and modules of its own.
Whoever needs to know a kind asks its module, through the protocol of that layer. Where a name stands outside all the
same, `NAMED_ELSEWHERE` says why; the branches on a kind that are left are few, and a further one has to replace one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from analysis.api.kinds import BY_KIND as REQUESTS
from analysis.pages.kinds import BY_KIND as PAGES
from analysis.presentation.kinds import BY_KIND as PRESENTATIONS
from analysis.runs.kinds import BY_KIND as RULES
from engine.facts.result import RunResult
from engine.facts.run_kind import Question
from engine.questions.documents.estimated import Estimated
from engine.questions.documents.validated import Validated
from engine.questions.kinds import KINDS, ByKind, RunKind

ROOT = Path(__file__).parents[1]
BRANCHES_MAX, FILES_MAX = 11, 8
"""As many as there are: lower them when one goes."""
OWN = (
    *("analysis/*/kinds/*", "analysis/models/run_states.py"),
    *("engine/questions/kinds.py", "engine/questions/documents/*"),
    *("engine/cli/faster.py", "engine/cli/measure.py", "engine/cli/tune.py", "engine/cli/tune_faster.py"),
    *("engine/cli/validate.py", "engine/cli/watch.py"),
    "engine/public.py",
    *("engine/settings/catalog/stored_workload.py", "analysis/runs/commands.py"),
    *(f"engine/trainings/script/{folder}*" for folder in ("", "start/", "notes/", "faster/")),
    "analysis/api/v1/run/of_kind.py",
    *(f"{each.views.replace('.', '/')}.py" for each in PAGES.values() if each.views),
)
"""The tables, the modules of one kind each (its rules, words, pages, requests, command, list), and the one that tells
a training of the user's own by its spec."""
NAMED_ELSEWHERE = {
    "analysis/api/run_bodies.py": "a body without a kind requests a measurement",
    "analysis/models/indexes.py": "the index of the lists is by the published kind",
    "analysis/models/querysets.py": "estimates wait in a queue of their own; the index needs a literal",
    "analysis/models/run.py": "constraints of the database; a template asks whether a run can be started again",
    "analysis/news/decide.py": "only a measurement has an estimate to contradict, and a trend",
    "analysis/pages/home/first_values.py": "the form begins with an estimate where there is no device",
    "analysis/pages/home/forms.py": "the form begins with a measurement",
    "analysis/runs/matrix_store.py": "the condition is the database's",
    "engine/describe/does_not_fit.py": "remedies need the settings of a model of the catalogue",
    "engine/describe/time_left/__init__.py": "events of other machines name no kind",
}
_MEMBER = r"\b(?:RunKind|Run\.Kind|RunKind)\.[A-Z]\w*|(?<!def )\bis_own_training\("
_ANY_OF = "|".join(RunKind)
_BY_TYPE = r"isinstance\([\w.]+, \(?(?:\w*Spec|Measured|Estimated|Validated|RunResult|ValidationResult|TuneResult)\b"
_BY_MEMBER = r"[\"'](?:command|function|estimates|checks|training)[\"'] (?:not )?in\b|\btraining is (?:not )?None"
_ASKED = rf"\.is_(?:{_ANY_OF})\b|\b(?:SEARCHES|ON_DEVICES)\b|kind[\"'\])]*\s*(?:[!=]=|in)\s*\(?[\"'](?:{_ANY_OF})\b"
RAW_FILES_MAX = 4
"""The files outside `questions/documents` that take a member out of a result document before it is read: lower it."""
_MEMBERS = "|".join({each.name for kind in (RunResult, Estimated, Validated) for each in fields(kind)} | {"training"})
RAW = re.compile(rf"\b(?:result|document|stored|raw)(?:\[|\.get\()[\"'](?:{_MEMBERS})[\"'](?!\] = )")
NAMES = re.compile(_MEMBER)
BRANCH = re.compile(
    rf"^(?=.*(?:\b(?:if|elif|and|or|not|in|while|case|assert)\b|[!=]=)).*(?:{_MEMBER}|{_ASKED}|{_BY_TYPE}|{_BY_MEMBER})"
)


def lines_elsewhere(pattern: re.Pattern[str], own: Iterable[str] = OWN) -> Iterator[tuple[str, str]]:
    """The lines of the product outside the kinds' own modules that have this, each with its file."""
    for folder in ("engine", "analysis", "memorymark_site", "templates"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT)
            if path.suffix in (".py", ".html") and "migrations" not in name.parts and not any(map(name.match, own)):
                yield from ((str(name), line) for line in path.read_text().splitlines() if pattern.search(line))


@pytest.mark.parametrize("table", [KINDS, RULES, PRESENTATIONS, REQUESTS, PAGES])
def test_every_kind_has_something_of_its_own_in_every_table(table: ByKind[Any]) -> None:
    assert [field.name for field in fields(table)] == list(Question)
    assert len(set(map(id, table.values()))) == len(table) == len(RunKind)


def test_a_table_has_for_each_question_what_is_said_of_models_and_of_scripts() -> None:
    rows: dict[str, Any] = {"size": "ab", "faster": "cd", "estimate": "e", "validation": "f", "watch": "g"}
    assert "".join(ByKind[str](**rows).values()) == "abefcdg"
    with pytest.raises(TypeError, match="missing 1 .*'estimate'"):
        ByKind(**{name: row for name, row in rows.items() if name != "estimate"})


def test_the_name_of_a_kind_stands_in_its_own_modules_and_where_a_reason_is_given() -> None:
    assert {name for name, _ in lines_elsewhere(NAMES)} == set(NAMED_ELSEWHERE)


def test_few_branches_on_a_kind_are_left() -> None:
    branches = list(lines_elsewhere(BRANCH))
    shown = "\n".join(f"{name}: {line.strip()}" for name, line in branches)
    assert len(branches) <= BRANCHES_MAX, shown
    assert len({name for name, _ in branches}) <= FILES_MAX, shown


def test_few_files_read_a_result_document_by_its_raw_members() -> None:
    found = {name for name, _ in lines_elsewhere(RAW, own=("engine/questions/documents/*",))}
    assert len(found) <= RAW_FILES_MAX, sorted(found)


@pytest.mark.parametrize(
    ("line", "is_branch"),
    [
        ("if run.kind == RunKind.ESTIMATE:", True),
        ("return 1 if is_own_training(spec) else 2", True),
        ("if run.is_validation and run.result:", True),
        ('{% if run.kind == "estimate" %}', True),
        ("RunKind.ESTIMATE: Estimate(),", False),
        ('{% if cell.kind == "estimated" %}', False),
        ("assert isinstance(claims.spec, RunSpec)", True),
        ('if "command" in given:', True),
        ("if claims.training is not None:", True),
        ('"rounds" if result.training is None else "pairs of starts"', True),
        ("if isinstance(value, Mapping):", False),
    ],
)
def test_what_counts_as_a_branch(line: str, is_branch: bool) -> None:
    assert bool(BRANCH.search(line)) == is_branch
