"""Runs that a sender on another machine executes: begun, heard from, and finished by its result.

Every call may be repeated. The row of the report is locked first, so that of two calls for one run the second sees what
the first stored; the run key and the digest of the document, unique for a person, decide between two that begin one.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from analysis.audit.record import record
from analysis.models import ApiToken, Attempt, Device, Host, Measurement, Report, Run, State, published_kind
from analysis.models.report import ENGINE_VERSION_LENGTH
from analysis.models.text import storable_json, storable_text
from analysis.runs.columns.result_columns import probe_columns
from analysis.runs.columns.run_settings import run_settings_keep
from analysis.runs.columns.run_text import run_text_keep
from analysis.runs.device_admin import device_columns
from analysis.runs.kinds import rules_of, spec_columns
from analysis.runs.queue.finish import finish_locked
from analysis.runs.queue.outbox import note_goes_on
from analysis.runs.queue.progress import check_storable
from analysis.runs.reported.document import ReportedDocument
from analysis.runs.reported.trust import is_trusted
from engine.errors import SpecError
from engine.facts.result import DeviceFacts
from engine.questions.kinds import Spec, as_stored

_MODEL_LENGTH = Run._meta.get_field("model").max_length or 0


class Sender(NamedTuple):
    """Who reports: a person, the token they use (None: a password), and the host the sender names."""

    person: User
    token: ApiToken | None
    host: str


class NotYourReportError(Exception):
    """This person announced no run with the run key; whether another did is not said."""


class ReportConflictError(Exception):
    """The run already has another result, or is of another kind or model."""


def report_begin(*, sender: Sender, run_key: str, spec: Spec, engine_version: str) -> tuple[Run, bool]:
    """Store a running run of this sender. Also returns whether it is new: the same key gives the same run."""
    try:
        return _report_begin(sender, run_key, spec, engine_version)
    except IntegrityError:  # the run key is unique: a request with it was quicker
        return _report_begin(sender, run_key, spec, engine_version)


@transaction.atomic
def _report_begin(sender: Sender, run_key: str, spec: Spec, engine_version: str) -> tuple[Run, bool]:
    if (report := report_locked(run_key, sender.person)) is not None:
        return report.run, False
    return _begin(sender, run_key, spec, engine_version).run, True


def report_locked(run_key: str, person: User) -> Report | None:
    """Lock the report until the transaction ends, and read its run; None: this person announced no such run."""
    report = Report.objects.select_for_update().filter(reported_by=person, run_key=run_key).first()
    if report is not None:
        report.run = Run.all_runs.with_places().defer("result").get(pk=report.run_id)
    return report


def report_revive(run: Run, *, is_news: bool) -> None:
    """Move interrupted -> running, as the sender is heard again; `is_news`: another interruption is news again."""
    if run.state != State.INTERRUPTED:
        return
    ended = {"finished_at": None, "error_code": "", "error_message": "", "exit_status": None}
    interrupted = Run.objects.filter(pk=run.pk, state=State.INTERRUPTED)
    if interrupted.update(state=State.RUNNING, heartbeat_at=Now(), suspect_at=None, **ended):
        run.attempts.update(ended_at=None, outcome="", cause="", message="", exit_status=None)
        if is_news:
            note_goes_on(run.pk)
        run.state = State.RUNNING


def report_device(run: Run, facts: DeviceFacts) -> Device:
    """Set a reported run's device: a row of its own, or a registered one, which a report never changes or holds."""
    device = _registered(run.reported_from, facts) or _reported_device(run.reported_from, facts)
    Run.objects.filter(pk=run.pk).update(device=device, device_name=device.name, requested_kind=device.kind)
    run.attempts.update(device=device)
    return device


def _registered(host: str, facts: DeviceFacts) -> Device | None:
    """Find the device by its UUID, which is the same whatever number a job sees it under, or else by its name."""
    address = {"uuid": facts.uuid} if facts.uuid else {"uuid": "", "device": facts.device}
    return Device.objects.on_host(host).filter(name=facts.name, **address).first()


def _reported_device(host_name: str, facts: DeviceFacts) -> Device:
    # locked: the housekeeping that removes hosts which nothing names waits, and then finds this device
    host, _ = Host.objects.select_for_update(no_key=True).get_or_create(name=host_name)
    device, _ = Device.all_devices.update_or_create(
        host=host,
        device=facts.device[:20],
        uuid=(facts.uuid or "")[:100],
        name=facts.name[:200],
        is_reported=True,
        defaults={**device_columns(facts), "enabled": False},
    )
    return device


def results_known(person: User, sha256s: Collection[str]) -> dict[str, Run]:
    sent = Run.all_runs.filter(report__reported_by=person, report__document_sha256__in=sha256s)
    runs = sent.select_related("report").defer("result")
    return {str(run.report.document_sha256): run for run in runs}


def result_store(*, sender: Sender, document: ReportedDocument, sha256: str) -> tuple[Run, bool]:
    """Finish the run of this document, or store a new one. Also returns whether the document was not known yet.

    Raises SpecError where a probe cannot be stored, and ReportConflictError where the run has another result.
    """
    for number, probe in enumerate(document.found.probes):
        try:
            check_storable(probe)
        except ValueError as exc:
            raise SpecError(f"probes[{number}]", str(exc)) from exc
    try:
        return _result_store(sender, document, sha256)
    except IntegrityError:  # another request with this run key or document was quicker
        return _result_store(sender, document, sha256)


