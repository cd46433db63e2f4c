"""The help page, and one document of docs/ as it is written."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.accounts.middleware import login_required_only, may_be_public
from analysis.pages.help.documents import documents, glossary


@may_be_public
@login_required_only
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    """Explain the pages and the words, and list the documents."""
    return render(request, "analysis/help.html", {"sections": glossary(), "documents": documents().values()})


@may_be_public
@login_required_only
@require_safe
def document(request: HttpRequest, name: str) -> HttpResponse:
    """Show one document as Markdown text: it is written to be read so."""
    found = documents().get(name)
    if found is None:
        raise Http404
    return render(request, "analysis/help_document.html", {"document": found})
