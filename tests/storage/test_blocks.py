from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from recordkit import _core, records
from recordkit.storage.write import _blocks
from recordkit.storage.write._blocks import BlockSplitter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from recordkit.storage.write._blocks import Block

# A payload, or None for a row that is skipped.
rows = st.lists(st.none() | st.integers(0, 60).map(bytes), max_size=30)
limits = st.fixed_dictionaries(
    {
        "block_bytes": st.none() | st.integers(1, 200),
        "shard_bytes": st.none() | st.integers(1, 300),
        "shard_records": st.none() | st.lists(st.integers(1, 5), max_size=8),
    }
)


def cut(rows: Sequence[bytes | None], sizes: Sequence[int], limits: dict[str, Any]) -> list[Block]:
    """The blocks of rows that are handed in in chunks of these sizes, the rest one by one."""
    cutter = BlockSplitter(**limits, first_row=0)
    blocks: list[Block] = []
    for chunk in chunks(rows, list(sizes)):
        if chunk is None:
            blocks += cutter.skip(b"a bad row\n")
        else:
            blocks += cutter.cut(records.pack_many(chunk))
    return blocks + list(cutter.rest())


def chunks(rows: Sequence[bytes | None], sizes: list[int]) -> Iterator[list[bytes] | None]:
    pending: list[bytes] = []
    for row in rows:
        if row is not None:
            pending.append(row)
        if pending and (row is None or len(pending) >= (sizes[0] if sizes else 1)):
            yield pending
            pending, sizes = [], sizes[1:]
        if row is None:
            yield None
    if pending:
        yield pending


def framed(block: Block) -> bytes:
    return b"".join(bytes(memoryview(piece)) for piece in block.pieces)


def shards(blocks: Sequence[Block]) -> list[bytes]:
    """The bytes between the places where shards end."""
    found = [b""]
    for block in blocks:
        found[-1] += framed(block)
        if block.ends_shard:
            found.append(b"")
    return found


class TestCutter:
    @given(rows, st.lists(st.integers(1, 8)), st.lists(st.integers(1, 8)), limits)
    def test_shards_end_at_the_same_records_however_they_came(
        self, rows: list[bytes | None], sizes: list[int], others: list[int], limits: dict[str, Any]
    ) -> None:
        one, other = cut(rows, sizes, limits), cut(rows, others, limits)

        assert shards(one) == shards(other)

    @given(rows, st.lists(st.integers(1, 8)), st.lists(st.integers(1, 8)), limits.filter(lambda of: of["block_bytes"]))
    def test_blocks_are_the_same_however_the_records_came(
        self, rows: list[bytes | None], sizes: list[int], others: list[int], limits: dict[str, Any]
    ) -> None:
        one, other = cut(rows, sizes, limits), cut(rows, others, limits)

        assert [(framed(block), block.bad, block.bad_within, block.end_row) for block in one] == [
            (framed(block), block.bad, block.bad_within, block.end_row) for block in other
        ]

    @given(rows, st.lists(st.integers(1, 8)), limits)
    def test_all_records_come_out_in_order_with_their_facts(
        self, rows: list[bytes | None], sizes: list[int], limits: dict[str, Any]
    ) -> None:
        blocks = cut(rows, sizes, limits)

        good = [row for row in rows if row is not None]
        assert b"".join(map(framed, blocks)) == b"".join(map(records.pack, good))
        assert [length for block in blocks for length in block.lengths()] == [len(row) for row in good]
        for block in blocks:
            assert block.raw_bytes == len(framed(block))
            assert block.records == len(block.lengths())
            assert block.crc() == _core.crc32c(framed(block))

    @given(rows, st.lists(st.integers(1, 8)), limits)
    def test_blocks_stand_for_all_rows_in_order(
        self, rows: list[bytes | None], sizes: list[int], limits: dict[str, Any]
    ) -> None:
        blocks = cut(rows, sizes, limits)

        assert [block.first_row for block in blocks] == [0, *(block.end_row for block in blocks)][: len(blocks)]
        for block in blocks:
            taken = rows[block.first_row : block.end_row]
            assert block.records + len(block.bad) + len(block.bad_within) == len(taken)
            assert taken[: len(block.bad)] == [None] * len(block.bad)
            assert taken[len(block.bad) : len(block.bad) + 1] != [None]

    @given(rows, st.integers(1, 200))
    def test_a_block_is_as_many_records_as_fill_it(self, rows: list[bytes | None], size: int) -> None:
        good = [row for row in rows if row is not None]

        blocks = cut(good, [len(good)], {"block_bytes": size, "shard_bytes": None, "shard_records": None})

        for block in blocks[:-1]:
            last = int(block.lengths()[-1]) + 16
            assert block.raw_bytes >= size > block.raw_bytes - last

    @given(st.lists(st.integers(1, 5), min_size=1), st.lists(st.integers(1, 8)))
    def test_shards_have_the_numbers_of_records_asked_for(self, counts: list[int], sizes: list[int]) -> None:
        rows = [b"payload"] * sum(counts)

        blocks = cut(rows, sizes, {"block_bytes": None, "shard_bytes": None, "shard_records": counts})

        ends = [0, *(block.end_row for block in blocks if block.ends_shard)]
        assert [stop - start for start, stop in pairwise(ends)] == counts

    def test_bad_rows_without_end_are_handed_on_before_memory_is_full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_blocks, "MEMBER_BYTES", 100)

        blocks = cut([b"good", *[None] * 50], [1], {"block_bytes": 1000, "shard_bytes": None, "shard_records": None})

        assert [len(block.bad) + len(block.bad_within) for block in blocks] == [10] * 5