@transaction.atomic
def _result_store(sender: Sender, document: ReportedDocument, sha256: str) -> tuple[Run, bool]:
    report = report_locked(document.run_key, sender.person)
    if report is None:
        if known := results_known(sender.person, [sha256]):
            return known[sha256], False
        version = str(document.environment.get("memorymark_revision") or "")
        report = _begin(sender, document.run_key, document.spec, version)
    if report.document_sha256 == sha256:
        return report.run, False
    _refuse_other(report, document, sha256)
    _finish(report, sender, document, sha256)
    return Run.all_runs.get(pk=report.run_id), True


def _finish(report: Report, sender: Sender, document: ReportedDocument, sha256: str) -> None:
    """Replace what the live run said by what the document says: its spec, device, probes and figures."""
    run = report.run
    columns = {
        **_columns(document.spec),
        **document.columns,
        "is_trusted": is_trusted(sender.token, document.host),
    }
    for name, value in columns.items():
        setattr(run, name, value)
    device = report_device(run, document.found.device)
    run_settings_keep(run=run)
    _probes_keep(run, document)
    result = as_stored(document.found)
    # by this server's clock alone: two different clocks would give a duration that never was
    started_at = Now() - timedelta(seconds=document.found.total_seconds)
    ended = {"started_at": started_at, "error_code": "", "error_message": "", "phase": "finished"}
    finish_locked(
        run,
        document.found,
        result,
        {**columns, **ended},
        rules_of(run).exit_status(document.found),  # what the file claims of it is not read
        started_at=started_at,
        device=device,
        cause="",
        message="",
        environment={name: result[name] for name in ("device", "environment", "estimate") if result.get(name)},
    )
    Report.objects.filter(pk=report.pk).update(
        document_sha256=sha256, started_at=document.started_at, token=sender.token
    )
    record("run.report_result", target=run, after={"sha256": sha256, "host": document.host})


def _begin(sender: Sender, run_key: str, spec: Spec, engine_version: str) -> Report:
    columns = _columns(spec)
    run = Run(
        **columns,
        requested_by=sender.person,
        requested_kind=columns["spec"]["device"].partition(":")[0][:10],
        reported_from=sender.host,
        is_trusted=is_trusted(sender.token, sender.host),
        uses_device_price=False,
        state=State.RUNNING,
        attempt=1,
        token=uuid4().hex,
        owner=sender.host,
        started_at=Now(),
        heartbeat_at=Now(),
    )
    run.save(force_insert=True)
    Attempt.objects.create(run=run, number=1, owner=sender.host, started_at=Now())
    version = engine_version[:ENGINE_VERSION_LENGTH]
    origin = {"reported_by": sender.person, "run_key": run_key, "token": sender.token}
    report = Report.objects.create(run=run, **origin, engine_version=version)
    run_text_keep(run_id=run.pk)
    run_settings_keep(run=run)
    record("run.report", target=run, after={"run_key": run_key, "host": sender.host, "token": str(sender.token or "")})
    return report


def _refuse_other(report: Report, document: ReportedDocument, sha256: str) -> None:
    if report.document_sha256 is not None:
        raise ReportConflictError(
            f"Run {report.run_id} of this run_key has another result: its SHA-256 is {report.document_sha256}, "
            f"that of this document is {sha256}."
        )
    run, claimed = report.run, _columns(document.spec)
    kind = published_kind(claimed["kind"])
    if (run.published_kind, run.model) != (kind, claimed["model"]):
        raise ReportConflictError(
            f"Run {run.pk} of this run_key is a {run.published_kind} of {run.model}, "
            f"this document is a {kind} of {claimed['model']}."
        )
    if run.deleted_at is not None:
        raise ReportConflictError(f"Run {run.pk} of this run_key was deleted: POST .../restore/ brings it back.")


def _columns(spec: Spec) -> dict[str, Any]:
    columns = spec_columns(spec)
    # the name of a script or of a function: one that is longer than the column keeps its end
    model = storable_text(columns["model"][-_MODEL_LENGTH:], _MODEL_LENGTH)
    return {**columns, "model": model, "spec": storable_json(columns["spec"])}


def _probes_keep(run: Run, document: ReportedDocument) -> None:
    """Store the document's probes for those that came singly; equal rows stay, as a run's stream sends each once."""
    missing = {sequence: probe_columns(probe) for sequence, probe in enumerate(document.found.probes, start=1)}
    other = []
    for row in Measurement.objects.of(run):
        columns = missing.get(row.sequence)
        if columns is not None and all(getattr(row, name) == value for name, value in columns.items()):
            del missing[row.sequence]
        else:
            other.append(row.pk)
    Measurement.objects.filter(pk__in=other).delete()
    Measurement.objects.bulk_create(
        Measurement(run=run, attempt=run.attempt, sequence=sequence, **columns) for sequence, columns in missing.items()
    )
