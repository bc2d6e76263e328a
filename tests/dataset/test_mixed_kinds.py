"""Records that have lists of two kinds under one name: the other fields are as if it were not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import recordkit as rk
from recordkit import examples, records
from recordkit.examples import Values
from tests.chance import generator

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("int64", "float", "bytes")


def values(kind: str, number: int) -> Values:
    if kind == "bytes":
        return Values("bytes", [str(number).encode()], count=1)
    return Values(kind, np.array([number], np.int64 if kind == "int64" else np.float32), count=1)  # type: ignore[arg-type]


def payload(number: int, kind: str | None) -> bytes:
    mixed = {} if kind is None else {"mixed": values(kind, number)}
    return examples.encode({"id": values("int64", number), **mixed, "word": values("bytes", number)}, 1)[0]


@pytest.mark.drawn
def test_all_else_is_read_and_changed_as_without_it(tmp_path: Path) -> None:
    chance = generator("mixed kinds")
    for round_ in range(10):
        kinds = [chance.choice([*KINDS, None]) for _ in range(chance.randrange(2, 20))]
        kinds[:2] = ["int64", chance.choice(["float", "bytes"])]
        chance.shuffle(kinds)
        mixed, plain = tmp_path / f"mixed{round_}.tfrecord", tmp_path / f"plain{round_}.tfrecord"
        mixed.write_bytes(b"".join(records.pack(payload(number, kind)) for number, kind in enumerate(kinds)))
        plain.write_bytes(b"".join(records.pack(payload(number, None)) for number in range(len(kinds))))

        ds, expected = rk.open(mixed), rk.open(plain)
        assert ds.schema == expected.schema
        assert list(ds) == list(expected)
        assert list(ds.head().rows()) == list(expected.head().rows())
        assert list(ds.shuffle(1)) == list(expected.shuffle(1))
        assert rk.stats(mixed) == rk.stats(plain)
        assert rk.verify(mixed).ok

        rk.add_fields(mixed, {"one": 1}, sync=False)
        assert [row["one"] for row in rk.open(mixed)] == [1] * len(kinds)
        rk.bake(mixed, tmp_path / f"baked{round_}.tfrecord", sync=False)
        assert [row["id"] for row in rk.open(tmp_path / f"baked{round_}.tfrecord")] == list(range(len(kinds)))

        for kind, dtype in (("int64", "int64"), ("float", "float32"), ("bytes", "bytes")):
            ds = rk.open(mixed, schema={"mixed": f"{dtype}[?]?", ...: ...}, on_error="skip", overlays=False)
            assert len(list(ds)) == sum(each in (kind, None) for each in kinds)
            assert [damage.record for damage in ds.damage] == [
                number for number, each in enumerate(kinds) if each not in (kind, None)
            ]
