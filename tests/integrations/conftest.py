"""Fixtures for what runs in other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integrations.elsewhere import Elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Elsewhere]:
    """A process that has imported no framework that must not be forked."""
    process = Elsewhere()
    yield process
    process.end()


@pytest.fixture(scope="session")
def with_jax() -> Iterator[Elsewhere]:
    """A process that may use JAX, which warns of every fork from then on."""
    process = Elsewhere()
    yield process
    process.end()
