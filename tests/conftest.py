"""Fixtures that several tests share, and Hypothesis's settings."""

from __future__ import annotations

import resource
import signal
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

from recordkit import _core
from tests import audit, chance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

# The same draws on every run and every machine, so that a change is judged by itself. `make soak` draws others, for as
# long as it is given. A shared machine makes deadlines a lottery; messages within messages take a while to draw.
settings.register_profile(
    "recordkit",
    deadline=None,
    derandomize=True,
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("soak", settings.get_profile("recordkit"), derandomize=False)
settings.load_profile(chance.PROFILE)

# A shell lets what it starts in the background ignore Ctrl-C, and so would all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)

audit.watch()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_unpickled() -> Iterator[None]:
    """Holds for everything that any test makes recordkit do; what has caught the error is told here."""
    yield
    assert audit.found == []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only the tests that draw their inputs, where they are to draw others than always."""
    if chance.SOAKING:
        drawn: list[pytest.Item] = []
        fixed: list[pytest.Item] = []
        for item in items:
            draws = is_hypothesis_test(getattr(item, "obj", None)) or item.get_closest_marker("drawn")
            (drawn if draws else fixed).append(item)
        config.hook.pytest_deselected(items=fixed)
        items[:] = drawn


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, whose import warns of things that are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow
    return tensorflow


@pytest.fixture(scope="class", params=_core.crc32c_paths())
def crc_path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each CRC path in turn that this processor can run."""
    before = _core.crc32c_path()
    assert _core.crc32c_use_path(request.param)
    yield request.param
    assert _core.crc32c_use_path(before)


@pytest.fixture(scope="session")
def room_for() -> Callable[[int], AbstractContextManager[None]]:
    """A context in which no more than so many bytes can be allocated."""

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    return limited
