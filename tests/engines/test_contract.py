from __future__ import annotations

import pytest

from recordkit.engines import Engine, ProcessEngine, ThreadEngine
from recordkit.testing import EngineContract


class TestOneThread(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return ThreadEngine(1)


class TestThreads(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return ThreadEngine(3, wait=True)


class TestThreadsThatGrow(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return ThreadEngine(2, grow=True, ahead=5)


@pytest.mark.slow
class TestProcesses(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return ProcessEngine(2)
