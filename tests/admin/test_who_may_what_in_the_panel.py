"""GPU managers run the lab, and cannot make themselves or others more than that; nobody locks themselves out."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from analysis.accounts.tokens import token_create
from analysis.models import ApiToken, AuditEntry, Device, Quota, Run
from analysis.permissions import MANAGER, OPERATOR, VIEWER
from analysis.runs import services
from tests.factories import make_device, make_measured_run, make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss() -> User:
    return make_user("boss", MANAGER)


@pytest.fixture
def boss_client(boss) -> Client:
    client = Client()
    client.force_login(boss)
    return client


def form_of(client: Client, person: User) -> dict[str, object]:
    form = client.get(f"/admin/auth/user/{person.pk}/change/").context["adminform"].form
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    values["groups"] = list(person.groups.values_list("pk", flat=True))
    return {name: value for name, value in values.items() if value not in (None, False)}


@pytest.mark.parametrize("role", [VIEWER, OPERATOR, None])
def test_only_managers_enter_and_to_be_staff_is_not_enough(role):
    client = Client()
    client.force_login(make_user("vera", role, is_staff=True))
    for path in ("", "analysis/run/", "auth/user/", "queue/", "login/", "autocomplete/", "jsi18n/"):
        assert client.get(f"/admin/{path}").status_code == 403


def test_a_stranger_signs_in_on_the_portals_own_page(client):
    answer = client.get("/admin/analysis/run/", follow=True)
    assert answer.redirect_chain[-1][0].startswith("/login/?next=")


def test_a_manager_enters_without_being_staff(boss_client):
    assert boss_client.get("/admin/").status_code == 200


def test_a_manager_opens_an_account_with_a_role(boss_client):
    role = Group.objects.get(name=OPERATOR)
    passwords = {"password1": "a long pass phrase", "password2": "a long pass phrase", "usable_password": "true"}
    answer = boss_client.post("/admin/auth/user/add/", {"username": "dora", "groups": [role.pk], **passwords})
    assert answer.status_code == 302
    dora = User.objects.get(username="dora")
    assert (list(dora.groups.all()), dora.is_superuser, dora.is_staff) == ([role], False, False)


def test_nothing_of_a_password_is_on_the_page(boss_client, alice):
    page = boss_client.get(f"/admin/auth/user/{alice.pk}/change/").content.decode()
    _algorithm, salt, digest = alice.password.split("$")
    assert "A password is set." in page
    assert salt[:4] not in page
    assert digest[:6] not in page


def test_a_manager_cannot_make_anybody_a_superuser(boss_client, boss, alice):
    right = Permission.objects.get(codename="delete_user").pk
    for person in (alice, boss):
        more = {"is_superuser": "on", "is_staff": "on", "user_permissions": [right]}
        boss_client.post(f"/admin/auth/user/{person.pk}/change/", {**form_of(boss_client, person), **more})
        person.refresh_from_db()
        assert (person.is_superuser, person.is_staff, person.user_permissions.count()) == (False, False, 0)


@pytest.mark.parametrize("path", ["change/", "password/", "delete/"])
def test_a_manager_cannot_touch_a_superuser(boss_client, root, path):
    new = {"username": "mine", "password1": "a long pass phrase", "password2": "a long pass phrase", "post": "yes"}
    assert boss_client.post(f"/admin/auth/user/{root.pk}/{path}", new).status_code == 403
    root.refresh_from_db()
    assert (root.username, root.check_password("root's password")) == ("root", True)


def test_closing_accounts_passes_over_superusers_and_oneself(boss_client, boss, root, alice):
    chosen = {"action": "close", "_selected_action": [boss.pk, root.pk, alice.pk]}
    boss_client.post("/admin/auth/user/", chosen)
    active = User.objects.filter(is_active=True).order_by("username")
    assert [person.username for person in active] == ["boss", "root"]
    assert (
        AuditEntry.objects.get(action="user.change", target_id=str(alice.pk), after={"is_active": False}).actor == boss
    )


@pytest.mark.parametrize("change", [{"is_active": ""}, {"groups": []}])
def test_nobody_locks_themselves_out(boss_client, boss, change):
    answer = boss_client.post(f"/admin/auth/user/{boss.pk}/change/", {**form_of(boss_client, boss), **change})
    assert "another GPU manager has to" in answer.content.decode()
    boss.refresh_from_db()
    assert boss.is_active
    assert boss.groups.filter(name=MANAGER).exists()


def test_the_last_superuser_stays_one(root_client, root):
    fields = form_of(root_client, root)
    del fields["is_superuser"]
    root_client.post(f"/admin/auth/user/{root.pk}/change/", fields)
    root_client.post(f"/admin/auth/user/{root.pk}/delete/", {"post": "yes"})
    root.refresh_from_db()
    assert root.is_superuser


def test_the_roles_stand_fast_even_for_a_superuser(root_client, boss_client):
    viewer = Group.objects.get(name=VIEWER)
    rights = set(viewer.permissions.all())
    everything = [right.pk for right in Permission.objects.all()]
    for client in (root_client, boss_client):
        client.post(f"/admin/auth/group/{viewer.pk}/change/", {"name": "x", "permissions": everything})
        assert client.post(f"/admin/auth/group/{viewer.pk}/delete/", {"post": "yes"}).status_code == 403
    viewer.refresh_from_db()
    assert (viewer.name, set(viewer.permissions.all())) == (VIEWER, rights)


def test_a_manager_makes_groups_without_rights(boss_client):
    right = Permission.objects.get(codename="manage_portal").pk
    boss_client.post("/admin/auth/group/add/", {"name": "vision", "permissions": [right]})
    assert not Group.objects.get(name="vision").permissions.exists()


def test_a_superuser_deletes_an_account_with_its_tokens(root_client, alice):
    token_create(owner=alice, name="ci", may_write=False, expires_at=None)
    assert root_client.post(f"/admin/auth/user/{alice.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not User.objects.filter(username="alice").exists()


def test_an_account_that_is_closed_or_deleted_waits_for_no_device_any_more(root_client, alice):
    device, people = make_device(), [alice, make_user("bob"), make_user("carol")]
    running = make_run(device, requested_by=alice)
    services.run_claim(device=device, owner="tester")
    waiting = [make_run(device, requested_by=person) for person in people]
    address = "/admin/auth/user/"
    root_client.post(address, {"action": "close", "_selected_action": [alice.pk]})
    root_client.post(f"{address}{people[1].pk}/change/", {**form_of(root_client, people[1]), "is_active": ""})
    root_client.post(f"{address}{people[2].pk}/delete/", {"post": "yes"})
    assert set(Run.objects.filter(state="cancelled")) == set(waiting)
    assert not Run.objects.get(pk=running.pk).cancel_requested
    assert AuditEntry.objects.filter(action="run.cancel").count() == 3
    assert User.objects.filter(is_active=True).count() == 1


def test_who_is_named_by_an_allow_list_or_a_quota_is_not_deleted_even_by_a_superuser(root_client, alice):
    group, device = Group.objects.create(name="vision"), make_device()
    device.allowed_users.add(alice)
    Quota.objects.create(group=group).devices.add(device)
    named = {f"auth/user/{alice.pk}": "Test CPU", f"auth/group/{group.pk}": "quota of vision"}
    for path, name in {**named, f"analysis/device/{device.pk}": "quota of vision"}.items():
        page = root_client.post(f"/admin/{path}/delete/", {"post": "yes"}).content.decode()
        assert name in page
        assert "refers to it: change or delete that first" in page
    assert all(type(row).objects.filter(pk=row.pk).exists() for row in (alice, group, device))


@pytest.mark.parametrize("kind", ["device", "retentionrule", "gpuprice"])
def test_a_list_that_was_open_for_long_undoes_nothing(boss_client, kind):
    """What others changed meanwhile: a list that could be saved would write every row as it was read."""
    make_device()
    page = boss_client.get(f"/admin/analysis/{kind}/")
    assert page.context["cl"].formset is None


def test_a_token_is_revoked_and_its_digest_is_nowhere_on_the_page(boss_client, alice):
    token, _secret = token_create(owner=alice, name="ci", may_write=True, expires_at=None)
    for path in ("", f"{token.pk}/change/"):
        assert token.digest not in boss_client.get(f"/admin/analysis/apitoken/{path}").content.decode()
    boss_client.post("/admin/analysis/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})
    assert ApiToken.objects.get().revoked_at is not None


def test_a_device_that_measured_something_is_not_deleted(boss_client):
    used, unused = make_measured_run().device, make_device("other")
    assert boss_client.post(f"/admin/analysis/device/{used.pk}/delete/", {"post": "yes"}).status_code == 403
    assert boss_client.post(f"/admin/analysis/device/{unused.pk}/delete/", {"post": "yes"}).status_code == 302
    assert list(Device.objects.all()) == [used]
