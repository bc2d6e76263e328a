"""App: the HTTP API of the page. Each request runs in a thread, and none of them writes."""

from __future__ import annotations

import random
import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from recordkit.columns import BytesColumn
from recordkit.errors import CorruptRecordError, RecordKitError

from . import _media
from ._boxes import boxes_in
from ._cells import LARGE, SMALL, cell
from ._dataset_view import Failed, NotCountedError, batched
from ._guard import LOOPBACK, Guard
from ._jobs import Jobs
from ._overview import files, overview
from ._scan import Scan
from ._tasks import Counting, Statistics, Verifying
from ._wire_layout import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from ._boxes import Boxes
    from ._cells import CellLimits
    from ._dataset_view import DatasetView, Row
    from ._file_view import FileView
    from ._jobs import Job

_STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_MOST_ROWS: Final = 200
_MOST_FIELDS: Final = 64  # in one page of records
_MOST_STATISTICS: Final = 32  # fields at a time
_FIELDS_AT_ONCE: Final = 200  # of one record, or of the schema
_HEX: Final = 4096
_BUDGET: Final = 20.0  # seconds until a scan pauses and asks whether to continue
_LARGE_AT_ONCE: Final = 2  # thumbnails that are made
_RAW: Final = "default-src 'none'; sandbox"


def viewer_app(view: DatasetView, token: str, *, hosts: Sequence[str] = LOOPBACK, jobs: Jobs | None = None) -> ASGIApp:
    """Return the app that serves a dataset.

    Args:
        view: The dataset to show.
        token: The first part of every path.
        hosts: The host names that requests may use.
        jobs: The background jobs.
    """
    return Guard(_Api(view, jobs or Jobs()).app(), token, hosts)


