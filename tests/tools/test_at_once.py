"""Changes at once: what has returned has happened, what has raised has not, in one order for all."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from tests import chance
from tests.dataset.bases import read
from tests.tools.at_once import UNEXPECTED, WAYS, Hands, changed, sound

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tools.at_once import Row

ROUNDS = 40
_PROCESSES = 4


def possible(rows: list[Row], ways: list[tuple[str, int]], answers: list[int | str]) -> list[list[Row]]:
    """All that may be there when those changes have happened that say so, in any order."""
    done = [(way, answer) for way, answer in zip(ways, answers, strict=True) if isinstance(answer, int)]
    found = []
    for order in itertools.permutations(done):
        state: list[Row] | None = rows
        for (way, number), answer in order:
            made = changed(way, state, number) if state is not None else None
            state = made[0] if made is not None and made[1] == answer else None
        if state is not None:
            found.append(state)
    return found


def comparable(rows: list[Row]) -> list[list[tuple[str, str]]]:
    return [sorted((name, repr(value)) for name, value in row.items()) for row in rows]


@pytest.mark.slow
@pytest.mark.drawn
@pytest.mark.parametrize("lone", [False, True])
def test_is_as_if_one_had_come_after_the_other(tmp_path: Path, lone: bool) -> None:
    draw = chance.generator(f"at once {lone}")
    begun = 0
    with Hands(_PROCESSES) as hands:
        for number in range(ROUNDS):
            root = tmp_path / f"{number}"
            root.mkdir()
            path = root / ("one.tfrecord" if lone else "base")
            rows: list[Row] = [{"id": at, "a": at * 10} for at in range(20)]
            rk.write(path, rows, sync=False)
            rk.write(root / "sound.tfrecord", sound(), sync=False)
            every = [way for way in WAYS if lone or way != "repair"]
            ways: list[tuple[str, int]] = [
                (draw.choice(every), draw.randrange(1, 200)) for _ in range(draw.randrange(2, _PROCESSES + 1))
            ]

            answers: list[Any] = hands.make(path, ways)

            assert not [answer for answer in answers if str(answer).startswith(UNEXPECTED)]
            begun += sum(isinstance(answer, int) for answer in answers)
            expected = [comparable(state) for state in possible(rows, ways, answers)]
            assert comparable(read(path)) in expected, (ways, answers)
            assert rk.verify(path).ok
            assert not list(root.rglob("_recordkit/lock"))
            shutil.rmtree(root)
    assert begun > ROUNDS
