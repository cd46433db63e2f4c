"""The help page with its search, and the documents of docs/."""

from __future__ import annotations

from django.contrib.admin import site
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.accounts.middleware import login_required_only, may_be_public
from analysis.pages.help.documents import documents, documents_by_group, glossary
from analysis.pages.help.search import MAX_CHARACTERS, pages_named, search
from analysis.pages.kinds import BY_KIND
from analysis.permissions import may_manage

COLOURS = (
    ("go", "the action and the answer"),
    ("bad", "waste, out of memory"),
    ("info", "predicted"),
    ("warn", "needs a look"),
    ("neutral", "in use"),
    ("text", "text"),
    ("dim", "explanations"),
    ("card", "a part of the page"),
)
"""Tokens that the page of the design shows, and their uses."""


@may_be_public
@login_required_only
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    question = request.GET.get("q", "").strip()
    context = {
        "kinds": [(f"{kind}s", f"{kind.label}s", each.help_text) for kind, each in BY_KIND.items() if each.help_text],
        "sections": glossary(),
        "document_groups": documents_by_group(),
        "answer": search(question) if question else None,
        "admin_pages": pages_named(question, _admin_pages(request)),
        "max_characters": MAX_CHARACTERS,
    }
    return render(request, "analysis/help/help.html", context)


def _admin_pages(request: HttpRequest) -> dict[str, str]:
    if not (request.user.is_active and may_manage(request.user)):
        return {}
    models = (model for section in site.get_app_list(request) for model in section["models"])
    return {str(model["name"]): model["admin_url"] for model in models}


@may_be_public
@login_required_only
@require_safe
def design(request: HttpRequest) -> HttpResponse:
    return render(request, "analysis/help/design.html", {"colours": COLOURS})


@may_be_public
@login_required_only
@require_safe
def document(request: HttpRequest, name: str) -> HttpResponse:
    found = documents().get(name)
    if found is None:
        raise Http404
    return render(request, "analysis/help/document.html", {"document": found})
