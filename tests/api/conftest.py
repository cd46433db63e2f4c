"""Somebody who may only read."""

import pytest
from django.test import Client

from analysis.permissions import VIEWER
from tests.factories import make_user


@pytest.fixture
def vera_client(db) -> Client:
    client = Client()
    client.force_login(make_user("vera", VIEWER))
    return client
