"""Damaged documents and event streams of a trusted sender: which are refused, and whether a page of the others breaks.

    python benchmarks/damaged_reports.py --documents 300 --streams 30 --out /tmp/try.json     try it: a few minutes
    python benchmarks/damaged_reports.py

Each of the documents is damaged at one to three places drawn with a seed (`tests/security/damaged_reports.py`), and is
sent to a portal on a database of its own. Its sender is trusted, so that what is stored counts in lists, matrix, trends
and recommendations as well. Every page, picture, export and API call that shows a stored run is opened through Django's
test client, as a GPU manager, and by share links as nobody; lists after every twentieth. Right is: no answer of 500.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
OUT = ROOT / "benchmarks" / "results" / "damaged_reports.json"
AT_ONCE = 250
"""Documents or streams of one seed: the next ones have the next seed, and a line is printed."""
BROKEN_NAMED = 50

if TYPE_CHECKING:
    from tests.security.damaged_reports import Pages, Seen

Send = Callable[["Pages", int, int], None]


def start_django(folder: str) -> None:
    """Make a portal on SQLite, without limits on how often a person may do something."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "memorymark_site.settings",
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
        "MEMORYMARK_DATA_DIR": folder,
        "MEMORYMARK_LOCAL": "1",
        "PYTHONWARNINGS": "ignore",
    }
    import django

    django.setup()
    import logging

    from django.conf import settings
    from django.core.management import call_command
    from django.test.utils import setup_test_environment

    from memorymark_site.env import Rate

    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.THROTTLES = dict.fromkeys(settings.THROTTLES, Rate(10**9, 60.0))
    call_command("migrate", verbosity=0)
    setup_test_environment(debug=False)
    logging.disable(logging.WARNING)  # each refused document is one


def counted(send: Send, number: int, seed: int, pages_of: Callable[[Seen], Pages], what: str) -> dict[str, Any]:
    """Send so many, and return what came of them."""
    from tests.security.damaged_reports import Seen

    seen, began = Seen(), time.monotonic()
    for first in range(0, number, AT_ONCE):
        send(pages_of(seen), seed + first // AT_ONCE, min(AT_ONCE, number - first))
        print(f"{what}: {seen}; {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return {
        "sent": seen.sent,
        "stored": seen.stored,
        "answers": dict(sorted(seen.answers.items())),
        "answers_to_calls_with_events": dict(sorted(seen.calls.items())),
        "pages_opened": sum(seen.pages.values()),
        "answers_of_pages": dict(sorted(seen.pages.items())),
        "answers_of_500_and_more": len(seen.broken),
        "broken": seen.broken[:BROKEN_NAMED],
        "seconds": round(time.monotonic() - began),
    }


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Send all of them to one portal."""
    from analysis.models import Run
    from analysis.permissions import MANAGER
    from analysis.runs.reported.trust import trust_give
    from tests.factories import make_device, make_user
    from tests.factories.reports import SendingClient, make_reported_run
    from tests.security.damaged_reports import Pages, send_documents, send_streams

    manager = make_user("manager", MANAGER)
    sender = SendingClient(manager, raises_errors=False)
    trust_give(by=manager, token=sender.token)
    make_device(device="cpu")
    other = make_reported_run(manager)

    def documents(pages: Pages, seed: int, number: int) -> None:
        send_documents(sender, pages, seed, number)

    def streams(pages: Pages, seed: int, number: int) -> None:
        send_streams(sender, pages, seed, number)

    def pages_of(seen: Seen) -> Pages:
        return Pages(manager, other, seen)

    report = {
        "documents": counted(documents, options.documents, options.seed, pages_of, "documents"),
        "streams": counted(streams, options.streams, options.seed, pages_of, "streams"),
    }
    runs = Run.all_runs.exclude(pk=other.pk)
    return report | {"runs": runs.count(), "trusted_runs": runs.filter(is_trusted=True).count()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    machine |= {"load_average_before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(prefix="memorymark-damaged-") as folder:
        start_django(folder)
        report = measured(options)
    machine["load_average_after"] = round(os.getloadavg()[0], 1)
    command = shlex.join(["python", "benchmarks/damaged_reports.py", *sys.argv[1:]])
    report = {"command": command, "seed": options.seed, "database": "sqlite", "machine": machine, **report}
    text = json.dumps(report, indent=1)
    options.out.write_text(text + "\n")
    print(text)
    broken = sum(report[part]["answers_of_500_and_more"] for part in ("documents", "streams"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
