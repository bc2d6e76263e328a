"""Fixtures that several tests share, and Hypothesis's settings."""

from __future__ import annotations

import os
import resource
import signal
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from recordkit import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

# A shared machine makes deadlines a lottery; messages within messages take a while to draw, and to explain.
settings.register_profile(
    "recordkit",
    deadline=None,
    # The same draws on every run of CI, so that a change is judged by itself; people's runs go on exploring.
    derandomize="CI" in os.environ,
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("recordkit")

# A shell lets what it starts in the background ignore Ctrl-C, and so would all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
