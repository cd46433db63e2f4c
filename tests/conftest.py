"""Fixtures for every test: a private data folder, plain static files, three people."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SQLite's test database is a file: several processes and threads share it, as they do in real life."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(autouse=True)
def _private_data_folder(settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    settings.LOCK_DIR = tmp_path / "locks"
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def alice(db) -> User:
    """An ordinary user."""
    return User.objects.create_user("alice", password="alice's password")


@pytest.fixture
def root(db) -> User:
    """The administrator."""
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
