"""Options: the arguments of a writer, checked once, and stored so that resuming does the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from recordkit.codecs import CODECS, library_name
from recordkit.engines import AUTO, count
from recordkit.errors import SchemaError
from recordkit.storage.format import FormatMismatch, anything
from recordkit.wording import parse_size, whole_number

if TYPE_CHECKING:
    from recordkit.codecs import Compression
    from recordkit.engines import Workers

# Called with the error, the row and its number; returns a row to write instead, or None to skip it.
OnError: TypeAlias = Literal["raise", "skip"] | Callable[[SchemaError, Any, int], Mapping[str, Any] | None]

SHARD_SIZE = "256MB"
MOST_SHARDS = 100_000  # names have five digits


@dataclass(frozen=True)
class Options:
    """How to write; `recordkit.create` documents each option."""

    shard_bytes: int | None
    shard_records: int | None
    shards: int | None
    rows: int | None
    compression: Compression
    level: int
    on_error: OnError
    workers: int
    sync: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        *,
        lone: bool,
        shard_size: int | str | None = None,
        shards: int | None = None,
        records_per_shard: int | None = None,
        rows: int | None = None,
        compression: Compression = None,
        level: int = 6,
        on_error: OnError = "raise",
        workers: Workers = AUTO,
        sync: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> Options:
        """Check the options; raise `ValueError` for those that make no sense."""
        given = {"shard_size": shard_size, "shards": shards, "records_per_shard": records_per_shard}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) > 1:
            message = f"{' and '.join(chosen)} both decide where shards end: pass only one of them"
            raise ValueError(message)
        if lone and chosen:
            message = f"a lone file has no shards: leave out {chosen[0]}, or pass a folder as the target"
            raise ValueError(message)
        for name in ("shards", "records_per_shard"):
            if given[name] is not None:
                whole_number(given[name], name, least=1)
        if shards is not None and shards > MOST_SHARDS:
            message = f"shards is at most {MOST_SHARDS:,}, found {shards:,}"
            raise ValueError(message)
        if rows is not None:
            whole_number(rows, "rows")
        if compression not in CODECS:
            message = f'compression is None, "gzip" or "zlib", found {compression!r}'
            raise ValueError(message)
        if isinstance(level, bool) or level not in range(10):
            message = f"a compression level is 0 to 9, found {level!r}"
            raise ValueError(message)
        if not callable(on_error) and on_error not in ("raise", "skip"):
            message = f'on_error is "raise", "skip" or a function of (error, row, number), found {on_error!r}'
            raise ValueError(message)
        return cls(
            shard_bytes=None
            if lone or shards or records_per_shard
            else parse_size(SHARD_SIZE if shard_size is None else shard_size),
            shard_records=records_per_shard,
            shards=shards,
            rows=rows,
            compression=compression,
            level=level,
            on_error=on_error,
            workers=count(workers),
            sync=sync,
            metadata=_json_value(metadata or {}),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the options that decide which bytes are written, for `run.json`."""
        decisive: dict[str, Any] = {
            "shard_bytes": self.shard_bytes,
            "shard_records": self.shard_records,
            "shards": self.shards,
            "rows": self.rows,
            "compression": self.compression,
        }
        if self.compression is not None:
            decisive |= {"level": self.level, "library": library_name(self.compression)}
        return decisive


def _json_value(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
        anything(value)
    except (TypeError, ValueError, RecursionError, FormatMismatch) as error:
        message = f"metadata is kept as JSON: {error}"
        raise ValueError(message) from None
    return value
