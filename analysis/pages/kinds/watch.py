"""The page of a watched training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import QueryDict

from analysis.charts.bars import MemoryBar
from analysis.charts.steps import steps_plot
from analysis.models import Run
from analysis.pages.kinds.page import KindPages, Page
from analysis.presentation.kinds import presentation_of
from analysis.presentation.unreadable import read_stored
from engine.deaths import words
from engine.program import INSTALLED, PROGRAM
from engine.questions.documents.watched import Watched
from engine.recording.report import Report
from engine.recording.words import lasting, long_batch, next_step, seen, use
from engine.text.units import sentence_case

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Watch(KindPages):
    def change_address(self, run: Run) -> str:
        return ""

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        watched = read_stored(Watched.from_dict, run.result)
        report, death = watched.report, watched.process.death
        return "analysis/run/watch.html", {
            "watched": watched,
            "headline": watched.headline,
            "ended": presentation_of(run).chip(run),
            "bars": _bars(report),
            "said": [sentence_case(seen(report, watched.status)), *use(report)],
            "lasting": lasting(report),
            "chart": steps_plot(watched.process.samples, report.total_bytes),
            "evidence": [*words.evidence(report.death), *long_batch(report)] if report.death else (),
            "has_text_elsewhere": death is not None and not death.line,
            "changes": [_with_command(each) for each in (words.changes(report.death) if report.death else ())],
            "next_steps": [_with_command(each) for each in next_step(report)],
        }


def _with_command(text: str) -> tuple[str, str]:
    """Return a sentence and the command at its end, as it is called where the package is installed; empty without."""
    before, _, command = text.partition(f"{PROGRAM} ")
    return before, command and f"{INSTALLED} {command}"


def _bars(report: Report) -> list[MemoryBar]:
    process = report.process
    if not (report.total_bytes and process.peak_bytes and process.batch_size):
        return []
    return [MemoryBar("today", "Peak", process.batch_size, process.peak_bytes, report.total_bytes)]
