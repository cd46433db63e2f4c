"""The description of the API: complete, valid, and served without a look outside."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

from analysis.api import openapi

OUTSIDE = re.compile(r"""(?:src|href)=["'](?:https?:)?//|url\(["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return openapi.schema()


def operations(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        operation["operationId"]: operation | {"path": path}
        for path, methods in schema["paths"].items()
        for operation in methods.values()
    }


def addresses(resolver: URLResolver, prefix: str = "") -> set[str]:
    found: set[str] = set()
    for each in resolver.url_patterns:
        path = prefix + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(each.pattern))
        found |= {path} if isinstance(each, URLPattern) else addresses(each, path)
    return found


def enums_in(part: Any) -> Iterator[list[Any]]:
    if isinstance(part, dict):
        if isinstance(part.get("enum"), list):
            yield part["enum"]
        for each in part.values():
            yield from enums_in(each)
    elif isinstance(part, list):
        for each in part:
            yield from enums_in(each)


def test_every_default_of_a_parameter_is_among_its_values_or_code_generators_leave_its_address_out(schema) -> None:
    described = [each["schema"] for one in operations(schema).values() for each in one.get("parameters", [])]
    with_both = [each for each in described if {"enum", "default"} <= each.keys()]
    assert with_both
    assert [each for each in with_both if each["default"] not in each["enum"]] == []


@pytest.mark.slow
def test_it_is_valid_and_has_no_warning(tmp_path, capsys) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yaml"))
    assert "openapi: 3.1.0" in (tmp_path / "schema.yaml").read_text()


def test_every_address_of_version_1_is_in_it(schema: dict[str, Any]) -> None:
    routes = {f"/{path}" for path in addresses(get_resolver()) if path.startswith("api/v1/")}
    described = {path.replace("{id}", "{pk}") for path in schema["paths"] if path.startswith("/api/v1/")}
    assert described == routes


def test_every_operation_has_a_name_a_tag_and_a_sentence(schema: dict[str, Any]) -> None:
    for name, operation in operations(schema).items():
        assert operation["tags"], name
        assert operation["tags"] != ["api"], name
        assert operation.get("description"), name


def test_every_operation_of_version_1_may_answer_problems(schema: dict[str, Any]) -> None:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for name, operation in operations(schema).items():
        if operation["path"].startswith("/api/v1/"):
            answers = operation["responses"]
            assert {"400", "401", "403", "429", "503"} <= set(answers), name
            assert answers["400"]["content"] == {"application/problem+json": problem}, name


@pytest.mark.parametrize("page", ["RunPage", "EstimatePage"])
def test_a_page_has_both_of_its_neighbours(schema: dict[str, Any], page: str) -> None:
    described = schema["components"]["schemas"][page]
    assert set(described["properties"]) == set(described["required"]) == {"next", "previous", "results"}


def test_a_client_generated_today_may_name_a_model_of_tomorrow(schema: dict[str, Any]) -> None:
    closed = [values for values in enums_in(schema) if {"bert", "resnet"} <= set(values)]
    models = schema["components"]["schemas"]["RunRequestRequest"]["properties"]["model"]
    assert (closed, models["type"], models["examples"][:3]) == ([], "string", ["bert", "gpt2", "resnet"])


def test_the_classic_endpoints_keep_their_own_form(schema: dict[str, Any]) -> None:
    answers = operations(schema)["analyze"]["responses"]
    assert answers["400"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ClassicError"}


def test_whoever_asks_can_show_a_token_a_password_or_a_session(schema: dict[str, Any]) -> None:
    assert set(schema["components"]["securitySchemes"]) == {"token", "basic", "session"}
    assert {"token": []} in operations(schema)["runs_create"]["security"]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [("application/json", "application/json"), ("*/*", "application/vnd.oai.openapi; charset=utf-8")],
)
def test_it_is_served_to_whoever_may_read(alice_client: Client, accept: str, content_type: str) -> None:
    answer = alice_client.get("/api/schema/", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, content_type)


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.oai.openapi", "*/*"])
def test_strangers_get_a_problem_in_its_place(db, accept: str) -> None:
    answer = Client().get("/api/schema/", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (401, "application/problem+json")
    assert json.loads(answer.content)["code"] == "not_authenticated"


def test_the_page_of_it_loads_nothing_from_outside(alice_client: Client) -> None:
    answer = alice_client.get("/api/docs/")
    html = answer.content.decode()
    assert (answer.status_code, OUTSIDE.search(html)) == (200, None)
    assert "<style" not in html
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert "unsafe-inline" not in answer.headers["Content-Security-Policy"]


def test_its_files_are_collected_without_the_other_viewer(tmp_path, settings) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"}
    }
    call_command("collectstatic", "--no-input", verbosity=0)
    names = {path.name for path in (tmp_path / "drf_spectacular_sidecar").rglob("*") if path.is_file()}
    assert "swagger-ui-bundle.js" in names
    assert not any("redoc" in name or "oauth2" in name for name in names)


@pytest.mark.parametrize("path", ["audit/", "matrix/", "runs/"])
def test_a_method_that_is_not_there_is_told_before_its_parameters(root_client: Client, path: str) -> None:
    assert root_client.generic("TRACE", f"/api/v1/{path}?colour=red").status_code == 405


def test_every_operation_has_a_summary_for_the_list(schema: dict[str, Any]) -> None:
    assert [name for name, operation in operations(schema).items() if not operation["summary"]] == []
    assert openapi.first_sentence("Compare two\nruns. Then stop.") == "Compare two runs"
