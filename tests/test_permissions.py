"""The three roles and what each may do."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import PermissionDenied

from analysis.models import Run
from analysis.permissions import MANAGER, OPERATOR, ROLES, VIEWER, may_manage, may_read, may_start, signed_in_user
from tests.factories import make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        (None, (False, False, False)),
        (VIEWER, (True, False, False)),
        (OPERATOR, (True, True, False)),
        (MANAGER, (True, True, True)),
    ],
)
def test_a_role_has_its_rights_and_those_below_it(role, rights):
    person = make_user("p", role)
    assert (may_read(person), may_start(person), may_manage(person)) == rights


def test_the_migration_makes_the_roles_with_their_rights():
    made = {group.name: {f"analysis.{codename}" for codename in codenames(group)} for group in Group.objects.all()}
    assert made == {role: set(rights) for role, rights in ROLES.items()}


def codenames(group: Group) -> list[str]:
    return list(group.permissions.values_list("codename", flat=True))


def test_a_superuser_may_all_and_nobody_may_nothing(root):
    assert may_manage(root)
    assert not may_read(AnonymousUser())
    assert not may_read(None)


def test_a_person_may_change_her_own_runs_a_manager_all_and_a_viewer_none(alice):
    run = make_run(requested_by=alice)
    for person, expected in ((alice, [run]), (make_user("m", MANAGER), [run]), (make_user("o"), [])):
        assert list(Run.objects.changeable_by(person)) == expected
    alice.groups.set([Group.objects.get_or_create(name=VIEWER)[0]])
    again = type(alice).objects.get(pk=alice.pk)
    assert list(Run.objects.changeable_by(again)) == []


def test_a_request_of_nobody_has_no_signed_in_user(rf, root):
    request = rf.get("/")
    request.user = root
    assert signed_in_user(request) == root
    request.user = AnonymousUser()
    with pytest.raises(PermissionDenied):
        signed_in_user(request)
