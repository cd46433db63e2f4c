"""The API under made-up requests: never a 5xx, never an answer that its description does not have.

MEMORYMARK_FUZZ_CASES=5000 python -m pytest -n 0 -s tests/security/test_fuzz_api.py      more than in the suite
"""

import os
from contextlib import suppress
from math import ceil

import pytest
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

from analysis.api import limits
from tests.security.fuzzed import Fuzz, one_connection

ASKED = os.environ.get("MEMORYMARK_FUZZ_CASES")
CASES = [int(ASKED)] if ASKED else [150, 500]


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries that make up the requests
@pytest.mark.parametrize("cases", CASES)
def test_every_generated_request_gets_a_documented_response(cases, settings, record_property, monkeypatch):
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    settings.ANALYZE_WAITING_REQUESTS = 0  # a wait for the run under way would last as long as it may
    monkeypatch.setattr(limits, "STREAM_MAX_SECONDS", 0.0)
    with one_connection():
        fuzz = Fuzz()
        operations = fuzz.operations()
        share = ceil(cases / (1.5 * len(operations)))  # of the half that breaks the rules some have none to break
        wrong = []
        for operation in operations:
            for mode in GenerationMode:
                try:
                    with suppress(Unsatisfiable):
                        fuzz.run(operation, mode, share, is_repeatable=ASKED is None)
                except (FailureGroup, Exception) as failure:  # noqa: BLE001 - every operation is tried, all are told
                    wrong.append(f"{operation.label}, {mode}: {failure}")
    print(f"{fuzz.statuses.total()} cases on {len(operations)} operations: {sorted(fuzz.statuses.items())}")
    record_property("answers", sorted(fuzz.statuses.items()))
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)
