"""The device lists of quotas, as query conditions: which people may not use which devices.

The database evaluates them, because each claim of a run and each list of a form needs them. The rule is that of
`analysis.accounts.quotas`: a person's own quota counts alone; otherwise the lists of their groups are joined, and one
group without a list allows every device. An empty list is no list.
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
    own, group_quotas = Quota.objects.filter(user=person), Quota.objects.filter(group__user=person)
    denied = _excluded_by(own)
    return denied if may_manage(person) else denied | ~Exists(own) & _excluded_by(group_quotas)


def users_denied(device: Device) -> QuerySet[User]:
    people = get_user_model().objects.order_by()
    has_list = Quota.objects.filter(devices__isnull=False)
    opens = Quota.objects.filter(Q(devices=None) | Q(devices=device))
    codename = MANAGE.split(".")[1]
    manages = Q(is_superuser=True) | Q(groups__permissions__codename=codename) | Q(user_permissions__codename=codename)
    own = people.filter(quota__in=has_list).exclude(quota__in=opens)
    opened = people.filter(manages | Q(groups__quota__in=opens))
    # separate queries: a single one with two joins of the groups would test both conditions on the same group
    by_group = people.filter(quota=None, groups__quota__in=has_list).exclude(pk__in=opened.values("pk"))
    return people.filter(Q(pk__in=own.values("pk")) | Q(pk__in=by_group.values("pk")))


def _excluded_by(quotas: QuerySet[Quota]) -> Q:
    has_list, has_none = quotas.filter(devices__isnull=False), quotas.filter(devices=None)
    return Q(Exists(has_list)) & ~Exists(has_none) & ~Exists(quotas.filter(devices=OuterRef("pk")))
