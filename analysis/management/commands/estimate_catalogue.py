"""`python manage.py estimate_catalogue`: queues the estimates that answer the page of estimates at once.

It only fills the queue, at low priority. What is stored or waiting is left alone, so it may be run again at any time:
after an interruption it goes on, and with new models in the catalogue it adds theirs.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.database import refuse_unmigrated
from analysis.models import ALL_GPUS, Run, State
from analysis.runs import services
from analysis.runs.earlier.estimates import estimate_like
from engine.errors import EngineError, SpecError
from engine.estimate.gpus import find
from engine.estimate.spec import EstimateSpec
from engine.settings.catalog import workload_ids
from engine.settings.spec import DEFAULTS, RunSpec
from engine.settings.step_settings import PRECISIONS

_LEFT_ALONE = {
    State.FINISHED: "stored",
    State.QUEUED: "waiting",
    State.RUNNING: "waiting",
    State.FAILED: "failed before",
}


class Command(BaseCommand):
    """Queues one estimate for each model, precision and GPU that has none; `all` is one estimate of the catalogue."""

    help = "Queue the estimates of the catalogue that are not stored yet, at low priority."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--models", nargs="+", metavar="ID", help="default: every model of the catalogue")
        parser.add_argument("--gpus", nargs="+", metavar="ID", default=[ALL_GPUS], help="default: all, by one estimate")
        parser.add_argument(
            "--precisions", nargs="+", choices=PRECISIONS, default=("fp32", "bf16"), help="default: both"
        )
        parser.add_argument("--batch-size", type=int, default=DEFAULTS["current_batch_size"], help="today's size")
        parser.add_argument("--most", type=int, metavar="N", help="queue at most N estimates this time")
        parser.add_argument("--retry-failed", action="store_true", help="queue those again that failed before")
        parser.add_argument("--dry-run", action="store_true", help="say what would be queued, and queue nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            refuse_unmigrated()
            _check(options)
        except EngineError as exc:
            raise CommandError(str(exc), returncode=exc.exit_status) from exc
        counts = Counter[str]()
        for name, question in self._questions(options, counts):
            good = estimate_like(question, State.FINISHED, State.QUEUED, State.RUNNING)
            before = good or (None if options["retry_failed"] else estimate_like(question, State.FAILED))
            if before is not None:
                counts[_LEFT_ALONE[State(before.state)]] += 1
            elif options["most"] is not None and counts["queued"] >= options["most"]:
                counts["left for next time"] += 1
            else:
                counts["queued"] += 1
                self._queue(name, question, is_dry=options["dry_run"])
        counts["queued"] += 0
        summary = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        self.stdout.write(f"{summary}{' (dry run: nothing was queued)' if options['dry_run'] else ''}")

    def _questions(self, options: dict[str, Any], counts: Counter[str]) -> Iterator[tuple[str, EstimateSpec]]:
        for model in options["models"] or workload_ids():
            for precision in options["precisions"]:
                for gpu in options["gpus"]:
                    name = f"{model} {precision} on {'all GPUs' if gpu == ALL_GPUS else gpu}"
                    try:
                        training = RunSpec(model, precision=precision, current_batch_size=options["batch_size"])
                        yield name, EstimateSpec(training, gpu)
                    except SpecError as error:
                        counts["impossible"] += 1
                        self.stdout.write(f"impossible: {name}: {error}")

    def _queue(self, name: str, question: EstimateSpec, *, is_dry: bool) -> None:
        if is_dry:
            self.stdout.write(f"would queue: {name}")
            return
        run = services.run_create(spec=question, priority=Run.Priority.LOW)
        self.stdout.write(f"queued: {name} (run {run.pk})")


def _check(options: dict[str, Any]) -> None:
    """Refuse names that are not in the catalogue before anything is queued. Raises SpecError."""
    for model in options["models"] or workload_ids()[:1]:
        RunSpec(model, current_batch_size=options["batch_size"])
    for gpu in options["gpus"]:
        if gpu != ALL_GPUS:
            find(gpu)
