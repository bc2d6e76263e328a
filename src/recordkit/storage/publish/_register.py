"""The register: who is writing a dataset, in one small file that is only ever changed by compare-and-swap.

It is never removed, so that a request which arrives late cannot bring an old state back.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from recordkit.storage.format import side_json as declare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._publisher import Kind

FORMAT: Final = 1
_DECIDED_KEPT: Final = 16
_MOST_PARTS: Final = 100_000

_NUMBER: Final = declare.number()
_TOKEN: Final = declare.text("[0-9a-f]{16}", "16 hexadecimal digits")
_ID: Final = declare.text("[0-9a-f]{32}", "32 hexadecimal digits")
DECLARED: Final = declare.JsonFormat(
    "register of writers",
    {
        FORMAT: declare.record(
            {
                "format": _NUMBER,
                "nonce": _TOKEN,
                "kind": declare.one_of("create", "overwrite", "append", None),
                "run": declare.table(declare.anything),
                "parts": declare.number(most=_MOST_PARTS),
                "owners": declare.array(declare.record({"part": _NUMBER, "token": _TOKEN, "first": _NUMBER})),
                "done": declare.array(declare.record({"part": _NUMBER, "shards": _NUMBER})),
                "publishing": declare.or_null(
                    declare.record(
                        {
                            "write": _ID,
                            "token": _TOKEN,
                            "after": declare.or_null(_ID),
                            "shared": declare.true_or_false,
                        }
                    )
                ),
                "decided": declare.array(declare.record({"write": _ID, "published": declare.true_or_false})),
            }
        )
    },
    "Nothing is written here. Write the dataset elsewhere.",
)


@dataclass(frozen=True)
class Owner:
    """A writer of one part.

    Attributes:
        part: The number of the part.
        token: Part of the name of everything this writer stores.
        first: The first shard that is this writer's; those before it are an earlier writer's.
    """

    part: int
    token: str
    first: int


@dataclass(frozen=True)
class Publication:
    """A manifest that is being published.

    Attributes:
        write: The write id, which is in the manifest.
        token: Of the owner whose shards come first: part of the name of the manifest's copy.
        after: The digest of the manifest that it replaces; None if there is none.
        shared: Whether others than its writer may be publishing it, too.
    """

    write: str
    token: str
    after: str | None
    shared: bool = False


@dataclass(frozen=True)
class Register:
    """Who is writing a dataset.

    Attributes:
        kind: What the run is for; None if nobody is writing.
        run: What was asked for.
        parts: How many parts the run has.
        owners: The writers of all parts, oldest first: of a part, the last one is at work.
        done: How many shards each finished part has.
        publishing: What is being published. Until that is decided, nobody may do anything else.
        decided: The write ids of the last publications, and whether they succeeded.
    """

    kind: Kind | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    parts: int = 0
    owners: tuple[Owner, ...] = ()
    done: Mapping[int, int] = field(default_factory=dict)
    publishing: Publication | None = None
    decided: tuple[tuple[str, bool], ...] = ()

    @classmethod
    def parse(cls, data: bytes, where: str) -> Register:
        """Return the register that some bytes hold.

        Raises:
            StorageError: They are not one.
        """
        value = DECLARED.parse(data, where)
        publishing = value["publishing"]
        return cls(
            kind=value["kind"],
            run=value["run"],
            parts=value["parts"],
            owners=tuple(Owner(**each) for each in value["owners"]),
            done={each["part"]: each["shards"] for each in value["done"]},
            publishing=None if publishing is None else Publication(**publishing),
            decided=tuple((each["write"], each["published"]) for each in value["decided"]),
        )

    def to_json(self, nonce: str) -> bytes:
        """Return the bytes of the file. The nonce makes them unlike all earlier ones, and so their version."""
        value = {
            "format": FORMAT,
            "nonce": nonce,
            "kind": self.kind,
            "run": dict(self.run),
            "parts": self.parts,
            "owners": [asdict(owner) for owner in self.owners],
            "done": [{"part": part, "shards": count} for part, count in sorted(self.done.items())],
            "publishing": None if self.publishing is None else asdict(self.publishing),
            "decided": [{"write": write, "published": published} for write, published in self.decided],
        }
        DECLARED.check(value, "the register of writers")
        return declare.to_bytes(value)

    def owners_of(self, part: int) -> tuple[Owner, ...]:
        """Return the writers of a part, oldest first."""
        return tuple(owner for owner in self.owners if owner.part == part)

    def owner_of(self, part: int) -> str | None:
        """Return the token of the writer that is at work on a part."""
        owners = self.owners_of(part)
        return owners[-1].token if owners else None

    def token_of(self, part: int, number: int) -> str | None:
        """Return the token in the name of a shard, None if nobody has written it."""
        tokens = [owner.token for owner in self.owners_of(part) if owner.first <= number]
        return tokens[-1] if tokens else None

    def staged(self, *, at_most: int) -> list[tuple[int, int, str | None]] | None:
        """Return part, number and token of all shards, in order; None if that are more, or not all parts are done."""
        if set(self.done) != set(range(self.parts)) or sum(self.done.values()) > at_most:
            return None
        return [
            (part, number, self.token_of(part, number))
            for part in range(self.parts)
            for number in range(self.done[part])
        ]

    def outcome_of(self, write: str) -> bool | None:
        """Return whether a publication succeeded; None if that is not known here."""
        return dict(self.decided).get(write)

    def with_owner(self, owner: Owner) -> Register:
        """Return the register with another writer at work on a part."""
        done = {part: count for part, count in self.done.items() if part != owner.part}
        return replace(self, owners=(*self.owners, owner), done=done)

    def idle(self) -> Register:
        """Return the register with nobody writing."""
        return Register(decided=self.decided)

    def decide(self, write: str, *, published: bool) -> Register:
        """Return the register after a publication. One that failed can be tried again, with another write id."""
        decided = (*self.decided, (write, published))[-_DECIDED_KEPT:]
        return Register(decided=decided) if published else replace(self, publishing=None, decided=decided)
