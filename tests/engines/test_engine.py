from __future__ import annotations

import os
import pickle
from typing import Any

import pytest

import recordkit as rk
from recordkit import engines as workers


class TestCount:
    @pytest.mark.parametrize("given", [1, 7, rk.Threads(7), rk.Processes(3)])
    def test_a_number_is_what_it_says(self, given: Any) -> None:
        assert workers.count(given) == getattr(given, "count", given)

    def test_auto_is_one_for_each_processor_we_may_use(self) -> None:
        assert workers.count(rk.AUTO) == len(os.sched_getaffinity(0))

    @pytest.mark.parametrize("given", [0, -1, 1.5, True, None, "many", rk.Threads(0), rk.Processes(-2), b"auto"])
    def test_anything_else_is_refused(self, given: Any) -> None:
        with pytest.raises(ValueError, match=r"workers is a number from 1 up, rk\.AUTO, rk\.Threads\(n\)"):
            workers.count(given)

    def test_survives_the_trip_to_another_process(self) -> None:
        for given in (rk.AUTO, rk.Threads(2), rk.Processes(2)):
            assert pickle.loads(pickle.dumps(given)) == given
