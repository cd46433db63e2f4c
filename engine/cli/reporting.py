"""Implements `--report-to` of every command that measures: its options, and the reporting of its run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import rich_click as click
from rich_click import RichOption

from .. import __version__
from ..errors import SpecError
from ..facts.provenance.parse import Facts
from ..facts.provenance.read import run_facts
from ..facts.result_file import Document, write_result
from ..machine.execution import Emit
from ..program import PROGRAM
from ..report.address import Address, address_of
from ..report.files import folder_of
from ..report.http import Portal
from ..report.reporter import Reporter, refusal_of
from .command import ADVANCED, OUTPUT, flag, option
from .options import (
    config_options,
    device_arguments,
    model_argument,
    output_options,
    setting_options,
    spec_option,
)
from .printing.output import print_json
from .printing.stopped import ANSWERED, stored_by_then

R = TypeVar("R", bound=Document)
CHECK_SECONDS = 3.0
"""How long a run waits for what a portal says of its token."""


class Spec(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Reported:
    started_as: Facts
    emit: Emit
    reporter: Reporter | None = None
    result_file: Path | None = None
    kept: list[Path] = field(default_factory=list)
    """The files of this command's results, those of earlier runs included."""

    def keep(self, exit_status: int, result: Document) -> None:
        if self.reporter is not None and (path := self.reporter.keep(exit_status, result)) is not None:
            self.kept.append(path)
        if self.result_file is not None:
            write_result(self.result_file, exit_status, result)
            self.kept.append(self.result_file)

    @contextmanager
    def shown(
        self, options: SimpleNamespace, show: Callable[[R], object], status_of: Callable[[R], int] = lambda _: 0
    ) -> Iterator[Callable[[R], None]]:
        """Yield what stores the result, and print it at the end, also after a stop while speeds were compared.

        It is printed as JSON where `options` say so, and by `show` unless the events have it.
        """
        results: list[R] = []

        def keep(result: R) -> None:
            results.append(result)
            self.keep(status_of(result), result)

        try:
            yield keep
        except BaseException as stopped:
            if results:
                stopped.add_note(ANSWERED)
            raise
        finally:
            for result in results:
                if options.json:
                    print_json(result.to_dict())
                elif not options.events:
                    show(result)


def run_params(spec_class: type, *more: click.Parameter) -> list[click.Parameter]:
    """Return the parameters of a command that runs a model of the catalogue."""
    return [
        model_argument(),
        *config_options(),
        *device_arguments(),
        *setting_options(spec_class),
        *more,
        *output_options(),
        *report_options(),
        spec_option(),
    ]


def report_options() -> list[RichOption]:
    to = "Report the run to this portal; MEMORYMARK_TOKEN holds the token"
    return [
        option("--report-to", panel=OUTPUT, metavar="URL", help=to, default_text="$MEMORYMARK_REPORT_TO"),
        option(
            "--runs-dir",
            type=click.Path(path_type=Path),
            panel=ADVANCED,
            metavar="FOLDER",
            help="Where a reported run is stored",
            default_text="memorymark-runs",
        ),
    ]


def report_output_option() -> RichOption:
    said = "Also report the message and the last lines of an error of the script, and its log's path"
    return flag("--report-output", panel=OUTPUT, help=said)


class Reporting:
    """The portal that receives the runs of one command, if any. Takes the token, so no later process inherits it."""

    def __init__(
        self,
        report_to: str | None,
        *,
        runs_dir: Path | None = None,
        result_file: Path | None = None,
        sends_output: bool = False,
    ) -> None:
        self._sends_output = sends_output
        self._address = address_of(report_to, os.environ)
        self._folder = folder_of(runs_dir, os.environ)
        self._result_file = result_file
        self._kept: list[Path] = []

    @classmethod
    def of(cls, options: SimpleNamespace) -> Reporting:
        sends_output, file = getattr(options, "report_output", False), getattr(options, "result_file", None)
        return cls(options.report_to, runs_dir=options.runs_dir, result_file=file, sends_output=sends_output)

    @property
    def notice(self) -> str:
        """The notice of where runs are reported, because the environment may decide that; empty if nowhere."""
        return "" if self._address is None else f"reported to {self._address.url}; its files are in {self._folder}"

    @property
    def is_wanted(self) -> bool:
        return self._address is not None

    @contextmanager
    def run(self, kind: str, spec: Spec, emit: Emit) -> Iterator[Reported]:
        """Report the run of this context: store its events, pass them to `emit`; a stop notes what is stored.

        Raises SpecError where the portal refuses the token; one that is away stops no run.
        """
        facts, address = run_facts(), self._address
        if address is not None and address.token is not None:
            refusal = refusal_of(Portal(address, timeout_seconds=CHECK_SECONDS))
            if refusal is not None:
                raise SpecError("token", f"{address.url} {refusal}")
        try:
            with nullcontext() if address is None else self._reporter(address, kind, spec, facts) as reporter:

                def both(event: dict[str, Any]) -> None:
                    if reporter is not None:
                        reporter.emit(event)
                    emit(event)

                yield Reported(facts, both, reporter, self._result_file, self._kept)
        except (KeyboardInterrupt, SystemExit) as stopped:
            if self._kept:
                stopped.add_note(stored_by_then(self._kept))
            raise

    def send_ended(self, kind: str, spec: Spec, started_as: Facts, exit_status: int, result: Document) -> None:
        """Report a run that is over: neither the portal nor a signal meanwhile changes how the command ends."""
        assert self._address is not None
        with suppress(KeyboardInterrupt, SystemExit), self._reporter(self._address, kind, spec, started_as) as reporter:
            reporter.keep(exit_status, result)

    def _reporter(self, address: Address, kind: str, spec: Spec, facts: Facts) -> Reporter:
        own = {"run_key": facts["run_key"], "host": facts["host"], "engine_version": __version__}
        sync = shlex.join([*PROGRAM.split(), "sync", str(self._folder), "--report-to", address.url])
        announcement = {**own, "kind": kind, "spec": spec.to_dict()}
        return Reporter(address, self._folder, announcement, sync_command=sync, sends_output=self._sends_output)
