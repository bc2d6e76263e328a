"""recordkit."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import columns
import numpy as np
from columns import Digest, Lists
from competitors import fields as new_fields
from competitors import pipes, reading
from competitors.reading import plain
from worker import Done, Request, Work, serve
from workloads import as_values

import recordkit as rk
from recordkit import _core, examples
from recordkit.columns import BytesColumn
from recordkit.examples import Decoder, Feature
from recordkit.records import Chunk, Reader
from recordkit.schema import Schema

Some = tuple[int, dict[str, Any]]  # rows and columns
Read = Callable[[Reader, int], Some | None]


def scan(request: Request) -> Work:
    """Read every record and check both CRCs."""

    def work(digest: Digest | None) -> int:
        sizes: list[tuple[int, int]] = []

        def pull() -> None:
            for chunk in reader:
                sizes.append((len(chunk), chunk.nbytes - 16 * len(chunk)))

        with Path(request["file"]).open("rb") as file:
            reader = Reader(file)
            in_threads(pull, request.get("threads", 1))
        records = sum(count for count, _ in sizes)
        if digest:
            digest.add("records and bytes", np.array([records, sum(size for _, size in sizes)]))
        return records

    return work


def decode(request: Request) -> Work:
    """Read, check and decode the fields asked for, in batches; threads take them from one reader in turn.

    What others have written may be several files, and compressed. With `dataset`, all of it goes through `rk.open`.
    """
    if request.get("dataset"):
        return reading.batches(request)
    names = request.get("select") or list(request["fields"])
    fields = {name: request["fields"][name] for name in names}
    through = schema_read if request.get("schema") else plain_read
    read_some, batch = through(fields), request["batch"]
    files = [request["file"]] if isinstance(request["file"], str) else request["file"]
    opened = gzip.open if request.get("compression") else open

    def work(digest: Digest | None) -> int:
        return sum(read(path, digest) for path in files)

    def read(path: str, digest: Digest | None) -> int:
        counts: list[int] = []
        batches: list[tuple[int, dict[str, Any]]] = []
        turn = threading.Lock()  # whose number tells where a batch belongs; nobody waits for it while time is taken

        def pull() -> None:
            while True:
                with turn if digest else nullcontext():
                    first = reader.next_record if digest else 0
                    some = read_some(reader, batch)
                if some is None:
                    return
                rows, values = some
                counts.append(rows)
                if digest:
                    batches.append((first, values))

        with opened(path, "rb") as file:
            reader = Reader(file)
            in_threads(pull, request.get("threads", 1))
        if digest:
            for _, values in sorted(batches, key=lambda pair: pair[0]):
                digest.add_columns({name: plain(column) for name, column in values.items()})
        return sum(counts)

    return work


def plain_read(fields: dict[str, str]) -> Read:
    """The wire's kinds and counts: `examples.Decoder`."""
    decoder = Decoder([feature(name, declared) for name, declared in fields.items()])

    def run(reader: Reader, records: int) -> Some | None:
        decoded = decoder.read(reader, records)
        if decoded is None:
            return None
        return len(decoded), {name: ragged(decoded[name]) for name in fields}

    return run


def feature(name: str, declared: str) -> Feature:
    base, _, dims = declared.partition("[")
    kind = {"int64": "int64", "float32": "float"}.get(base, "bytes")
    return Feature(name, kind, None if dims == "?]" else int(dims[:-1] or 1))  # type: ignore[arg-type]


def ragged(values: examples.Values) -> Any:
    return values.values if values.offsets is None else Lists(values.values, values.offsets)


def schema_read(fields: dict[str, str]) -> Read:
    """Declared dtypes and shapes: `rk.Schema`."""
    schema = Schema(fields)

    def run(reader: Reader, records: int) -> Some | None:
        batch = schema.read(reader, records)
        if batch is None:
            return None
        return len(batch), {name: batch[name] for name in fields}

    return run


