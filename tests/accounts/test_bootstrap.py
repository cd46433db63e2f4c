"""The first administrator."""

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet

from analysis.accounts.bootstrap import administrator_create_first

pytestmark = pytest.mark.django_db


def test_a_fresh_installation_gets_one_administrator():
    assert administrator_create_first(password="long and secret") == "admin"
    user = User.objects.get()
    assert (user.username, user.is_superuser, user.check_password("long and secret")) == ("admin", True, True)


def test_no_second_one_is_made(root):
    assert administrator_create_first(password="long and secret") is None
    assert User.objects.get() == root


def test_an_ordinary_user_of_that_name_is_not_raised():
    User.objects.create_user("admin")
    assert administrator_create_first(password="long and secret") == "admin2"
    assert not User.objects.get(username="admin").is_superuser


def test_of_two_that_start_at_once_one_makes_the_administrator(root, monkeypatch):
    """The other one looked before it was there."""
    User.objects.filter(pk=root.pk).update(username="admin")
    exists, too_early = QuerySet.exists, [False, False]
    monkeypatch.setattr(QuerySet, "exists", lambda query: too_early.pop() if too_early else exists(query))
    assert administrator_create_first(password="the slower one's") is None
    assert User.objects.count() == 1
