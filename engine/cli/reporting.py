"""`--report-to` of every command that measures: its options, and what reports its run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .. import __version__
from ..program import PROGRAM
from ..provenance.parse import Facts
from ..provenance.read import run_facts
from ..report.address import address_of
from ..report.files import folder_of
from ..report.reporter import Reporter
from ..result_file import Document, write_result

Emit = Callable[[dict[str, Any]], None]


class Spec(Protocol):
    """What is measured."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Reported:
    """A run with its key: where its events go, and its result."""

    started_as: Facts
    emit: Emit
    reporter: Reporter | None = None
    result_file: Path | None = None

    def keep(self, exit_status: int, result: Document) -> None:
        """Write the result to each file that it belongs in."""
        if self.reporter is not None:
            self.reporter.keep(exit_status, result)
        if self.result_file is not None:
            write_result(self.result_file, exit_status, result)


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run that is reported."""
    add = parser.add_argument
    to = "report the run to this portal while it goes on; the token is read from MEMORYMARK_TOKEN"
    add("--report-to", metavar="URL", help=f"{to} (default: MEMORYMARK_REPORT_TO)")
    add("--runs-dir", type=Path, metavar="FOLDER", help="where a reported run is stored (default: memorymark-runs)")


class Reporting:
    """Where the runs of one command are reported to, if anywhere. Reads the token: a later process inherits none."""

    def __init__(self, report_to: str | None, *, runs_dir: Path | None = None, result_file: Path | None = None) -> None:
        self._address = address_of(report_to, os.environ)
        self._folder = folder_of(runs_dir, os.environ)
        self._result_file = result_file

    @classmethod
    def of(cls, options: argparse.Namespace) -> Reporting:
        """Read the options of a command."""
        return cls(options.report_to, runs_dir=options.runs_dir, result_file=options.result_file)

    @property
    def notice(self) -> str:
        """Say where runs go, for a program that may not know what its environment says; empty where nowhere."""
        return "" if self._address is None else f"reported to {self._address.url}; its files are in {self._folder}"

    @contextmanager
    def run(self, kind: str, spec: Spec, emit: Emit) -> Iterator[Reported]:
        """Report the run of this context. Its events still go to `emit`, after they are stored."""
        facts = run_facts()
        if self._address is None:
            yield Reported(facts, emit, result_file=self._result_file)
            return
        own = {"run_key": facts["run_key"], "host": facts["host"], "engine_version": __version__}
        announcement = {**own, "kind": kind, "spec": spec.to_dict()}
        sync = f"{PROGRAM} sync"
        with Reporter(self._address, self._folder, announcement, sync_command=sync) as reporter:

            def both(event: dict[str, Any]) -> None:
                reporter.emit(event)
                emit(event)

            yield Reported(facts, both, reporter, self._result_file)
