"""A client that openapi-python-client generates from our description, used as its types say."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.contrib.auth.models import User

from analysis.accounts.tokens import token_create
from analysis.api import openapi
from memorymark_site.wsgi import application
from tests.factories.history import store
from tests.security.fuzzed import one_connection

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

PACKAGE = "memorymark_generated_client"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The package, importable under its name."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "schema.json").write_text(json.dumps(openapi.schema()))
    (folder / "config.json").write_text(json.dumps({"package_name_override": PACKAGE, "post_hooks": []}))
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    files = ["--path", "schema.json", "--config", "config.json", "--output-path", PACKAGE]
    done = subprocess.run([*command, *files], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(folder, PACKAGE, "client.py").exists()
    sys.path.insert(0, str(folder))
    yield PACKAGE
    sys.path.remove(str(folder))


@pytest.fixture
def client(package: str, alice: User, settings: Any) -> Iterator[Any]:
    """Its client, which calls the server's entry point without a network."""
    settings.ALLOWED_HOSTS = ["testserver"]
    secret = token_create(owner=alice, name="generated", may_write=False, expires_at=None)[1]
    made = importlib.import_module(f"{package}.client").AuthenticatedClient("http://testserver", secret)
    transport = httpx.WSGITransport(app=application)
    headers = {"Authorization": f"Bearer {secret}"}
    with one_connection(), httpx.Client(transport=transport, base_url="http://testserver", headers=headers) as http:
        made.set_httpx_client(http)
        yield made


@pytest.mark.parametrize(
    ("module", "kind"), [("runs.runs_list", "measurement"), ("estimates.estimates_list", "estimate")]
)
def test_it_pages_through_120_rows_by_what_the_types_name(client: Any, package: str, module: str, kind: str) -> None:
    stored = store(120, kind=kind)
    read = importlib.import_module(f"{package}.api.{module}").sync
    page = read(client=client, limit=50)
    sizes, seen = [len(page.results)], [run.id for run in page.results]
    while page.next_ is not None:
        after = int(parse_qs(urlsplit(page.next_).query)["after"][0])
        page = read(client=client, limit=50, after=after)
        sizes.append(len(page.results))
        seen += [run.id for run in page.results]
    assert sizes == [50, 50, 20]
    assert seen == [run.pk for run in reversed(stored)]