class _Api:
    """The API: one method for each route."""

    def __init__(self, view: DatasetView, jobs: Jobs) -> None:
        self._view = view
        self._jobs = jobs
        self._counting = jobs[jobs.start("count", Counting(view))]
        self._few = threading.BoundedSemaphore(_LARGE_AT_ONCE)
        self._static = {path.name: path for path in _STATIC.iterdir() if path.suffix in _TYPES}

    def app(self) -> Starlette:
        """Return all routes."""
        routes = [
            Route("/", self.page),
            Route("/static/{name}", self.page),
            Route("/api/overview", self.overview),
            Route("/api/files", self.files),
            Route("/api/fields", self.fields),
            Route("/api/records", self.records),
            Route("/api/record/{number:int}", self.record),
            Route("/api/record/{number:int}/bytes", self.bytes),
            Route("/api/record/{number:int}/value", self.value),
            Route("/api/record/{number:int}/small", self.small),
            Route("/api/scan", self.scan, methods=["POST"]),
            Route("/api/statistics", self.statistics, methods=["POST"]),
            Route("/api/verify", self.verify, methods=["POST"]),
            Route("/api/jobs/{name}", self.job),
            Route("/api/jobs/{name}/stop", self.stop, methods=["POST"]),
            Route("/api/jobs/{name}/more", self.more, methods=["POST"]),
        ]
        handlers: dict[Any, Callable[..., Response]] = {
            RecordKitError: _said,
            ValueError: _said,
            IndexError: _not_there,
            KeyError: _not_there,
            NotCountedError: _later,
            HTTPException: _refused,
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False  # a redirect would lose the token
        return app

    # --- The page

    def page(self, request: Request) -> Response:
        """Return a static file of the page."""
        path = self._static[request.path_params.get("name", "index.html")]
        return Response(path.read_bytes(), media_type=_TYPES[path.suffix])

    # --- The dataset

    def overview(self, _: Request) -> Response:
        """Return an overview of the dataset."""
        return JSONResponse(overview(self._view) | {"counting": self._counting.report()})

    def files(self, request: Request) -> Response:
        """Return one page of its files."""
        return JSONResponse(files(self._view, _natural(request, "at"), _FIELDS_AT_ONCE))

    def fields(self, request: Request) -> Response:
        """Return one page of the fields whose name contains a word."""
        word, at = request.query_params.get("word", "").lower(), _natural(request, "at")
        schema = self._view.schema
        names = [name for name in schema.names if word in name.lower()] if schema is not None else []
        shown = [self._declared(name) for name in names[at : at + _FIELDS_AT_ONCE]]
        return JSONResponse({"total": len(names), "fields": shown})

    def _declared(self, name: str) -> dict[str, Any]:
        assert self._view.schema is not None
        schema = self._view.schema
        steps = name in schema.sequences
        return {"name": name, "type": str(schema.sequences[name] if steps else schema.fields[name]), "steps": steps}

    # --- Records

    @cached_property
    def _pictures(self) -> list[str]:
        """The fields that hold pictures, according to their types or the first record."""
        schema = self._view.schema
        if schema is None:
            return []
        declared = [name for name in schema.names if _dtype(schema, name) in ("jpeg", "png")]
        maybe = [name for name in schema.fields if _dtype(schema, name) == "bytes"][:_MOST_FIELDS]
        rows = self._view.rows([0], maybe) if maybe and not declared else []
        values = rows[0].values or {} if rows else {}
        return declared or [name for name in maybe if cell(name, values.get(name), SMALL)["k"] == "picture"]

    @cached_property
    def _boxes(self) -> tuple[Boxes, ...]:
        return boxes_in(self._view.schema, self._pictures)

    def _names(self, request: Request) -> list[str]:
        """The fields to show: the requested ones, or pictures first and then the others."""
        if self._view.schema is None:
            return ["payload"]
        known = self._view.schema.names
        asked = [name for name in request.query_params.getlist("field") if name in set(known)][:_MOST_FIELDS]
        framed = {name for boxes in self._boxes for name in boxes.names}  # drawn over the picture
        pictures = self._pictures
        return asked or [*pictures, *(name for name in known if name not in pictures and name not in framed)][:8]

    def records(self, request: Request) -> Response:
        """Return records: from a given number, a random sample, or the results of a scan."""
        names, count = self._names(request), min(_natural(request, "count", 24), _MOST_ROWS)
        at, total = _natural(request, "at"), self._view.count
        scan = self._scan(request)
        report: dict[str, Any] = {}
        if scan is not None:
            report = scan.report()
            numbers = scan.work.numbers(at, count)  # type: ignore[attr-defined]
        elif "seed" in request.query_params:
            numbers = self._sampled(request.query_params["seed"], count)
        else:
            numbers = list(range(at, at + count if total is None else min(at + count, total)))
        needed = [*names, *(name for boxes in self._boxes for name in boxes.names if boxes.picture in names)]
        needed, shown = list(dict.fromkeys(needed)), []
        for some in batched(numbers, self._view.at_once):
            shown += [self._row(row, names, SMALL) for row in self._view.rows(some, needed)]
        return JSONResponse({"fields": names, "rows": shown, "total": total, "scan": report or None})

    def _scan(self, request: Request) -> Job | None:
        name = request.query_params.get("scan")
        return self._jobs[name] if name else None

    def _sampled(self, seed: str, count: int) -> list[int]:
        total = self._view.count if self._view.count is not None else (self._view.ends or [0])[-1]
        # A generator of its own, so that a URL with a seed always shows the same records.
        return sorted(random.Random(seed).sample(range(total), min(count, total)))

    def _row(self, row: Row, names: Sequence[str], limits: CellLimits) -> dict[str, Any]:
        if row.values is None:
            return {"number": row.number, "error": row.error}
        cells = [cell(name, row.values.get(name), limits) for name in names]
        found = [(boxes.picture, boxes.of(row.values)) for boxes in self._boxes if boxes.picture in names]
        return {"number": row.number, "cells": cells, "boxes": {picture: each for picture, each in found if each}}

    def record(self, request: Request) -> Response:
        """Return one record in full."""
        number, at = request.path_params["number"], _natural(request, "at")
        known = self._view.schema.names if self._view.schema is not None else ("payload",)
        names = known[at : at + _FIELDS_AT_ONCE]
        needed = [*names, *(name for boxes in self._boxes for name in boxes.names if boxes.picture in names)]
        rows = self._view.rows([number], list(dict.fromkeys(needed)))
        if not rows:
            raise IndexError(number)
        row = self._row(rows[0], names, LARGE)
        facts = {"fields": [self._declared(n) if n in known and n != "payload" else {"name": n} for n in names]}
        where = self._place(number) if not at else {}
        return JSONResponse(row | facts | where | {"total_fields": len(known), "total": self._view.count})

    def _place(self, number: int) -> dict[str, Any]:
        """Return where a record is in its file, and the layout of its payload."""
        shard, inside = self._counted(number)
        place: dict[str, Any] = {"file": Path(shard.file.name).name, "inside": inside}
        try:
            chunk = shard.one(inside).chunk
        except CorruptRecordError as error:
            offset, frame = _damaged(shard, inside, error)
            facts = {"message": "damaged", "features": []}
            return place | ({"offset": offset, "bytes": len(frame), "layout": facts} if frame else {})
        sizes = {"offset": chunk.file_offset, "bytes": chunk.nbytes, "payload": int(chunk.lengths[0])}
        return place | sizes | {"compression": shard.file.compression, "layout": layout(chunk)}

    def _counted(self, number: int) -> tuple[FileView, int]:
        """Return where a record is.

        Raises:
            NotCountedError: Its file is still being scanned.
        """
        shard, inside = self._view.place(number)
        if shard.count is None:
            raise NotCountedError
        return shard, inside

    def bytes(self, request: Request) -> Response:
        """Return some bytes of a record's frame, even of a damaged record."""
        at = _natural(request, "at")
        shard, inside = self._counted(request.path_params["number"])
        try:
            frame = memoryview(shard.one(inside).chunk)
        except CorruptRecordError as error:
            frame = memoryview(_damaged(shard, inside, error)[1])
        return JSONResponse({"at": at, "total": frame.nbytes, "hex": frame[at : at + _HEX].tobytes().hex()})

    # --- Values: pictures, sounds and everything else

    def _asked(self, request: Request) -> tuple[Any, dict[str, Any], str]:
        """Return the requested value, the values of its record that may be needed with it, and the field."""
        name = request.query_params.get("field", "")
        schema = self._view.schema
        names = [name]
        if schema is not None:
            schema.select(name)
            names += [each for each in schema.fields if each.rpartition("/")[2] in ("sample_rate", "rate", "sr")][:4]
        rows = self._view.rows([request.path_params["number"]], list(dict.fromkeys(names)))
        values = rows[0].values or {} if rows else {}
        value = values.get(name)
        if isinstance(value, BytesColumn):
            value = value.reshape((int(np.prod(value.shape)),))[_natural(request, "item")]
        if value is None or isinstance(value, Failed):
            raise IndexError(name)
        return value, values, name

    def value(self, request: Request) -> Response:
        """Return a whole value: pictures and sounds for display, anything else as a download."""
        value, values, name = self._asked(request)
        if isinstance(value, np.ndarray) and _media.sounds_like(name, value):
            return _raw(_media.wav(value, _media.rate_of(values)), "audio/wav")
        data = value.encode() if isinstance(value, str) else value
        if not isinstance(data, bytes):
            data = np.ascontiguousarray(value).tobytes()
        return _raw(data, _media.media_type(data))

    def small(self, request: Request) -> Response:
        """Return a thumbnail of a picture."""
        with self._few:
            value, _, name = self._asked(request)
            made = _media.small_picture(value) if isinstance(value, bytes) else None
        if made is None:
            raise IndexError(name)
        return _raw(*made)

    # --- Jobs

    def scan(self, request: Request) -> Response:
        """Start filtering and sorting."""
        asked = request.query_params
        scan = Scan(
            self._view, asked.get("where", ""), asked.get("sort", ""), descending=asked.get("order") == "descending"
        )
        return JSONResponse({"job": self._jobs.start("scan", scan, _BUDGET)})

    def statistics(self, request: Request) -> Response:
        """Start computing statistics of fields."""
        schema = self._view.schema
        names = request.query_params.getlist("field")[:_MOST_STATISTICS]
        if schema is None:
            raise IndexError
        schema.select(*names)
        work = Statistics(self._view, names, whole=request.query_params.get("whole") == "yes")
        return JSONResponse({"job": self._jobs.start("statistics", work, _BUDGET)})

    def verify(self, _: Request) -> Response:
        """Start verifying every byte."""
        return JSONResponse({"job": self._jobs.start("verify", Verifying(self._view))})

    def job(self, request: Request) -> Response:
        """Return the progress of a job."""
        job = self._jobs[request.path_params["name"]]
        job.wait(_natural(request, "wait") / 1000 if _natural(request, "wait") <= 2000 else 2)
        return JSONResponse(job.report())

    def stop(self, request: Request) -> Response:
        """Stop a job."""
        job = self._jobs[request.path_params["name"]]
        job.stop()
        job.wait(1)
        return JSONResponse(job.report())

    def more(self, request: Request) -> Response:
        """Continue a job."""
        job = self._jobs[request.path_params["name"]]
        job.more()
        return JSONResponse(job.report())


def _damaged(shard: FileView, inside: int, error: CorruptRecordError) -> tuple[int, bytes]:
    """Return the offset of a damaged record and its bytes; no bytes if it cannot be located."""
    try:
        return shard.damaged_frame(inside, error)
    except (CorruptRecordError, OSError):
        return 0, b""


def _dtype(schema: Any, name: str) -> str:
    return str(getattr(schema.fields.get(name) or schema.sequences.get(name), "dtype", ""))


def _natural(request: Request, name: str, default: int = 0) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else default


def _raw(data: bytes, kind: str | None) -> Response:
    """Return bytes of a record: as a picture, a sound or a download, but never as a page."""
    headers = {"content-security-policy": _RAW}
    if kind is None:
        headers["content-disposition"] = 'attachment; filename="value.bin"'
    return Response(data, media_type=kind or "application/octet-stream", headers=headers)


def _refusal(request: Request, status: int, words: str, **more: bool) -> Response:
    """Return why a request was refused.

    The page gets status 200, because the browser would log anything else as an error of the page.
    """
    plain = request.url.path.startswith("/api/") and not request.url.path.endswith(("/value", "/small"))
    return JSONResponse({"refused": status, "words": words} | more, 200 if plain else status)


def _said(request: Request, error: Exception) -> Response:
    return _refusal(request, 400, str(error))


def _not_there(request: Request, _: Exception) -> Response:
    return _refusal(request, 404, "not found")


def _later(request: Request, _: Exception) -> Response:
    return _refusal(request, 409, "the records are still being counted", later=True)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"words": str(error.detail).lower()}, error.status_code)
