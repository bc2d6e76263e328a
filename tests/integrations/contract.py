"""What every loader promises, whatever framework it is for: written once, inherited by a class for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from recordkit.errors import CorruptRecordError
from tests.dataset.files import flip, offset_of, save_many

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integrations.elsewhere import Elsewhere

COUNTS = (5, 0, 9, 3)  # records in each file
IDS = list(range(sum(COUNTS)))
HERE, FORKED, SPAWNED = (0, None), (3, "fork"), (2, "spawn")


class LoaderContract:
    """A loader is a function that can be called in another process.

    It takes a folder of files, and a crew: how many worker processes are to be started, and in which way. It returns
    the ids of the records in each batch of four, in the order in which they come, and the state behind the last. With
    `stop` it ends after so many batches, and with `state` it goes on from there.
    """

    load: ClassVar[Callable[..., tuple[list[list[int]], Any]]]
    most: ClassVar[Any] = FORKED  # the crew where starting one another way would show nothing new

    @pytest.fixture(params=["here", "most"])
    def crew(self, request: pytest.FixtureRequest) -> Any:
        return HERE if request.param == "here" else self.most

    @pytest.mark.parametrize("crew", [HERE, (1, "fork"), FORKED, SPAWNED], ids=["here", "one", "forked", "spawned"])
    def test_every_record_comes_once(self, tmp_path: Path, crew: Any, elsewhere: Elsewhere) -> None:
        save_many(tmp_path, COUNTS)

        batches, _ = elsewhere(type(self).load, str(tmp_path), crew)

        assert sorted(number for batch in batches for number in batch) == IDS

    def test_goes_on_from_its_state(self, tmp_path: Path, crew: Any, elsewhere: Elsewhere) -> None:
        save_many(tmp_path, COUNTS)
        whole, _ = elsewhere(type(self).load, str(tmp_path), crew)

        first, state = elsewhere(type(self).load, str(tmp_path), crew, stop=2)
        rest, _ = elsewhere(type(self).load, str(tmp_path), crew, state=state)

        assert (first, rest) == (whole[:2], whole[2:])

    def test_an_empty_dataset_gives_nothing(self, tmp_path: Path, crew: Any, elsewhere: Elsewhere) -> None:
        save_many(tmp_path, [0, 0])

        batches, _ = elsewhere(type(self).load, str(tmp_path), crew)

        assert batches == []

    def test_damage_arrives_with_file_and_record(self, tmp_path: Path, crew: Any, elsewhere: Elsewhere) -> None:
        damaged = save_many(tmp_path, COUNTS)[2]
        flip(damaged, offset_of(damaged, 6) + 20)

        with pytest.raises(
            CorruptRecordError, match=r"data-002\.tfrecord: record 6 at byte \d+: the payload's checksum"
        ):
            elsewhere(type(self).load, str(tmp_path), crew)
