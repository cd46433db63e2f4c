"""An event in words and figures, without people's names and notes: the body of a webhook, Slack's, or a mail."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from django.conf import settings
from django.urls import reverse

from analysis.models import Channel, NewsEvent, NewsKind, Run, State
from analysis.models.news import ENDS_OF_RUNS
from analysis.presentation.kinds import presentation_of, run_place
from analysis.presentation.labels import model_name
from analysis.presentation.origin import NOT_VERIFIED, UNKNOWN, Origin
from analysis.presentation.run_state import ending
from engine.facts.figure_kinds import DERIVED, ESTIMATED, MEASURED
from engine.text.printable import printable

logger = logging.getLogger(__name__)

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors of reading a result that another version of the engine wrote: the news is true without its words."""
_BOUNDS = {"speedup": "claimed_speedup", "saving_per_year_usd": "claimed_saving_per_year_usd"}
"""Figures with an interval, each with what is claimed of it where no single figure is: its lower bound."""
_FIGURES = {
    "largest_batch_size": MEASURED,
    "recommended_batch_size": MEASURED,
    "recommended_samples_per_second": MEASURED,
    "recommended_memory_bytes": MEASURED,
    "speedup": MEASURED,
    "saving_per_year_usd": DERIVED,
    "estimated_largest_batch_size": ESTIMATED,
    "estimated_safe_batch_size": ESTIMATED,
}
Figures = dict[str, dict[str, Any]]
TEXT_MOST = 1_000
_LOOKALIKES = str.maketrans({"*": "∗", "`": "ˋ", "~": "∼", "[": "［", "]": "］", "|": "｜"})
_EDGE = re.compile(r"(?<!\w)_|_(?!\w)")


def body_of(event: NewsEvent, run: Run | None) -> dict[str, Any]:
    """Return the body; what this lab does not trust says so in the verdict and beside each figure."""
    end = State(event.kind.removeprefix("run.")) if run and event.kind in ENDS_OF_RUNS else None
    origin = Origin.of(run).unnamed if run else None
    verdict = describe_end(run, end) if run and end else str(event.details.get("verdict", ""))
    figures = figures_of(run) if run and end == State.FINISHED else event.details.get("figures", {})
    members = origin.members if origin else UNKNOWN
    return {
        "event": event.kind,
        "at": event.created_at.isoformat(),
        "run": run.pk if run else None,
        "link": link_of(event, run),
        **members,
        "verdict": one_line(f"{origin.opening if origin else ''}{verdict}"),
        "figures": {name: {**figure, "is_trusted": members["is_trusted"]} for name, figure in figures.items()},
    }


def link_of(event: NewsEvent, run: Run | None) -> str:
    """Return the page of the event. Without MEMORYMARK_PUBLIC_URL it is a path: the sender serves no request."""
    if run is not None:
        return f"{settings.PUBLIC_URL}{run.get_absolute_url()}"
    is_of_fleet = event.kind in (NewsKind.SILENT, NewsKind.WEEK)
    return settings.PUBLIC_URL + reverse("analysis:fleet" if is_of_fleet else "notifications")


def describe_end(run: Run, end: State) -> str:
    """Return the verdict of the run's page, but no error's text, which may hold paths; the run may go on since."""
    try:
        if end == State.FINISHED:
            return presentation_of(run).answer(run)
        title, _ = ending(run, end)
        return title
    except UNREADABLE:
        logger.exception("the end of run %s cannot be put into words", run.pk)
        return f"{model_name(run.model)} on {run_place(run)}: {end.label.lower()}."


def figures_of(run: Run) -> Figures:
    figures: Figures = {}
    for name, kind in _FIGURES.items():
        value = getattr(run, name)
        shown = getattr(run, _BOUNDS[name]) if value is None and name in _BOUNDS else value
        if shown is not None:
            ends = {end: getattr(run, f"{name}_{end}") for end in ("low", "high")} if name in _BOUNDS else {}
            bound = {"is_lower_bound": value is None} if name in _BOUNDS else {}
            figures[name] = {"value": shown, **ends, **bound, "kind": kind}
    return figures


def encoded(channel: str, delivery_id: str, body: dict[str, Any]) -> bytes:
    """Return the bytes of a request: what is signed is what is sent."""
    content = {"text": slack_text(body)} if channel == Channel.SLACK else {"delivery": delivery_id, **body}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def slack_text(body: dict[str, Any]) -> str:
    """Write the verdict with a link, in Slack's markup; Mattermost and others read it too."""
    page = f"Run {body['run']}" if body["run"] else "MemoryMark"
    return f"{mrkdwn(body['verdict'])} <{body['link']}|{page}>"


def mail_text(body: dict[str, Any]) -> str:
    lines = [mail_line(body["verdict"]), "", body["link"], ""]
    for name, figure in body["figures"].items():
        ends = f" ({figure['low']:g} to {figure['high']:g})" if figure.get("low") is not None else ""
        doubt = f", {NOT_VERIFIED}" if figure.get("is_trusted") is False else ""
        least = "at least " if figure.get("is_lower_bound") else ""
        lines.append(f"{name}: {least}{figure['value']}{ends}, {figure['kind']}{doubt}")
    return "\n".join([*lines, "", "You receive this because of your settings under Account, Notifications."])


# text of others in each medium: a reporter names runs, devices and hosts, and their names are no markup


def one_line(text: str) -> str:
    return printable(" ".join(text.split()), TEXT_MOST)


def mail_line(text: str) -> str:
    """Return a line for a plain text mail or its subject: nothing with :// or www. in it becomes a link."""
    return one_line(text).replace("://", "[:]//").replace("www.", "www[.]")


def mrkdwn(text: str) -> str:
    """Return text for Slack and what reads its format, which have no escape for markup: signs that look alike."""
    shown = _EDGE.sub("＿", one_line(text).translate(_LOOKALIKES))
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("://", "[:]//").replace("www.", "www[.]")
