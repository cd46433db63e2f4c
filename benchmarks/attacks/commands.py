"""What the portal executes and shows of command lines: settings not offered (M8), secrets of others (M9)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attacks.portal import HOST, Attacked, Person, Row, decided, row
from benchmarks.report_faults import ROOT

SECRET = "WANDBSECRET123"
REGISTERED = f"""
[[command]]
name = "tagger"
command = ["python", "train.py", "--wandb-key", "{SECRET}", "{{batch_size}}"]
settings = ["current_batch_size"]
"""
NOT_OFFERED = {
    **{"time_budget_seconds": 21_000.0, "compare_speed": True, "whole_run": True},
    **{"soak_steps": 9_999, "max_batch_size": 1_048_576},
}
FORMS = (
    *("--wandb-key X", "--hf_key X", "--pwd X", "--user me -p X", "--auth X", "--key X", "--access-key X"),
    *("--login u:X", "--db postgres://u:X@h/d", "--api-key X", "--password=X", "--token X", "WANDB_API_KEY=X"),
)
"""The forms of the finding, `-p X` after a user: alone it is left."""
LEAKING = 'print("db password is {0}"); print("patient alice has 42"); raise SystemExit(1)\n'


def settings_not_offered(portal: Attacked) -> Iterator[Row]:
    from analysis.models import Device, Run
    from tests.factories import make_device
    from tests.factories.reports import make_run_key

    if not Device.objects.filter(device="cpu").exists():
        make_device()
    sender = portal.person()
    seen = sender.get("/api/v1/commands/").json()["results"][0]
    spec = {"command": seen["command"], "name": seen["name"], "device": "cpu", **NOT_OFFERED}
    run_id = sender.begin(key := make_run_key(), kind="command", spec=spec).json()["id"]
    sender.send_events(key, 0, {"event": "error", "error": {"code": "workload_failed", "message": "no"}})
    before = Run.objects.count()
    for action, body in (("retry", {}), ("clone", {}), ("clone", {"current_batch_size": 4})):
        answer = sender.post(f"/api/v1/runs/{run_id}/{action}/", body)
        held = answer.status == 409 and Run.objects.count() == before
        tried = f"a reported run takes the name of a registered command, then {action} {json.dumps(body)} (ran: 202)"
        yield row("M8", tried, "409, nothing queued", held, answer)
    answer = sender.post("/api/v1/commands/tagger/runs/", {"device": "cpu", **NOT_OFFERED})
    held = answer.status == 400 and Run.objects.count() == before
    yield row("M8", "the same settings in a direct request", "400, by the setting", held, answer)


def secrets_of_command_lines(portal: Attacked) -> Iterator[Row]:
    from tests.factories.reports import make_run_key

    sender, secret = portal.person(), "hunter2hunter2"
    passed = []
    for form in FORMS:
        command = ["python", "train.py", *form.replace("X", secret).split(), "{batch_size}"]
        spec = {"command": command, "batch": "template", "name": "train"}
        run_id = sender.begin(make_run_key(), kind="command", spec=spec).json()["id"]
        addresses = (f"/runs/{run_id}/", f"/api/v1/runs/{run_id}/", f"/runs/{run_id}/export.csv")
        texts = [stored_spec(run_id), *(portal.viewer.get(each).text for each in addresses)]
        passed += [form] * any(secret in text for text in texts)
    said = f"shown: {', '.join(passed) or 'none'}"
    tried = f"{len(FORMS)} usual forms of a secret in a reported command line (9 of 13 were shown)"
    yield row("M9", tried, "none is stored or shown, though the sender hid none", not passed, said)
    yield _short_option_alone(sender, secret)
    for address in ("/commands/", "/api/v1/commands/"):
        answer = portal.viewer.get(address)
        held = answer.status == 200 and SECRET not in answer.text and "wandb-key" in answer.text
        said = f"{answer.status}; {'the secret' if SECRET in answer.text else '***'} after --wandb-key"
        tried = f"a viewer opens {address}: the command is registered with --wandb-key {SECRET}"
        yield row("M9", tried, "***", held, said, seconds=answer.seconds)


def stored_spec(run_id: int) -> str:
    """Return the settings of a run as they are stored."""
    from analysis.models import Run

    return json.dumps(Run.objects.get(pk=run_id).spec)


def _short_option_alone(sender: Person, secret: str) -> Row:
    """Send `-p X`, which is a port, a path or a pattern more often than a password where no user is before it."""
    from tests.factories.reports import make_run_key

    command = ["python", "train.py", "-p", secret, "{batch_size}"]
    spec = {"command": command, "batch": "template", "name": "train"}
    answer = sender.begin(make_run_key(), kind="command", spec=spec)
    tried, expected = "`-p X` alone in a reported command line", "hidden after `--user me` or a client that is known"
    is_shown = secret in stored_spec(answer.json()["id"])
    said = f"{'shown' if is_shown else 'hidden'}; docs/tune.md, What is hidden: by place"
    return decided("M9", tried, expected, said, seconds=answer.seconds)


def output_of_scripts(portal: Attacked) -> Iterator[Row]:
    """Tune a script that prints a secret and fails; look for it in what was sent, and in the files that were kept."""
    from analysis.models import Run, RunLog

    secret = "hunter2hunter2"
    with tempfile.TemporaryDirectory(prefix="memorymark-leaking-") as name:
        folder, sender = Path(name), portal.person()
        (folder / "train.py").write_text(LEAKING.format(secret))
        done, seconds = tuned(folder, portal.url, sender.secret)
    run = Run.objects.get(report__reported_by=sender.user)
    log = "\n".join(RunLog.objects.filter(run=run).values_list("message", flat=True))
    pages = "".join(portal.viewer.get(each.format(run.pk)).text for each in ("/runs/{}/", "/api/v1/runs/{}/"))
    held = all(each not in log + pages for each in (secret, "alice")) and run.state == "failed"
    tried = "a tuned script prints a password and a name, and fails (its last lines were sent)"
    yield row("M9", tried, "neither is in the portal", held, run.error_message, seconds=seconds)
    shown = done.stdout + done.stderr
    held = secret not in shown and "alice" in shown
    said = "its last lines, with *** for the password" if held else shown[-300:]
    yield row("M9", "the same, on the terminal where it ran", "its last lines, without the password", held, said)


def tuned(folder: Path, url: str, token: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """Tune `train.py` of a folder, reported to the portal; also returns the seconds."""
    own = {"MEMORYMARK_TOKEN": token, "MEMORYMARK_REPORT_TO": url, "MEMORYMARK_HOST": HOST}
    own |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache"), **environment}
    command = [sys.executable, "-m", "engine", "tune", "--device", "cpu", "--memory-limit", "16MiB"]
    command += ["--no-compare-speed", "--", sys.executable, "train.py", "{batch_size}"]
    began, everything = time.monotonic(), {**os.environ, **own}
    done = subprocess.run(command, cwd=folder, env=everything, capture_output=True, text=True, timeout=400, check=False)
    return done, time.monotonic() - began


ATTACKS = (settings_not_offered, secrets_of_command_lines, output_of_scripts)