def encode(request: Request) -> Work:
    """Make framed records of columns or of dicts, some at a time; in memory unless `written`."""
    drawn = columns.rows(columns.load(request["folder"], request["fields"]), 0, request["records"])
    chunks = {"columns": of_columns, "schema": of_schema, "dicts": of_dicts}[request["source"]](drawn, request)

    def work(digest: Digest | None) -> int:
        done = 0
        if digest or request.get("written"):
            with Path(request["output"]).open("wb", buffering=0) as file:
                for chunk in chunks():
                    file.write(chunk)
                    done += len(chunk)
        else:
            for chunk in chunks():
                done += len(chunk)
        return done

    return work


def of_columns(drawn: columns.Columns, request: Request) -> Callable[[], Iterator[Chunk]]:
    def chunks() -> Iterator[Chunk]:
        for start, stop in spans(request):
            part = {name: as_values(column) for name, column in columns.rows(drawn, start, stop).items()}
            yield examples.encode(part, stop - start)

    return chunks


def of_schema(drawn: columns.Columns, request: Request) -> Callable[[], Iterator[Chunk]]:
    schema = Schema(request["fields"])

    def chunks() -> Iterator[Chunk]:
        for start, stop in spans(request):
            yield schema.encode({name: column[start:stop] for name, column in drawn.items()})

    return chunks


def of_dicts(drawn: columns.Columns, request: Request) -> Callable[[], Iterator[Chunk]]:
    schema = Schema(request["fields"])
    rows = columns.dicts(drawn)

    def chunks() -> Iterator[Chunk]:
        for start, stop in spans(request):
            yield schema.encode_rows(rows[start:stop])

    return chunks


def write(request: Request) -> Work:
    """Write a dataset of columns, of rows or of payloads that are ready."""
    put = {"columns": put_columns, "rows": put_rows, "payloads": put_payloads}[request["source"]](request)
    target, options = Path(request["output"]).with_suffix(""), writer_options(request)

    def work(digest: Digest | None) -> int:
        return put(target, options).records

    return work


Put = Callable[[Path, dict[str, Any]], rk.storage.Written]


def writer_options(request: Request) -> dict[str, Any]:
    given = {key: request[key] for key in ("compression", "level") if key in request}
    return {"sync": request.get("sync", False), **given}


def put_columns(request: Request) -> Put:
    drawn = columns.load(request["folder"], request["fields"])
    taken = {name: column_of(column) for name, column in columns.rows(drawn, 0, request["records"]).items()}
    return lambda target, options: rk.write(target, taken, request["fields"], **options)


def column_of(column: Any) -> Any:
    """A column as writers take it."""
    return BytesColumn(*column) if isinstance(column, Lists) else column


def put_rows(request: Request) -> Put:
    rows = columns.dicts(columns.rows(columns.load(request["folder"], request["fields"]), 0, request["records"]))

    def put(target: Path, options: dict[str, Any]) -> rk.storage.Written:
        with rk.create(target, request["fields"], **options) as writer:
            for row in rows:
                writer.write(row)
        return writer.close()

    return put


def put_payloads(request: Request) -> Put:
    with open(request["file"], "rb") as file:
        chunk = Reader(file).read(request["records"])
    payloads = list(chunk or ())

    def put(target: Path, options: dict[str, Any]) -> rk.storage.Written:
        with rk.create(target, **options) as writer:
            for payload in payloads:
                writer.write_raw(payload)
        return writer.close()

    return put


def memory(request: Request) -> Work:
    """Write a lot in a process of its own, and say how much memory that took."""
    command = [sys.executable, "-m", "competitors.memory", json.dumps(request | {"options": writer_options(request)})]

    def work(digest: Digest | None) -> Done:
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return Done(**json.loads(said))

    return work


def spans(request: Request) -> Iterator[tuple[int, int]]:
    """The records of each chunk that is encoded."""
    count, size = request["records"], request["rows"]
    return ((start, min(count, start + size)) for start in range(0, count, size))


def in_threads(target: Callable[[], None], count: int) -> None:
    """Run the same work in so many threads, and raise what any of them raised."""
    if count == 1:
        target()
        return
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            target()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


if __name__ == "__main__":
    about = {"recordkit": version("recordkit"), "numpy": np.__version__, "crc": _core.crc32c_path()}
    jobs = {"scan": scan, "decode": decode, "encode": encode, "write": write, "memory": memory}
    serve(about, jobs | reading.JOBS | new_fields.JOBS | pipes.JOBS)
