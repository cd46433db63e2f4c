"""A run that is reported: stored in its folder first, then sent to a real server on loopback, whatever that does."""

import json
import shutil
import ssl
import stat
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.errors import SpecError, WorkloadFailed
from engine.report import protocol, reporter
from engine.report.address import Address, address_of, token_put_back
from engine.report.files import EventReader
from engine.report.reporter import Reporter
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal, serving

KEY = "ab" * 16
ANNOUNCEMENT = {
    "run_key": KEY,
    "kind": "measurement",
    "host": "node7",
    "spec": {"model": "bert"},
    "engine_version": "1",
}


class Result:
    def to_dict(self) -> dict[str, Any]:
        return {"spec": {}, "device": {}, "environment": {"run_key": KEY}}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LIVE_SECONDS", 0.02)
    monkeypatch.setattr(reporter, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(reporter, "_PAUSE_AT_END_SECONDS", 0.02)


def reporting(url: str, folder: Path, token: str | None = TOKEN) -> Reporter:
    return Reporter(Address(url, token), folder, ANNOUNCEMENT, sync_command="memorymark sync runs")


def log(number: int) -> dict[str, Any]:
    return {"event": "log", "seconds": float(number), "level": "info", "message": f"line {number}"}


def report(run: Reporter, count: int = 3) -> None:
    """Carry out a run that says this number of lines and has a result."""
    with run:
        for number in range(count):
            run.emit(log(number))
        run.keep(0, Result())


def test_run_arrives_whole_and_its_result_is_the_file(portal: LoopbackPortal, tmp_path: Path, capsys) -> None:
    report(reporting(portal.url, tmp_path / "runs"), count=1_200)
    assert portal.announced[KEY] == ANNOUNCEMENT
    assert portal.events[KEY] == [log(number) for number in range(1_200)]
    assert list(portal.results.values()) == [(tmp_path / "runs" / f"{KEY}.json").read_bytes()]
    assert capsys.readouterr().err == f"reported: {portal.url}/runs/812/\n"


def test_events_arrive_while_the_run_goes_on(portal: LoopbackPortal, tmp_path: Path) -> None:
    with reporting(portal.url, tmp_path) as run:
        for number in range(3):
            run.emit(log(number))
            assert _comes(lambda: portal.events.get(KEY) == [log(n) for n in range(number + 1)])  # noqa: B023


def test_result_goes_only_as_the_document_of_its_file(portal: LoopbackPortal, tmp_path: Path) -> None:
    with reporting(portal.url, tmp_path) as run:
        run.emit({"event": "result", "seconds": 1.0, "result": {}})
    assert portal.events[KEY] == []
    assert (portal.results, (tmp_path / f"{KEY}.json").exists()) == ({}, False)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("garbage", "answered with 200, but not as a portal does"),
        ("die", "answered with 200, but not as a portal does"),
        ((401, {"detail": "Not signed in."}), "refused with 401: Not signed in."),
        ((403, {"detail": "This token may only read."}), "refused with 403: This token may only read."),
        ((413, {"detail": "Too large."}), "refused with 413: Too large."),
        ((422, {"detail": "Not so."}), "refused with 422: Not so."),
        ((429, {"detail": "Slowly."}), "answered with 429: Slowly."),
        ((500, {}), "answered with 500"),
        ((308, {"to": "http://other.example.org/"}), "it redirects to http://other.example.org/: name that address"),
    ],
)
def test_portal_that_does_not_take_it_changes_nothing(portal, tmp_path: Path, capsys, fault: Any, reason: str) -> None:
    portal.fault = lambda _path, _number: fault
    report(reporting(portal.url, tmp_path))
    said = capsys.readouterr().err
    assert said.startswith(f"kept in {tmp_path}: `memorymark sync runs` sends it later (")
    assert said.count("\n") == 1
    assert reason in said
    assert json.loads((tmp_path / f"{KEY}.json").read_bytes())["exit_status"] == 0


