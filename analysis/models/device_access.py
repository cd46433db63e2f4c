"""The device lists of quotas, as conditions of queries: who is kept off which device.

Asked in the database, for the claim of a run and the list of a form ask it each time. The rule is that of
`analysis.accounts.quotas`: one's own row counts alone; else the lists of one's groups together, and one group without
a list opens all. A list that is empty is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet

from analysis.models.accounts import Quota
from analysis.permissions import MANAGE, may_manage

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from analysis.models import Device


def denied_q(person: User) -> Q:
    """Of a query of devices: those that this person's lists leave out."""
    own, of_groups = Quota.objects.filter(user=person), Quota.objects.filter(group__user=person)
    denied = _leaves_out(own)
    return denied if may_manage(person) else denied | ~Exists(own) & _leaves_out(of_groups)


def users_denied(device: Device) -> QuerySet[User]:
    """Everybody whose lists leave this device out."""
    people = get_user_model().objects.order_by()
    has_list = Quota.objects.filter(devices__isnull=False)
    opens = Quota.objects.filter(Q(devices=None) | Q(devices=device))
    codename = MANAGE.split(".")[1]
    manages = Q(is_superuser=True) | Q(groups__permissions__codename=codename) | Q(user_permissions__codename=codename)
    own = people.filter(quota__in=has_list).exclude(quota__in=opens)
    opened = people.filter(manages | Q(groups__quota__in=opens))
    # each as a query of its own: one that joins the groups twice would look at one group for both
    of_groups = people.filter(quota=None, groups__quota__in=has_list).exclude(pk__in=opened.values("pk"))
    return people.filter(Q(pk__in=own.values("pk")) | Q(pk__in=of_groups.values("pk")))


def _leaves_out(quotas: QuerySet[Quota]) -> Q:
    """There is a list among them, none is without, and none names the device."""
    has_list, has_none = quotas.filter(devices__isnull=False), quotas.filter(devices=None)
    return Q(Exists(has_list)) & ~Exists(has_none) & ~Exists(quotas.filter(devices=OuterRef("pk")))
