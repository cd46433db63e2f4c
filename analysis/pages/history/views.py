"""Views of the history: the page, its exports, saved views, and bulk actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from analysis.accounts.middleware import for_readers
from analysis.accounts.rate_limit import EXPORT, RateLimited, check_rate_limit
from analysis.audit.record import record
from analysis.http.errors import error_page, wants_json
from analysis.http.page_requests import portal_address
from analysis.http.query_string import BadQuery, is_row_id, without_empty
from analysis.lists.runs.actions import ACTIONS
from analysis.lists.runs.columns import Column
from analysis.lists.runs.export import run_file
from analysis.lists.runs.filters import RunFilter
from analysis.lists.runs.query import COUNTED_MAX, HistoryFilter, parse_query
from analysis.models import Run, SavedView, Tag
from analysis.models.keyset import Page
from analysis.pages.run_table import filled_columns, has_line, lines, with_columns
from analysis.permissions import OPERATOR, lacks_role, may_start, signed_in_user
from analysis.presentation.run_rows import history_rows
from analysis.runs import services
from analysis.runs.queue.forecast import queue_positions

PAGE_SIZE = 50
TAGS_OFFERED = 200
RUNS_AT_ONCE = 500
COMPARE = "compare"


@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    given = without_empty(request.GET)
    if given != request.GET:
        return redirect(_address(given.urlencode(safe=",:/")))
    wanted = parse_query(request.GET)
    problems = wanted.problems
    page: Page[Run] = Page([])
    groups: dict[str, Any] = {}
    if wanted.group_by and not problems:
        groups = _groups(wanted)
    elif not problems:
        try:
            page = wanted.page(PAGE_SIZE, **wanted.place)
        except BadQuery as error:
            problems = error.problems
    context = _context(request, wanted, page) | groups | {"problems": problems}
    return render(request, "analysis/history.html", context, status=400 if problems else 200)


@require_safe
def run_export(request: HttpRequest, form: str) -> HttpResponseBase:
    wanted = parse_query(without_empty(request.GET))
    if wanted.problems:
        return _plain("\n".join(map(str, wanted.problems)), 400)
    try:
        check_rate_limit(EXPORT, signed_in_user(request))
    except RateLimited as error:
        response = _plain(str(error), 429) if wants_json(request) else error_page(429, "Too many requests", str(error))
        response.headers["Retry-After"] = str(error.retry_after_seconds)
        return response
    record("run.export", target=("run", ""), after={"form": form, "query": wanted.filter_query})
    return run_file(form, (part.rows for part in wanted.parts))


@require_POST
def run_annotate(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    run = get_object_or_404(Run.objects.only("pk"), pk=run_id)
    tags = request.POST.get("tags", "").replace(",", " ").split()
    name, note = (request.POST.get(field, "") for field in ("name", "note"))
    try:
        answer = services.run_annotate(run_id=run.pk, by=signed_in_user(request), name=name, note=note, tags=tags)
        if answer.done:
            messages.success(request, "Name, tags and note are saved.")
        else:
            messages.error(
                request, "Only the person who started a run, or a GPU manager, may change its name, note and tags."
            )
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return redirect(run)


@for_readers
@require_POST
def runs_change(request: HttpRequest) -> HttpResponseRedirect:
    """Apply a bulk action to the ticked runs, and report the counts. Comparing needs only the right to read."""
    ids = [int(word) for word in request.POST.getlist("run")[:RUNS_AT_ONCE] if is_row_id(word)]
    if request.POST.get("action") == COMPARE and ids:
        return redirect(f"{reverse('analysis:compare')}?ids={','.join(map(str, ids))}")
    if not may_start(request.user):
        raise PermissionDenied(lacks_role(OPERATOR))
    action = ACTIONS.get(request.POST.get("action", ""))
    back = redirect(_address(QueryDict(request.POST.get("view", "")).urlencode(safe=",:/")))
    if action is None or not ids:
        messages.error(request, "Nothing was done: tick the runs and choose an action.")
        return back
    try:
        tag = {"tag": request.POST.get("tag", "").strip().lower()} if action.takes_tag else {}
        answer = action.do(run_ids=set(ids), by=request.user, **tag)
        add_message = messages.success if answer.done else messages.error
        add_message(request, action.describe(answer))
    except ValidationError as error:
        messages.error(request, f"Nothing was done: {' '.join(error.messages)}")
    return back


@require_POST
def view_save(request: HttpRequest) -> HttpResponseRedirect:
    given = without_empty(QueryDict(request.POST.get("view", "")))
    query = parse_query(given).query()
    name, is_shared = request.POST.get("name", ""), bool(request.POST.get("shared"))
    try:
        view = services.saved_view_set(owner=signed_in_user(request), name=name, query=query, is_shared=is_shared)
        reason = "" if view else "it needs a name, and a person can have at most a hundred views"
    except ValidationError as error:
        reason = f"its name {' '.join(error.messages)}"
    if reason:
        messages.error(request, f"The view was not saved: {reason}.")
    return redirect(_address(query))


@require_POST
def view_delete(request: HttpRequest, view_id: int) -> HttpResponseRedirect:
    if not services.saved_view_delete(view_id=view_id, by=signed_in_user(request)):
        messages.error(request, "The view was not deleted: it is another person’s, or deleted already.")
    return redirect("analysis:runs")


def _context(request: HttpRequest, wanted: HistoryFilter, page: Page[Run]) -> dict[str, Any]:
    are_deleted = bool(wanted.form.given.get("deleted"))
    return {
        "history": wanted,
        "form": wanted.form,
        "page": page,
        "table": _table(wanted, page.rows),
        "is_first_page": not any(wanted.place.values()),
        "charted": [run.pk for run in page.rows if has_line(run)],
        "older": wanted.query(after=page.following) if page.following else None,
        "count": wanted.count if page.following or page.preceding else None,
        "counted_max": COUNTED_MAX,
        "newer": wanted.query(before=page.preceding) if page.preceding else None,
        "first": wanted.query(),
        "views": SavedView.objects.filter(Q(owner=request.user) | Q(is_shared=True)).select_related("owner"),
        "tags": Tag.objects.values_list("name", flat=True)[:TAGS_OFFERED],
        "more_fields": [wanted.form[name] for name in RunFilter.base_filters if name not in RunFilter.MAIN],
        "actions": [(key, action) for key, action in ACTIONS.items() if action.is_for_deleted == are_deleted],
        "portal_address": portal_address(request),
    }


def _groups(wanted: HistoryFilter) -> dict[str, Any]:
    groups, page = wanted.groups()
    table = _table(wanted, list({run.pk: run for group in groups for run in group.shown}.values()))
    shown = {line["run"].pk: line for line in table["lines"]}
    table["groups"] = [
        {
            "group": group,
            "lines": [shown[run.pk] for run in group.shown],
            "all": wanted.query(group_by=None, **group.filters) if group.filters else None,
        }
        for group in groups
    ]
    return {"table": table, "grouped_count": len(page.rows), "are_all_grouped": page.following is None}


def _table(wanted: HistoryFilter, runs: Sequence[Run]) -> dict[str, Any]:
    shown, columns = lines(history_rows(runs, queue_positions(runs)), wanted.columns, tells_names=True), wanted.columns
    if wanted.has_usual_columns:
        filled = filled_columns(shown, columns)
        columns = tuple(column for column in columns if column in filled or column is wanted.sort.column)
    return {"heads": _heads(wanted, columns), "lines": with_columns(shown, columns)}


def _heads(wanted: HistoryFilter, columns: Iterable[Column]) -> list[dict[str, Any]]:
    ways = {True: "descending", False: "ascending"}
    return [
        {
            "column": column,
            "sorted": ways[wanted.sort.is_reversed] if wanted.sort.column is column else "",
            "query": wanted.query_sorted_by(column) if column.order else None,
        }
        for column in columns
    ]


def _plain(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")


def _address(query: str) -> str:
    return reverse("analysis:runs") + (f"?{query}" if query else "")
