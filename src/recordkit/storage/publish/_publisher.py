"""What a way of publishing offers: shards are staged where no reader looks, and one atomic step publishes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Buffer

    from recordkit.storage.format import Manifest, Shard

Kind: TypeAlias = Literal["create", "overwrite", "append"]


class PartNumber(NamedTuple):
    """Which writer of a target this is, and how many there are."""

    number: int = 0
    total: int = 1


@dataclass(frozen=True)
class Staged:
    """The shards of a finished run.

    Attributes:
        kind: Whether they make a new dataset, replace one, or continue one.
        run: What was asked for.
        shards: The shards of all parts, in order.
        tokens: Which writers made them.
    """

    kind: Kind
    run: Mapping[str, Any]
    shards: tuple[Shard, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class DatasetChange:
    """A change to publish.

    Attributes:
        target: The dataset's folder.
        staged: The shards that are new.
        manifest: The dataset afterwards. Its shards are the staged ones; for `append`, after the old ones.
    """

    target: str
    staged: Staged
    manifest: Manifest


class StagedPart(Protocol):
    """The shards of one writer, before they are published."""

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The finished shards, in order; also those of an earlier run that is being resumed."""
        ...

    def add(self, shard: Shard, data: Buffer, *, index: Buffer | None, quarantine: Buffer | None) -> Shard:
        """Store a finished shard, and return it with the name that it gets."""
        ...

    def finish(self) -> None:
        """Note that this part has all its shards."""
        ...


class Publisher(Protocol):
    """A way of publishing datasets on a file system."""

    def claim(
        self, target: str, kind: Kind, part: PartNumber, *, run: Mapping[str, Any], resume: bool = False
    ) -> StagedPart:
        """Return a part to write.

        Args:
            target: The dataset's folder.
            kind: Whether to create, overwrite or continue the dataset.
            part: Which part.
            run: What was asked for: a run is resumed only with the same.
            resume: Continue an unfinished run, whose writer is dead.

        Raises:
            TargetBusyError: There is an unfinished run, and `resume` is False.
            TargetExistsError: There is a dataset, and `kind` is `create`.
        """
        ...

    def staged(self, target: str) -> Staged:
        """Return the finished shards of all parts.

        Raises:
            StorageError: Some part is not finished.
        """
        ...

    def publish(self, change: DatasetChange) -> None:
        """Make the change visible: all of it, or nothing.

        Raises:
            TargetExistsError: Somebody else has created the dataset. Nothing of this change will ever be seen.
            ConflictError: Somebody else has changed it. Nothing of this change will ever be seen.
            TargetBusyError: Somebody else has taken this run over, or discarded it.
            OutcomeUnknownError: Nobody knows whether the change is or will be seen; `recover` finds out.
        """
        ...

    def recover(self, target: str) -> bool:
        """Finish the publication that a dead writer began, and say whether there was one."""
        ...

    def discard(self, target: str) -> bool:
        """Remove what an unfinished run has left, and say whether there was one."""
        ...
