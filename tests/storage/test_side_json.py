"""Side files of JSON are read as they are declared, or refused with what was expected and found."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordkit as rk
from recordkit.storage.format import side_json as declare
from tests.storage import ways

if TYPE_CHECKING:
    from collections.abc import Callable

NOTE = declare.JsonFormat(
    "note",
    {
        1: declare.record({"format": declare.number(), "old": declare.true_or_false}),
        2: declare.record(
            {
                "format": declare.number(),
                "names": declare.array(declare.file_name),
                "sizes": declare.table(declare.number(1, 10)),
                "kind": declare.one_of("a", "b", None),
            },
            {"more": declare.or_null(declare.anything)},
        ),
    },
    "Write another one.",
)
SOUND: dict[str, Any] = {"format": 2, "names": ["x", "y"], "sizes": {"x": 7}, "kind": None, "more": {"z": [1.5, "t"]}}
NAN, DEEP = float("nan"), json.loads("[" * 80 + "]" * 80)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def refused(data: bytes) -> str:
    with pytest.raises(rk.StorageError) as caught:
        NOTE.parse(data, "here")
    return str(caught.value)


class TestDeclared:
    @pytest.mark.parametrize("value", [SOUND, {"format": 1, "old": True}, {k: SOUND[k] for k in SOUND if k != "more"}])
    def test_what_is_as_declared_is_given(self, value: Any) -> None:
        assert NOTE.parse(json.dumps(value).encode(), "here") == value

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"names": ["x", "../y"]}, 'names[1]: expected the plain name of a file, found "../y"'),
            ({"names": "x"}, 'names: expected a list, found "x"'),
            ({"sizes": {"x": 0}}, "sizes.x: expected a whole number from 1 to 10, found 0"),
            ({"sizes": {"x": 11}}, "sizes.x: expected a whole number from 1 to 10, found 11"),
            ({"sizes": {"x": True}}, "sizes.x: expected a whole number from 1 to 10, found true"),
            ({"sizes": {"x": 2.0}}, "sizes.x: expected a whole number from 1 to 10, found 2.0"),
            (
                {"sizes": {"x": 1 << 4000}},
                "sizes.x: expected a whole number from 1 to 10, found a number of 4,001 bits",
            ),
            ({"sizes": []}, "sizes: expected an object, found a list of 0"),
            ({"kind": "c"}, 'kind: expected "a" or "b" or null, found "c"'),
            ({"kind": "c" * 99}, 'kind: expected "a" or "b" or null, found text of 99 characters'),
            ({"more": NAN}, "expected finite numbers, found NaN"),
            ({"more": DEEP}, "more: expected at most 64, found more lists and objects within each other"),
            ({"mood": 1}, "expected no keys but format, names, sizes, kind, more, found mood"),
            ({"format": 3}, "the note has format 3, and this recordkit knows 2\n  Install a newer recordkit."),
            ({"format": 0}, "format: expected a whole number from 1 up, found 0"),
            ({"format": "2"}, 'format: expected a whole number from 1 up, found "2"'),
            ({"format": 1}, "expected the key old, found format, names, sizes, kind, more"),
        ],
    )
    def test_what_is_not_is_named(self, change: dict[str, Any], words: str) -> None:
        message = refused(json.dumps({**SOUND, **change}).encode())

        assert message.startswith("here: ")
        assert words in message
        assert message.endswith(("\n  Write another one.", "\n  Install a newer recordkit."))

    def test_a_key_that_is_there_twice_is_named(self) -> None:
        assert "expected every key once, found kind twice" in refused(b'{"format": 2, "kind": "a", "kind": "b"}')

    @pytest.mark.parametrize("key", list(SOUND)[:-1])
    def test_a_key_that_is_not_there_is_named(self, key: str) -> None:
        assert f"expected the key {key}, found" in refused(
            json.dumps({k: SOUND[k] for k in SOUND if k != key}).encode()
        )

    @pytest.mark.parametrize(
        "data", [b"", b"{", b"\xff", b"[" * 100_000, b"1e999", b"1" * 5000, b'{"format": 2,}', b"\0"]
    )
    def test_what_is_no_json_is_refused(self, data: bytes) -> None:
        assert refused(data).startswith("here: this is no sound note: ")

    @given(json_values)
    def test_anything_is_as_declared_or_refused(self, value: Any) -> None:
        for key in SOUND:
            try:
                found = NOTE.parse(json.dumps({**SOUND, key: value}).encode(), "here")
            except rk.StorageError:
                continue
            assert found == {**SOUND, key: value}
            NOTE.check(found, "here")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


class TestFiles:
    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (pipe, "expected a file, found a pipe"),
            (listener, "expected a file, found a socket"),
            (endless, "expected a file, found a device"),
            (Path.mkdir, "expected a file, found a folder"),
            (huge, "expected at most 67,108,864 bytes, found 1099511627776"),
        ],
    )
    def test_what_is_no_file_is_refused_at_once(self, make: Callable[[Path], None], words: str) -> None:
        with ways.folder() as folder:
            make(folder / "note.json")

            with pytest.raises(rk.StorageError, match=words):
                NOTE.load(folder / "note.json")
            with pytest.raises(FileNotFoundError):
                NOTE.load(folder / "none.json")
