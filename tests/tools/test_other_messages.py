"""Messages that pass for Examples: no tool takes their bytes for fields, and each says what they look like."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import pytest

import recordkit as rk
from recordkit import records
from recordkit.cli import main
from tests import wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def ranked(number: int, *, context: bool) -> bytes:
    """An ExampleListWithContext, as TF-Ranking writes them: examples under 1, their context under 2."""
    items = [wire.example(wire.entry("rank", wire.ints(each)), wire.entry("score", wire.ints(3))) for each in (1, 2)]
    query = wire.example(wire.entry("query", wire.ints(number)))
    return b"".join(field(1, item) for item in items) + (field(2, query) if context else b"")


def metrics(number: int) -> bytes:
    """A MetricsForSlice, as TFMA writes them: a slice's column and its value; then names and values of metrics."""
    part = field(1, b"trip_start_hour") + bytes([4 << 3, number])
    return field(1, field(1, part)) + field(8, field(1, b"accuracy"))


LISTS, MESSAGE = "ExampleListWithContext, as in TF-Ranking", "a protobuf message, but not an Example"
OTHERS = {
    "ranking": ([ranked(number, context=False) for number in range(5)], LISTS),
    "ranking with context": ([ranked(number, context=True) for number in range(5)], LISTS),
    "tfma": ([metrics(number) for number in range(5)], MESSAGE),
    "tfma validation": ([b"\x08\x01"], MESSAGE),
    "events": ([b"\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0dbrain.Event:2"] * 3, "tf.Event, as TensorBoard reads"),
    "text": ([b"a line", b"another"], "text"),
    "bytes": ([b"\xff\xfe\xfd" * 9], "bytes, but not an Example"),
}
TOOLS: dict[str, Callable[[Any, Any], Any]] = {
    "select": lambda path, out: rk.open(path).select("rank"),
    "drop": lambda path, out: rk.open(path).drop("rank"),
    "to_arrow": lambda path, out: rk.open(path).to_arrow(),
    "stats": lambda path, out: rk.stats(path),
    "infer": lambda path, out: rk.Schema.infer(records.chunk(path.read_bytes())),
    "add_fields": lambda path, out: rk.add_fields(path, {"one": 1}),
    "add_fields to": lambda path, out: rk.add_fields(path, {"one": 1}, out=out),
    "drop_fields": lambda path, out: rk.drop_fields(path, ["rank"]),
    "drop_fields to": lambda path, out: rk.drop_fields(path, ["rank"], out=out),
    "rename_fields": lambda path, out: rk.rename_fields(path, {"rank": "place"}, out=out),
    "cast_fields": lambda path, out: rk.cast_fields(path, {"rank": "int32"}, out=out),
    "filter": lambda path, out: rk.filter(path, "rank > 1", out=out),
    "delete": lambda path, out: rk.delete(path, where="rank > 1"),
}


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[bytes], str]:
    payloads, words = OTHERS[request.param]
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(map(records.pack, payloads)))
    return path, payloads, words


def test_is_read_as_payloads(other: tuple[Path, list[bytes], str]) -> None:
    path, payloads, _ = other
    ds = rk.open(path)

    assert ds.schema is None
    assert list(ds) == payloads
    assert "payloads, which are no Examples" in repr(ds)


@pytest.mark.parametrize("tool", TOOLS)
def test_is_refused_with_what_it_looks_like(tool: str, other: tuple[Path, list[bytes], str], tmp_path: Path) -> None:
    path, _, words = other
    before, there = path.read_bytes(), set(tmp_path.rglob("*"))

    with pytest.raises((rk.SchemaError, rk.CorruptRecordError)) as caught:
        TOOLS[tool](path, tmp_path / "out")

    if tool != "infer":  # which says at which byte the bytes of some are no message
        assert words in str(caught.value)
    assert path.read_bytes() == before
    assert set(tmp_path.rglob("*")) == there


def test_info_says_the_same(other: tuple[Path, list[bytes], str], capsys: pytest.CaptureFixture[str]) -> None:
    path, _, words = other

    assert main(["info", str(path)]) == 0

    assert f"  message     {words}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "payloads",
    [
        [wire.example(wire.entry("a", wire.ints(1)))],
        [b"", b"\n\0"],
        [bytes.fromhex("0a070a050a01611200")],  # a feature without a kind
        [wire.example(wire.entry("a", wire.ints(1))) + field(15, b"more")],  # and a field of a later version
    ],
)
def test_what_others_write_as_examples_stays_one(payloads: list[bytes]) -> None:
    inferred = rk.Schema.infer(records.pack_many(payloads))

    assert operator.contains([("a",), ()], inferred.names)
