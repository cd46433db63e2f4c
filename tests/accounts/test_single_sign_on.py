"""A proxy names the person in a header: believed from that proxy alone, and only where the setting is on."""

from ipaddress import ip_network

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group, User
from django.test import Client

from analysis.accounts.single_sign_on import BACKEND
from analysis.models import AuditEntry
from analysis.permissions import MANAGER, VIEWER
from tests.factories import make_user

pytestmark = pytest.mark.django_db

PROXY, STRANGER = "10.1.0.9", "10.2.0.9"


@pytest.fixture(autouse=True)
def _viewers(db):
    Group.objects.get_or_create(name=VIEWER)


@pytest.fixture
def _sso(settings):
    settings.REMOTE_USER_HEADER = "X-Forwarded-User"
    settings.REMOTE_USER_PROXIES = [ip_network("10.1.0.0/16")]
    settings.AUTHENTICATION_BACKENDS = [*django_settings.AUTHENTICATION_BACKENDS, BACKEND]


def person_of(client: Client, name: str | None, *, peer: str = PROXY, **headers: str) -> str | None:
    """Open the account page; returns whose it is, or None for the login page."""
    named = {} if name is None else {"x-forwarded-user": name}
    answer = client.get("/account/", REMOTE_ADDR=peer, headers={**named, **headers})
    return answer.wsgi_request.user.get_username() if answer.status_code == 200 else None


def test_the_header_is_ignored_where_the_setting_is_off():
    assert person_of(Client(), "ada") is None
    assert not User.objects.exists()


@pytest.mark.usefixtures("_sso")
def test_the_header_is_ignored_from_an_address_that_is_no_proxy():
    assert person_of(Client(), "ada", peer=STRANGER) is None
    assert person_of(Client(), "ada", peer=STRANGER, **{"x-forwarded-for": PROXY}) is None
    assert person_of(Client(), "ada", peer="") is None  # a Unix socket
    assert not User.objects.exists()


@pytest.mark.usefixtures("_sso")
def test_a_new_person_becomes_a_viewer_without_a_password():
    client = Client()
    assert person_of(client, "ada@lab.example") == "ada@lab.example"
    ada = User.objects.get()
    assert [group.name for group in ada.groups.all()] == [VIEWER]
    assert [ada.has_usable_password(), ada.is_staff, ada.is_superuser] == [False, False, False]
    assert client.get("/account/", REMOTE_ADDR=PROXY, headers={"x-forwarded-user": ada.username}).status_code == 200
    logins = AuditEntry.objects.filter(action="login")
    assert [(entry.actor, entry.target_id) for entry in logins] == [(ada, str(ada.pk))]


@pytest.mark.usefixtures("_sso")
def test_a_person_with_an_account_keeps_their_roles():
    ada = make_user("ada", MANAGER)
    assert person_of(Client(), "ada") == "ada"
    assert [group.name for group in ada.groups.all()] == [MANAGER]


@pytest.mark.usefixtures("_sso")
def test_a_login_by_proxy_counts_only_with_the_header_and_from_the_proxy():
    client = Client()
    assert person_of(client, "ada") == "ada"
    assert person_of(client, None) is None
    assert person_of(client, "ada", peer=STRANGER) is None
    assert client.get("/api/v1/runs/", REMOTE_ADDR=STRANGER).status_code == 401
    assert person_of(client, "ada") == "ada"
    assert AuditEntry.objects.filter(action="login").count() == 1


@pytest.mark.usefixtures("_sso")
def test_another_name_in_the_header_is_another_person():
    client = Client()
    assert [person_of(client, name) for name in ("ada", "bob")] == ["ada", "bob"]


@pytest.mark.usefixtures("_sso")
def test_a_login_by_password_stays_where_the_proxy_names_nobody(alice_client):
    assert person_of(alice_client, None) == "alice"


@pytest.mark.usefixtures("_sso")
def test_a_closed_account_is_refused_and_locks_nobody_out():
    make_user("ada", is_active=False)
    assert [person_of(Client(), "ada") for _ in range(6)] == [None] * 6
    client = Client()
    assert [person_of(client, name) for name in ("bob", "ada")] == ["bob", None]
    assert not AuditEntry.objects.filter(action__in=("login.failed", "login.lock")).exists()


@pytest.mark.usefixtures("_sso")
@pytest.mark.parametrize("name", ["a b", "ada\x00", "a" * 151, "\xff\xfe", "<script>"])
def test_what_can_be_no_name_of_an_account_is_refused(name):
    assert person_of(Client(), name) is None
    assert not User.objects.exists()


@pytest.mark.usefixtures("_sso")
def test_a_name_outside_ascii_is_read_as_utf_8():
    assert person_of(Client(), "josé".encode().decode("latin-1")) == "josé"


def test_a_session_outlives_a_change_of_the_key_only_where_the_old_one_is_a_fallback(alice_client, settings):
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another-key-" * 6
    settings.SECRET_KEY_FALLBACKS = [old]
    assert person_of(alice_client, None) == "alice"
    settings.SECRET_KEY_FALLBACKS = []
    settings.SECRET_KEY = "a-third-key-" * 6
    assert person_of(alice_client, None) is None
