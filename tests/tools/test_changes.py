"""Changes: every sequence of them leaves what a list of rows would hold, and opens in every way."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.tools.changed import WAYS, Changed

numbers = st.integers(0, 11)


class Changes(RuleBasedStateMachine):
    """Any changes, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(mkdtemp(prefix="recordkit-"))
        self.model: Changed | None = None

    @initialize(lone=st.booleans(), compression=st.sampled_from([None, "gzip"]))
    def begin(self, lone: bool, compression: Any) -> None:
        self.model = Changed(self.root, lone=lone, compression=compression)

    @rule(way=st.sampled_from(WAYS), number=numbers)
    def change(self, way: str, number: int) -> None:
        assert self.model is not None
        getattr(self.model, way)(number)

    @rule(number=numbers)
    def append(self, number: int) -> None:
        assert self.model is not None
        self.model.append(number)

    @invariant()
    def is_as_the_model_says(self) -> None:
        if self.model is not None:
            self.model.check()

    def teardown(self) -> None:
        shutil.rmtree(self.root)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=40, stateful_step_count=12)


@pytest.mark.slow
@pytest.mark.parametrize(("lone", "compression"), [(False, None), (True, "gzip")])
def test_every_pair_of_changes_with_appends_around_them(tmp_path: Path, lone: bool, compression: Any) -> None:
    for number, (first, second) in enumerate(itertools.product(WAYS, WAYS)):
        root = tmp_path / f"{number}"
        root.mkdir()
        model = Changed(root, lone=lone, compression=compression)
        for way in (first, "append", second, "append"):
            getattr(model, way)(number)
        model.check()