def test_portal_that_hangs_holds_the_end_up_for_a_bounded_time_alone(
    portal, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(reporter, "END_SECONDS", 0.3)
    portal.fault = lambda _path, _number: "hang"
    ended = threading.Event()
    watch = threading.Thread(target=lambda: (report(reporting(portal.url, tmp_path)), ended.set()))
    watch.start()
    assert ended.wait(8), "the end waited for the portal's answer"
    assert "(the portal is slow)" in capsys.readouterr().err


def test_nobody_listens_and_nothing_is_lost(tmp_path: Path, capsys) -> None:
    with serving(LoopbackPortal()) as gone:
        url = gone.url
    report(reporting(url, tmp_path))
    assert "not reachable: " in capsys.readouterr().err
    with closing(EventReader(tmp_path / f"{KEY}.events.jsonl")) as reader:
        assert reader.count() == 3


def test_portal_that_comes_back_gets_what_it_missed(portal: LoopbackPortal, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(protocol, "BACK_OFF_MOST", 0.02)
    portal.fault = lambda _path, number: (503, {}) if 2 <= number < 6 else None
    with reporting(portal.url, tmp_path) as run:
        for number in range(20):
            run.emit(log(number))
            assert _comes(lambda: len(portal.calls) > number / 2)  # noqa: B023
    assert portal.events[KEY] == [log(number) for number in range(20)]


def test_failed_run_ends_with_its_error(portal: LoopbackPortal, tmp_path: Path) -> None:
    with pytest.raises(WorkloadFailed), reporting(portal.url, tmp_path):
        raise WorkloadFailed("a training step failed")
    [event] = portal.events[KEY]
    assert event["error"] == WorkloadFailed("a training step failed").to_dict()


@pytest.mark.parametrize(
    ("ended_by", "said"),
    [
        (KeyboardInterrupt(), "stopped by Ctrl-C"),
        (SystemExit(143), "stopped by SIGTERM"),
        (BrokenPipeError(), "nobody read its output"),
        (SystemExit(1), "by SystemExit"),
    ],
)
def test_stopped_run_ends_at_once_and_is_not_called_failed(
    portal: LoopbackPortal, tmp_path: Path, ended_by: BaseException, said: str, capsys
) -> None:
    def stopped() -> None:
        with reporting(portal.url, tmp_path) as run:
            run.emit(log(0))
            raise ended_by

    with pytest.raises(type(ended_by)):
        stopped()
    first, last = portal.events[KEY]
    assert (first, last["event"], last["error"]["code"]) == (log(0), "error", "stopped")
    assert said in last["error"]["message"]
    assert capsys.readouterr().err == f"reported: {portal.url}/runs/812/\n"


def test_run_that_is_stopped_behind_its_result_ends_with_its_result(portal: LoopbackPortal, tmp_path: Path) -> None:
    def stopped() -> None:
        with reporting(portal.url, tmp_path) as run:
            run.emit(log(0))
            run.keep(0, Result())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert (portal.events[KEY], len(portal.results)) == ([log(0)], 1)


def test_stop_that_the_portal_does_not_hear_is_in_the_file_for_sync(tmp_path: Path) -> None:
    with serving(LoopbackPortal()) as gone:
        url = gone.url
    with pytest.raises(KeyboardInterrupt), reporting(url, tmp_path):
        raise KeyboardInterrupt
    with closing(EventReader(tmp_path / f"{KEY}.events.jsonl")) as reader:
        assert reader.is_failed()


def test_cancel_in_the_portal_ends_the_run_as_ctrl_c_does(portal: LoopbackPortal, tmp_path: Path, capsys) -> None:
    portal.cancels = True

    def run_on() -> None:
        with reporting(portal.url, tmp_path) as run:
            for number in range(2_000):
                run.emit(log(number))
                threading.Event().wait(0.005)

    with pytest.raises(KeyboardInterrupt):
        run_on()
    assert capsys.readouterr().err.startswith("cancelled in the portal\n")
    assert portal.events[KEY][-1]["error"]["code"] == "cancelled"


def test_files_are_for_their_owner_alone(portal: LoopbackPortal, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    report(reporting(portal.url, folder))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes == {"runs": 0o700, f"{KEY}.json": 0o600, f"{KEY}.events.jsonl": 0o600}


def test_token_is_in_no_file_and_no_message(portal: LoopbackPortal, tmp_path: Path, capsys) -> None:
    portal.fault = lambda _path, _number: (403, {"detail": f"{TOKEN} may not"})
    report(reporting(portal.url, tmp_path))
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert TOKEN.encode() not in written
    assert TOKEN not in capsys.readouterr().err
    assert TOKEN not in repr(Address(portal.url, TOKEN))


def test_redirect_is_not_followed(portal: LoopbackPortal, tmp_path: Path) -> None:
    with serving(LoopbackPortal()) as other:
        portal.fault = lambda path, _number: (307, {"to": f"{other.url}{path}"})
        report(reporting(portal.url, tmp_path))
        assert (len(portal.headers) > 0, other.headers) == (True, [])


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_certificate_that_nobody_vouches_for_gets_no_token(portal: LoopbackPortal, tmp_path: Path, capsys) -> None:
    own = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2")
    make = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", *own)
    subprocess.run([*make, "-keyout", "key.pem", "-out", "own.pem"], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem", tmp_path / "key.pem")
    with serving(LoopbackPortal(), context=context) as other:
        report(reporting(other.url.replace("http://127.0.0.1", "https://localhost"), tmp_path / "runs"))
        assert other.headers == []
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().err


def test_without_a_token_nothing_is_sent_and_all_is_stored(portal: LoopbackPortal, tmp_path: Path, capsys) -> None:
    report(reporting(portal.url, tmp_path, token=None))
    assert portal.calls == []
    assert "(MEMORYMARK_TOKEN is not set)" in capsys.readouterr().err
    assert len(list(tmp_path.iterdir())) == 2


def test_folder_that_cannot_be_written_does_not_stop_the_run(portal: LoopbackPortal, tmp_path: Path, capsys) -> None:
    (tmp_path / "runs").write_text("a file is in its place")
    report(reporting(portal.url, tmp_path / "runs"))
    assert capsys.readouterr().err.startswith("not reported: ")
    assert portal.calls == []


def test_standard_error_that_nobody_reads_changes_nothing(portal: LoopbackPortal, tmp_path: Path, monkeypatch) -> None:
    class Closed:
        def write(self, _text: str) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(reporter.sys, "stderr", Closed())
    report(reporting(portal.url, tmp_path))
    assert len(portal.results) == 1


@pytest.mark.parametrize(("given", "url"), [(None, "https://lab"), ("", None), ("https://other/", "https://other")])
def test_what_is_given_decides_and_only_without_it_the_environment(given: str | None, url: str | None) -> None:
    address = address_of(given, {"MEMORYMARK_REPORT_TO": "https://lab/"})
    assert (address and address.url) == url


def test_token_is_put_back_for_what_the_program_does_next() -> None:
    environ = {"MEMORYMARK_TOKEN": TOKEN}
    with token_put_back(environ):
        assert address_of("https://lab/", environ) == Address("https://lab", TOKEN)
        assert environ == {}
    assert environ == {"MEMORYMARK_TOKEN": TOKEN}
    with token_put_back(nothing := {}):
        pass
    assert nothing == {}


def test_token_is_taken_out_of_the_environment() -> None:
    environ = {"MEMORYMARK_TOKEN": f" {TOKEN}\n", "MEMORYMARK_REPORT_TO": "https://lab.example.org/mm/"}
    address = address_of(None, environ)
    assert (address.url, address.token) == ("https://lab.example.org/mm", TOKEN)
    assert "MEMORYMARK_TOKEN" not in environ


@pytest.mark.parametrize(
    "url",
    [
        *("lab", "ftp://lab/", "file:///etc/passwd", "https://", "https://lab:99999/", "https://a b/"),
        *("https://ann:secret@lab/", "https://lab/?token=secret", "https://lab/\r\nX: y"),
    ],
)
def test_what_is_no_portals_address_is_refused_before_anything_is_measured(url: str) -> None:
    with pytest.raises(SpecError) as error:
        address_of(url, {})
    assert error.value.field == "report_to"
    assert "secret" not in str(error.value)


def test_token_that_would_break_the_request_is_refused_without_its_text() -> None:
    with pytest.raises(SpecError, match="holds characters that no token has") as error:
        address_of("https://lab/", {"MEMORYMARK_TOKEN": "mm_w_x\r\nX-Admin: 1"})
    assert "mm_w" not in str(error.value)


def test_event_too_large_for_a_call_is_named_in_its_place(portal: LoopbackPortal, tmp_path: Path) -> None:
    with reporting(portal.url, tmp_path) as run:
        run.emit(log(0))
        run.emit({**log(1), "message": "x" * 1_000_000})
        run.emit(log(2))
    assert [each["message"][:40] for each in portal.events[KEY]] == [
        "line 0",
        "an event of 1000064 bytes is left out he",
        "line 2",
    ]


def test_probes_that_wait_for_a_portal_go_in_calls_of_as_many_as_it_takes(
    portal: LoopbackPortal, tmp_path: Path
) -> None:
    """A portal takes 50 in a call; a run that is resumed begins with all that an earlier one measured."""
    events = [{"event": "probe", "probe": {"batch_size": size}} if size % 3 else log(size) for size in range(400)]
    portal.fault = lambda _path, number: (503, {}) if number < 3 else None
    with reporting(portal.url, tmp_path) as run:
        for event in events:
            run.emit(event)
        assert _comes(lambda: portal.events.get(KEY) == events)
    assert 413 not in {status for _, status in portal.calls}


def _comes(is_there: Any) -> bool:
    """Wait until something is there; False where it does not come."""
    for _ in range(1_000):
        if is_there():
            return True
        threading.Event().wait(0.01)
    return False


def test_the_token_may_be_in_a_file_which_the_variable_with_the_token_overrules(tmp_path: Path) -> None:
    (path := tmp_path / "token").write_text(f"{TOKEN}\n")
    environ = {"MEMORYMARK_TOKEN_FILE": str(path)}
    assert address_of("https://lab/", environ) == Address("https://lab", TOKEN)
    assert address_of("https://lab/", {**environ, "MEMORYMARK_TOKEN": "mm_w_a"}) == Address("https://lab", "mm_w_a")
    for wrong in (tmp_path / "none", tmp_path):
        with pytest.raises(SpecError, match="token: MEMORYMARK_TOKEN_FILE: .* cannot be read"):
            address_of("https://lab/", {"MEMORYMARK_TOKEN_FILE": str(wrong)})
