"""The migrations make the tables that the models describe, and can be taken back."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection


@pytest.mark.django_db
def test_no_model_change_is_without_its_migration():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_the_first_migration_can_be_taken_back_and_applied_again():
    call_command("migrate", "analysis", "zero", verbosity=0)
    assert "analysis_run" not in connection.introspection.table_names()
    call_command("migrate", verbosity=0)
    assert "analysis_run" in connection.introspection.table_names()
