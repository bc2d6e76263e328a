"""Ways to write the same rows: how they are handed in, and where shards end."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recordkit.storage.write import Writer

compressions = st.sampled_from([None, "gzip", "zlib"])
# How many rows to hand in at a time: 0 stands for one by itself, other numbers for a batch.
steps = st.lists(st.integers(0, 7), max_size=6)


def shardings(rows: int) -> st.SearchStrategy[dict[str, Any]]:
    """Options that say where shards end, for writers that can be resumed."""
    return st.one_of(
        st.just({}),
        st.fixed_dictionaries({"shard_size": st.integers(1, 400)}),
        st.fixed_dictionaries({"records_per_shard": st.integers(1, 5)}),
        st.fixed_dictionaries({"shards": st.integers(1, 4), "rows": st.just(rows)}),
    )


def write_in_steps(writer: Writer, rows: Sequence[dict[str, Any]], steps: Iterable[int]) -> None:
    """Write rows one by one and in batches, as the steps say; what they leave over in one batch."""
    at = 0
    for step in steps:
        if step == 0 and at < len(rows):
            writer.write(rows[at])
        elif rows[at : at + step]:
            writer.write_batch(columns_of(rows[at : at + step]))
        at += max(1, step)
    if rows[at:]:
        writer.write_batch(columns_of(rows[at:]))


def columns_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}


class StopError(Exception):
    """The program's own failure, in the middle of a run."""


def break_off(writer: Writer, *ids: Any) -> None:
    """Write rows with these ids, and fail."""
    for number in ids:
        writer.write({"id": number})
    raise StopError


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for one example of a law; `tmp_path` is shared by all of them."""
    with TemporaryDirectory() as name:
        yield Path(name)
