"""Tasks of background jobs: counting, statistics and verifying."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from recordkit import progress, tools
from recordkit.errors import RecordKitError
from recordkit.tools.stats import Accumulator

from ._cells import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recordkit.columns import Batch
    from recordkit.tools import Verified

    from ._dataset_view import DatasetView
    from ._jobs import Tell

_SAMPLE: Final = 4096
_MOST_SHOWN: Final = 200


class Counting:
    """Counts the records of every file."""

    def __init__(self, view: DatasetView) -> None:
        self._view = view

    def run(self, tell: Tell) -> None:
        """Count the files that have not been counted yet."""
        self._view.prepare(tell)

    def result(self) -> dict[str, Any]:
        """Return the count; None if it is not complete yet."""
        return {"records": self._view.count}


class Statistics:
    """Statistics of fields, of a sample or of all records.

    Args:
        view: The dataset.
        names: The fields.
        whole: Whether to read all records.
    """

    def __init__(self, view: DatasetView, names: Sequence[str], *, whole: bool) -> None:
        assert view.schema is not None
        self._view = view
        self._names = list(names)
        self._whole = whole
        self._gathered = {name: Accumulator(view.schema.select(name)) for name in names}
        self._failed: dict[str, str] = {}
        self._rows = 0
        self._at = 0
        self._lock = threading.Lock()

    def run(self, tell: Tell) -> None:
        """Continue through the records."""
        if not self._whole:
            for batch in self._view.sampled(_SAMPLE, self._names):
                self._add(batch)
                tell(self._rows, min(_SAMPLE, self._view.count or _SAMPLE), "records")
            return
        for batch, _, at in self._view.batches(self._at, self._names):
            self._add(batch)
            self._at = at
            tell(at, self._view.count, "records")

    def _add(self, batch: Batch) -> None:
        if not len(batch):
            return
        with self._lock:
            self._rows += len(batch)
            for name, gathered in self._gathered.items():
                if name not in self._failed and name in batch:
                    try:
                        gathered.add(batch)
                    except (RecordKitError, TypeError, ValueError) as error:
                        self._failed[name] = str(error)

    def result(self) -> dict[str, Any]:
        """Return the statistics so far."""
        with self._lock:
            found = {
                name: gathered.result().to_dict()["fields"][name]
                for name, gathered in self._gathered.items()
                if name not in self._failed and self._rows
            }
            return {"rows": self._rows, "whole": self._whole, "fields": safe(found), "failed": dict(self._failed)}


class Verifying:
    """Verifies every byte."""

    def __init__(self, view: DatasetView) -> None:
        self._view = view
        self._report: Verified | None = None

    def run(self, tell: Tell) -> None:
        """Verify all files, from the start: verifying cannot be resumed."""
        with progress.reporting(lambda report: tell(report.done, report.total, report.unit)):
            report = tools.verify(self._view.where)
        shards = {shard.file.name: shard for shard in self._view.shards}
        for file in report.files:
            for damage in file.damage:
                if file.path in shards:
                    shards[file.path].tell(damage)
        self._report = report

    def result(self) -> dict[str, Any]:
        """Return the findings."""
        report = self._report
        if report is None:
            return {}
        return {
            "ok": report.ok,
            "headline": str(report).partition("\n")[0],
            "problems": [str(problem) for problem in report.problems[:_MOST_SHOWN]],
            "notes": list(report.notes[:_MOST_SHOWN]),
        }
