"""Saved views of the history: create, replace, delete."""

from __future__ import annotations

from django.contrib.auth.models import User

from analysis.models import SavedView
from analysis.models.annotations import NAME_LENGTH, QUERY_LENGTH
from analysis.models.text import plain_line, storable_text
from analysis.permissions import may_manage

VIEWS_PER_PERSON = 100


def saved_view_set(*, owner: User, name: str, query: str, is_shared: bool) -> SavedView | None:
    """Save a view over one of its name; None: too long, nameless, too many. Raises ValidationError if unprintable."""
    plain_line(name.strip())
    name = storable_text(name.strip(), NAME_LENGTH)
    own_views = SavedView.objects.filter(owner=owner)
    if not name or len(query) > QUERY_LENGTH or own_views.exclude(name=name).count() >= VIEWS_PER_PERSON:
        return None
    view, _ = SavedView.objects.update_or_create(
        owner=owner, name=name, defaults={"query": query, "is_shared": is_shared}
    )
    return view


def saved_view_delete(*, view_id: int, by: User) -> bool:
    """Delete a view, as its owner or a GPU manager. False: there is no such view, or it is another person's."""
    views = SavedView.objects.filter(pk=view_id)
    if not may_manage(by):
        views = views.filter(owner=by)
    return bool(views.delete()[0])
