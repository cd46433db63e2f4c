"""Made-up cards under PyTorch's real CUDA build. Skipped loudly where it cannot be built, a failure with CI=true."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cuda_stand_in.build import CannotBuild, stand_in_environment
from tests.cuda_stand_in.cards import Cards, WarmEngine

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs the build, so all of them are left out by default."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cuda_stand_in)


@pytest.fixture(scope="session")
def built() -> dict[str, str]:
    try:
        return stand_in_environment()
    except CannotBuild as exc:
        sentence = f"CUDA IS NOT TESTED HERE: the stand-in cannot be built: {exc}"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        warnings.warn(sentence, stacklevel=1)
        pytest.skip(sentence)


@pytest.fixture
def cards(built: dict[str, str], tmp_path: Path) -> Iterator[Cards]:
    """Fresh cards: one of 24 GiB, until the test sets something else."""
    made = Cards(tmp_path / "cards", built)
    yield made
    made.end_tenants()


@pytest.fixture(scope="session")
def warm(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmEngine]:
    """BERT tiny, imported once for all tests that need no program of their own."""
    engine = WarmEngine(Cards(tmp_path_factory.mktemp("warm") / "cards", built))
    yield engine
    engine.stop()
