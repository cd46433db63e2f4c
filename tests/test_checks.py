"""Settings that would repeat runs or lose writes are found at start."""

from pathlib import Path

import pytest
from django.conf import settings as real

from analysis import checks
from analysis.checks import (
    check_database,
    check_exposure,
    check_file_system,
    check_lease,
    check_proxies,
    check_queue,
    check_secret,
    file_system_of,
)

MOUNTS = """\
overlay / overlay rw 0 0
nas:/lab /srv nfs4 rw 0 0
/dev/sda1 /srv/local ext4 rw 0 0
me@host: /home/my\\040lab fuse.sshfs rw 0 0
"""


def test_the_settings_as_they_are_pass():
    assert check_queue() + check_database() + check_exposure() + check_lease() + check_file_system() == []


@pytest.mark.parametrize(
    ("changed", "number"),
    [
        ({"timeout": 21_900}, "E001"),
        ({"timeout": None}, "E001"),
        ({"retry": 3 * real.Q_CLUSTER["timeout"]}, "E002"),
        ({"orm": None}, "E003"),
        ({"workers": 2}, "E005"),
        ({"name": "another"}, "E010"),
    ],
)
def test_a_queue_that_would_repeat_or_lose_runs_is_refused(settings, changed, number):
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **changed}
    assert f"analysis.{number}" in [error.id for error in check_queue()]


def test_a_queue_name_that_would_be_ignored_is_refused(settings):
    settings.Q_CLUSTER = {key: value for key, value in settings.Q_CLUSTER.items() if key != "ALT_CLUSTERS"}
    assert [error.id for error in check_queue()] == ["analysis.E004"]


def test_sqlite_that_locks_late_is_refused(monkeypatch):
    database = {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {"timeout": 20}}
    monkeypatch.setitem(real.DATABASES, "default", database)
    assert [error.id for error in check_database()] == ["analysis.E006"]


def test_an_open_door_in_production_is_told(settings):
    settings.SERVES_THIS_MACHINE_ONLY = settings.PRODUCTION = True
    assert [warning.id for warning in check_exposure()] == ["analysis.W001"]


@pytest.mark.parametrize(
    ("path", "file_system"),
    [
        ("/var/db.sqlite3", "overlay"),
        ("/srv/db.sqlite3", "nfs4"),
        ("/srv2/db.sqlite3", "overlay"),
        ("/srv/local/db.sqlite3", "ext4"),
        ("/home/my lab/db.sqlite3", "fuse.sshfs"),
    ],
)
def test_the_longest_mount_point_above_a_path_tells_its_file_system(path, file_system):
    assert file_system_of(Path(path), MOUNTS) == file_system


def test_of_two_mounts_on_one_point_the_later_counts():
    assert file_system_of(Path("/srv/db"), MOUNTS + "tmpfs /srv tmpfs rw 0 0\n") == "tmpfs"


@pytest.mark.parametrize(
    ("file_systems", "expected"),
    [
        (["nfs", "nfs4", "cifs", "smb3", "9p", "lustre", "ceph", "fuse.sshfs"], ["analysis.E007"]),
        (["ext4", "xfs", "overlay", "tmpfs", "fuseblk", "fuse.mergerfs"], []),
    ],
    ids=["network", "local"],
)
def test_sqlite_is_refused_on_a_network_file_system_alone(monkeypatch, tmp_path, file_systems, expected):
    monkeypatch.setattr(checks, "_MOUNTS", mounts := tmp_path / "mounts")
    for name in (tmp_path / "db.sqlite3", str(tmp_path / "db.sqlite3")):
        monkeypatch.setitem(real.DATABASES, "default", {"ENGINE": "django.db.backends.sqlite3", "NAME": name})
        for file_system in file_systems:
            mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {tmp_path} {file_system} rw 0 0\n")
            assert [error.id for error in check_file_system()] == expected, file_system


def test_a_lease_of_three_heartbeats_is_refused(settings):
    settings.RUN_HEARTBEAT_SECONDS, settings.RUN_LEASE_SECONDS = 20.0, 60.0
    assert [error.id for error in check_lease()] == ["analysis.E008", "analysis.E009"]


def test_several_hosts_with_a_secret_of_their_own_are_warned(settings, monkeypatch):
    monkeypatch.setitem(real.DATABASES, "default", {"ENGINE": "django.db.backends.postgresql", "NAME": "runs"})
    settings.SECRET_KEY_IS_GIVEN = False
    assert [warning.id for warning in check_secret()] == ["analysis.W002"]
    settings.SECRET_KEY_IS_GIVEN = True
    assert check_secret() == []


def test_in_production_the_proxies_in_front_have_to_be_counted(settings):
    settings.PRODUCTION, settings.TRUSTED_PROXIES = True, 0
    assert [warning.id for warning in check_proxies()] == ["analysis.W003"]
    settings.TRUSTED_PROXIES = 1
    assert check_proxies() == []
