"""Create and withdraw the links that show a run without a login."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit
from analysis.models import ShareLink
from analysis.pages.run.share_form import ShareForm, new_link_context
from analysis.pages.run.views import read_run, render_ended
from analysis.permissions import signed_in_user
from analysis.runs.marks.share_links import share_link_create, share_link_withdraw
from engine.errors import SpecError


@require_POST
def share_create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Create a link. Only this response shows it: no session and no message stores it."""
    run, user, form = read_run(run_id), signed_in_user(request), ShareForm(request.POST)
    try:
        if not form.is_valid():
            raise SpecError("days", "choose one of the offered times")
        check_rate_limit(CREATE, user)
        link, secret = share_link_create(run_id=run.pk, by=user, days=form.number_of_days)
    except (SpecError, RateLimited) as error:
        messages.error(request, f"The run was not shared: {error}")
        return redirect(run)
    names = ("analysis:shared_run", "analysis:shared_badge")
    address, badge_address = (request.build_absolute_uri(reverse(name, args=[secret])) for name in names)
    return render_ended(request, run, new_link_context(run, link, address, badge_address))


@require_POST
def share_withdraw(request: HttpRequest, link_id: int) -> HttpResponseRedirect:
    link = get_object_or_404(ShareLink, pk=link_id)
    if share_link_withdraw(link_id=link_id, by=signed_in_user(request)):
        messages.success(request, "The link is withdrawn. It and its badge answer “not found” from now on.")
        return redirect(f"{reverse('analysis:run', args=[link.run_id])}#share")
    messages.error(request, "No link was withdrawn: it is of another person’s run, or was withdrawn already.")
    return redirect("analysis:runs")
